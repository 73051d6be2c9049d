import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Lockstep from "@strata/dirty-queue/testing/lockstep"
import * as D1 from "@strata/durable/testing/d1"
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

/** Each operation is some round trips on the shared tiers, and a look at the whole state a dozen. */
const sharedOperations = Number(process.env.LOCKSTEP_OPERATIONS ?? 300)
const stateEvery = Number(process.env.LOCKSTEP_STATE_EVERY ?? 5)

const d1 = await D1.forThisFile()
afterAll(d1.stop)

/** Those whose server runs here. */
const shared = [
  ...(Postgres.isAvailable() ? [{ name: "Postgres", layer: Tiers.postgresInLockstep(Lockstep.options) }] : []),
  ...(d1.isAvailable ? [{ name: "D1", unjoined: Tiers.d1(d1.layer, Lockstep.options) }] : [])
]

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

  const names = ["memory", "SQLite", ...shared.map(({ name }) => name)]
  it.effect.skipIf(shared.length === 0)(
    `${names.join(", ")} agree on ${sharedOperations} random operations, seed ${seed}`,
    () =>
      Effect.gen(function* () {
        const seen = yield* Lockstep.run({
          seed,
          operations: sharedOperations,
          stateEvery,
          tiers: [
            { name: "memory", layer: Tiers.memory(Lockstep.options) },
            { name: "sqlite", layer: Tiers.sqlite(Lockstep.options) },
            ...shared
          ]
        })
        assertAllAnswers(seen)
      }),
    7_200_000
  )
})
