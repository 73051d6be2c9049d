import { assert, describe, it } from "@effect/vitest"
import * as Lockstep from "@strata/dirty-queue/testing/lockstep"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Effect from "effect/Effect"
import * as Tiers from "./tiers.ts"

const runs = Number(process.env.LOCKSTEP_RUNS ?? 2)
const seed = Number(process.env.LOCKSTEP_SEED ?? 1)
const operations = Number(process.env.LOCKSTEP_OPERATIONS ?? 1200)

/** A run in which an answer never came has shown nothing about it. */
const assertAllAnswers = (seen: ReadonlyMap<string, number>) => {
  for (const operation of ["ack", "fail", "release", "renew"]) {
    for (const answer of ["Done", "Superseded", "Lost"]) {
      assert.isAbove(seen.get(`${operation}:${answer}`) ?? 0, 0, `${operation}:${answer}`)
    }
  }
}

/** Each operation is a dozen round trips there. */
const postgresOperations = Number(process.env.LOCKSTEP_OPERATIONS ?? 400)

describe("lockstep", () => {
  for (let run = seed; run < seed + runs; run++) {
    it.effect(
      `memory and SQLite agree on ${operations} random operations, seed ${run}`,
      () =>
        Effect.gen(function* () {
          const seen = yield* Lockstep.run({
            seed: run,
            operations,
            tiers: [
              { name: "memory", layer: Tiers.memory(Lockstep.options) },
              { name: "sqlite", layer: Tiers.sqlite(Lockstep.options) }
            ]
          })
          assertAllAnswers(seen)
        }),
      600_000
    )
  }

  it.effect.skipIf(!Postgres.isAvailable())(
    `memory, SQLite and Postgres agree on ${postgresOperations} random operations, seed ${seed}`,
    () =>
      Effect.gen(function* () {
        const seen = yield* Lockstep.run({
          seed,
          operations: postgresOperations,
          tiers: [
            { name: "memory", layer: Tiers.memory(Lockstep.options) },
            { name: "sqlite", layer: Tiers.sqlite(Lockstep.options) },
            { name: "postgres", layer: Tiers.postgresInLockstep(Lockstep.options) }
          ]
        })
        assertAllAnswers(seen)
      }),
    3_600_000
  )
})
