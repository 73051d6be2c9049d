import { assert, describe, it } from "@effect/vitest"
import * as Lockstep from "@strata/journal/testing/lockstep"
import * as Effect from "effect/Effect"
import * as Tiers from "./tiers.ts"

const runs = Number(process.env.LOCKSTEP_RUNS ?? 2)
const seed = Number(process.env.LOCKSTEP_SEED ?? 1)
const operations = Number(process.env.LOCKSTEP_OPERATIONS ?? 500)

const wanted = {
  append: ["ok", "rolled back", "IdentityConflict"],
  checkpoint: ["ok", "NoSuchEntry", "BelowFloor"],
  compact: ["ok", "rolled back", "NoSuchEntry", "BelowFloor"],
  rewind: ["ok", "rolled back", "BelowFloor", "CheckpointedGlobally"],
  follow: ["ok", "BelowFloor", "BelowGlobalFloor"],
  fold: ["ok", "BelowFloor"]
}

const known = Object.entries(wanted).flatMap(([operation, kinds]) => kinds.map((kind) => `${operation}:${kind}`))

describe("lockstep", () => {
  const seen = new Set<string>()

  for (let run = seed; run < seed + runs; run++) {
    it.effect(
      `memory, SQLite and the model agree on ${operations} random operations, seed ${run}`,
      () =>
        Effect.gen(function* () {
          const answers = yield* Lockstep.run({
            seed: run,
            operations,
            tiers: [
              { name: "memory", layer: Tiers.memory.layer },
              { name: "sqlite", layer: Tiers.sqlite.layer }
            ]
          })
          for (const answer of answers.keys()) {
            seen.add(answer)
            assert.include(known, answer)
          }
        }),
      600_000
    )
  }

  it("has seen every kind of answer", () => {
    assert.sameMembers(Array.from(seen), known)
  })
})
