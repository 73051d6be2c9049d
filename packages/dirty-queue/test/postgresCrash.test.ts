import { assert, describe, it } from "@effect/vitest"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as CrashDrain from "./support/crashDrain.ts"

describe.skipIf(!Postgres.isAvailable())("workers that are killed, on Postgres", () => {
  it.live(
    "lose no change, never work on one path at once, and see no deadlock: 8 workers in 4 processes",
    () =>
      Effect.gen(function* () {
        const report = yield* CrashDrain.run({
          paths: 4000,
          processes: 4,
          workersEach: 2,
          leaseMillis: 1500,
          killEvery: [200, 1200],
          unfinished: 100,
          deadline: 100_000
        })
        assert.deepStrictEqual(report.wrong, [], JSON.stringify(report))
      }).pipe(Random.withSeed("killed workers")),
    120_000
  )
})
