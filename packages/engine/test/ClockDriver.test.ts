import { assert, describe, it } from "@effect/vitest"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as PostgresSignal from "@strata/dirty-queue/PostgresSignal"
import { afterCommit, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Postgres from "@strata/durable/testing/postgres"
import * as ClockDriver from "@strata/engine/ClockDriver"
import { ClockStorage } from "@strata/engine/ClockStorage"
import { ClockStore } from "@strata/engine/ClockStore"
import * as Harness from "@strata/engine/testing/harness"
import * as Lateness from "@strata/engine/testing/lateness"
import * as DataVersion from "@strata/sqlite/DataVersion"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import * as TestClock from "effect/testing/TestClock"
import * as TestConsole from "effect/testing/TestConsole"
import * as Tiers from "./stateTiers.ts"

const inMemory = Layer.provideMerge(Harness.services(), Tiers.memory.layer)

/** Counts looks at the next deadline. While it fails, so do they. */
const observed = (state: { looks: number; failing: boolean }) =>
  Layer.provideMerge(
    Harness.services(),
    Layer.provideMerge(
      Layer.effect(
        ClockStorage,
        ClockStorage.useSync((storage) => ({
          ...storage,
          next: Effect.suspend(() => {
            state.looks++
            return state.failing ? Effect.fail(unreachable) : storage.next
          })
        }))
      ),
      Tiers.memory.layer
    )
  )

const unreachable = new SqlError({ reason: new ConnectionError({ cause: new Error("gone"), message: "gone" }) })

const outcomeOf = (executionId: string, name: string) =>
  Effect.map(Harness.rows(executionId), ([rows]) => rows?.clocks.find((clock) => clock.name === name)?.outcome)

describe("ClockDriver", () => {
  it.effect("fires at the deadline and not before, with one timer and no poll", () => {
    const state = { looks: 0, failing: false }
    return Effect.gen(function* () {
      yield* Harness.schedule("r", "c", 3_600_000)
      yield* Effect.forkChild(ClockDriver.run({ backstop: "1 day" }))
      yield* TestClock.adjust("59 minutes")
      assert.strictEqual(state.looks, 1)
      yield* TestClock.adjust("59 seconds")
      assert.isNull(yield* outcomeOf("r", "c"))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* outcomeOf("r", "c"), "fired")
      yield* TestClock.adjust("10 hours")
      assert.isBelow(state.looks, 4)
    }).pipe(Effect.provide(observed(state)))
  })

  it.effect("is woken by an earlier deadline, and by a rewind that brings one back", () =>
    Effect.gen(function* () {
      yield* Effect.forkChild(ClockDriver.run({ backstop: "1 day" }))
      yield* TestClock.adjust(1)
      yield* Harness.schedule("r", "late", 1000)
      yield* TestClock.adjust(1)
      yield* Harness.schedule("r", "early", 10)
      yield* TestClock.adjust(10)
      assert.strictEqual(yield* outcomeOf("r", "early"), "fired")
      assert.isNull(yield* outcomeOf("r", "late"))
      yield* Harness.rewind("r", 2)
      yield* TestClock.adjust(0)
      yield* TestClock.adjust(0)
      assert.strictEqual(yield* outcomeOf("r", "early"), "fired")
    }).pipe(Effect.provide(inMemory))
  )

  it.effect("fires what became due while nothing ran, at once and in batches", () =>
    Effect.gen(function* () {
      const names = Array.from({ length: 10 }, (_, i) => `c${i}`)
      for (const name of names) yield* Harness.schedule("r", name, 10)
      yield* TestClock.adjust("1 hour")
      const batches: Array<number> = []
      yield* Effect.forkChild(
        ClockDriver.run({ batchSize: 4, onFired: (fired) => Effect.sync(() => void batches.push(fired.length)) })
      )
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(batches, [4, 4, 2])
    }).pipe(Effect.provide(inMemory))
  )

  it.effect("runs onFired in the write; when that fails nothing has fired, and it is tried again", () =>
    Effect.gen(function* () {
      yield* Harness.schedule("r", "c", 10)
      let calls = 0
      const onFired = Effect.fnUntraced(function* () {
        yield* WriteTransaction
        if (++calls < 3) return yield* Effect.fail("not yet")
        yield* Harness.complete("r", "x", 1)
      })
      yield* Effect.forkChild(ClockDriver.run({ onFired, retryDelay: 100 }))
      yield* TestClock.adjust(10)
      assert.strictEqual(calls, 1)
      assert.isNull(yield* outcomeOf("r", "c"))
      assert.deepStrictEqual(yield* Harness.story("r"), ["clock-scheduled c"])
      yield* TestClock.adjust(100)
      assert.strictEqual(calls, 2)
      yield* TestClock.adjust(200)
      assert.strictEqual(yield* outcomeOf("r", "c"), "fired")
      assert.deepStrictEqual((yield* Harness.story("r")).slice(1), [
        "deferred-completed clock/c",
        "clock-completed c",
        "deferred-completed x"
      ])
    }).pipe(Effect.provide(inMemory))
  )

  it.effect("outlasts a store that cannot be reached, and says so once", () => {
    const state = { looks: 0, failing: true }
    return Effect.gen(function* () {
      yield* Harness.schedule("r", "c", 10)
      const driver = yield* Effect.forkChild(ClockDriver.run({ retryDelay: 100, backstop: 1000 }))
      yield* TestClock.adjust("1 minute")
      assert.isAtLeast(state.looks, 55)
      assert.isAtMost(state.looks, 70)
      state.failing = false
      yield* TestClock.adjust(1000)
      assert.strictEqual(yield* outcomeOf("r", "c"), "fired")
      const lines = (yield* TestConsole.logLines).filter((line) => String(line).includes("Clocks cannot be fired"))
      assert.strictEqual(lines.length, 1)
      yield* Fiber.interrupt(driver)
    }).pipe(Effect.provide(observed(state)))
  })

  it.live("re-arms the original deadlines after a restart, and is never early (SQLite)", () =>
    Effect.gen(function* () {
      const filename = yield* Tiers.tempFile
      const process = Layer.provideMerge(Harness.services(), Tiers.onFile(filename))
      yield* Effect.provide(Lateness.schedule(100, "500 millis"), Layer.fresh(process))
      yield* Effect.sleep("100 millis")
      const lateness = yield* Effect.provide(Lateness.measure(100), Layer.fresh(process))
      assert.strictEqual(lateness.count, 100)
      assert.isAtLeast(lateness.least, 0)
    })
  )

  it.live("sees the deadlines of another process by the data version (SQLite)", () =>
    Effect.gen(function* () {
      const filename = yield* Tiers.tempFile
      const process = Layer.provideMerge(Harness.services(), Tiers.onFile(filename))
      yield* Effect.gen(function* () {
        const signal = yield* ChangeSignal.makePoll({ source: yield* DataVersion.make(filename), interval: 20 })
        yield* firedFromElsewhere(signal, Effect.provide(Harness.schedule("r", "c", 50), Layer.fresh(process)))
      }).pipe(Effect.provide(process))
    })
  )

  it.live.skipIf(!Postgres.isAvailable())("sees the deadlines of another process by LISTEN (Postgres)", () =>
    Effect.gen(function* () {
      const schema = yield* Postgres.schema
      const process = Layer.provideMerge(
        Harness.services(),
        Layer.provideMerge(Tiers.onSql, Layer.fresh(Postgres.layerSchema(schema)))
      )
      yield* Effect.gen(function* () {
        const signal = yield* PostgresSignal.make({ backstop: "1 hour" })
        yield* firedFromElsewhere(signal, Effect.provide(Harness.schedule("r", "c", 50), Layer.fresh(process)))
      }).pipe(Effect.provide(process))
    })
  )
})

/** The backstop is too far away to help. */
const firedFromElsewhere = <E, R>(
  signal: ChangeSignal.ChangeSignal["Service"],
  schedule: Effect.Effect<unknown, E, R>
) =>
  Effect.gen(function* () {
    const fired = yield* Deferred.make<number>()
    yield* Effect.forkChild(
      ClockDriver.run({
        signal,
        backstop: "1 hour",
        onFired: ([clock]) => afterCommit(Deferred.succeed(fired, clock!.completedAt! - clock!.deadline))
      })
    )
    // Until it sleeps without a deadline.
    yield* Effect.sleep(50)
    yield* schedule
    assert.isAtLeast(yield* Deferred.await(fired), 0)
    assert.isTrue((yield* ClockStore.use((store) => store.next))._tag === "None")
  })
