/**
 * Contracts 54 to 56, and 13 to 15 as they concern clocks and deferreds: their rows are what the journal says, through
 * compactions and rewinds, and can be made again from it.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import { sha256 } from "@strata/durable/Digest"
import { write } from "@strata/durable/DurableWriter"
import { Compaction } from "@strata/journal/Compaction"
import { Journal } from "@strata/journal/Journal"
import { JournalError } from "@strata/journal/JournalError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"
import { ClockStorage } from "../ClockStorage.ts"
import { ClockStore } from "../ClockStore.ts"
import * as DeferredClockFold from "../DeferredClockFold.ts"
import { DeferredStorage } from "../DeferredStorage.ts"
import { FoldIncomplete } from "../FoldIncomplete.ts"
import * as RunStream from "../RunStream.ts"
import * as StateEvents from "../StateEvents.ts"
import { history } from "./foldHistory.ts"
import type { Services, Tier } from "./harness.ts"
import * as Harness from "./harness.ts"

/**
 * Runs the contracts on one tier. Each test builds its layer anew. `seeds` are those of random histories (default: 1 to
 * 10).
 *
 * @since 0.1.0
 * @category suites
 */
export const deferredClockFoldSuite = <E>(
  name: string,
  tier: Tier<E>,
  options?: { readonly seeds?: ReadonlyArray<number> | undefined }
): void => {
  const test = (title: string, body: () => Effect.Effect<void, unknown, Services>, layer = Harness.services()) =>
    it.effect(title, () => Effect.provide(body(), Layer.provideMerge(layer, tier.layer)))

  describe(`DeferredClockFold (${name})`, () => {
    test("the first of each wins in the fold, and what names nothing is passed over", () =>
      Effect.gen(function* () {
        const { ClockCompleted, ClockScheduled, DeferredCompleted, DeferredConsumed } = StateEvents
        const one = sha256("1")
        const two = sha256("2")
        yield* append(
          "r",
          ClockCompleted.make({ name: "c", outcome: "fired", at: 1 }),
          DeferredConsumed.make({ name: "d", at: 1 }),
          ClockScheduled.make({ name: "c", deferred: "x", deadline: 5, at: 2 }),
          ClockScheduled.make({ name: "c", deferred: "y", deadline: 6, at: 3 }),
          ClockCompleted.make({ name: "c", outcome: "settled", at: 4 }),
          ClockCompleted.make({ name: "c", outcome: "fired", at: 5 }),
          DeferredCompleted.make({ name: "d", exit: one, metadata: two, at: 6 }),
          DeferredCompleted.make({ name: "d", exit: two, metadata: null, at: 7 }),
          DeferredConsumed.make({ name: "d", at: 8 }),
          DeferredConsumed.make({ name: "d", at: 9 })
        )
        assert.deepStrictEqual(yield* DeferredClockFold.capture("r"), {
          clocks: new Map([
            ["c", { deferred: "x", deadline: 5, scheduledAt: 2, completedAt: 4, outcome: "settled" as const }]
          ]),
          deferreds: new Map([["d", { exit: one, metadata: two, completedAt: 6, consumedAt: 8 }]])
        })
      }))

    test("capture is inclusive, and starts from the checkpoint at the floor", () =>
      Effect.gen(function* () {
        yield* Harness.complete("r", "a", 1)
        yield* Harness.complete("r", "b", 2)
        yield* Harness.consume("r", "a")
        yield* Harness.complete("r", "c", 3)
        const namesAt = (upTo?: number) =>
          Effect.map(DeferredClockFold.capture("r", upTo), ({ deferreds }) =>
            Array.from(deferreds, ([name, { consumedAt }]) => (consumedAt === null ? name : `${name}!`))
          )
        assert.deepStrictEqual(yield* namesAt(0), [])
        assert.deepStrictEqual(yield* namesAt(2), ["a", "b"])
        assert.deepStrictEqual(yield* namesAt(3), ["a!", "b"])
        yield* compact("r", 3)
        assert.deepStrictEqual(yield* namesAt(3), ["a!", "b"])
        assert.deepStrictEqual(yield* namesAt(4), ["a!", "b", "c"])
        assert.deepStrictEqual(yield* namesAt(), ["a!", "b", "c"])
        const below = yield* Effect.flip(DeferredClockFold.capture("r", 2))
        assert.strictEqual(below instanceof JournalError ? below.reason._tag : below._tag, "BelowFloor")
      }))

    test("checkpointState puts the state under its key, and leaves the rest of the base", () =>
      Effect.gen(function* () {
        yield* Harness.schedule("r", "c", 5)
        yield* Harness.complete("r", "d", 1, 2)
        const state = yield* DeferredClockFold.capture("r")
        const base = { other: [1], [DeferredClockFold.checkpointKey]: "old" }
        const merged = yield* DeferredClockFold.checkpointState("r", undefined, base)
        const encoded = yield* Effect.fromResult(DeferredClockFold.encode(state))
        assert.deepStrictEqual(merged, { other: [1], [DeferredClockFold.checkpointKey]: encoded })
        assert.deepStrictEqual(base, { other: [1], [DeferredClockFold.checkpointKey]: "old" })
        assert.deepStrictEqual(DeferredClockFold.fromCheckpoint(merged), Result.succeed(Option.some(state)))
        assert.deepStrictEqual(DeferredClockFold.fromCheckpoint({ other: 1 }), Result.succeed(Option.none()))
        assert.isTrue(Result.isFailure(DeferredClockFold.fromCheckpoint(base)))
        assert.deepStrictEqual(Object.keys(yield* DeferredClockFold.checkpointState("r", 1)), [
          DeferredClockFold.checkpointKey
        ])
      }))

    test("rebuild makes clocks and stamps again, and keeps and counts what no entry explains", () =>
      Effect.gen(function* () {
        yield* Harness.start("r", "s", "t")
        yield* Harness.schedule("r", "c", 5)
        yield* Harness.schedule("r", "d", 50)
        yield* Harness.schedule("s", "c", 60)
        yield* Harness.complete("s", "x", [1], { by: "a" })
        yield* TestClock.adjust(5)
        yield* Harness.fire()
        yield* Harness.consume("r", Harness.deferredOf("c"))
        // Before its run is started, and never.
        yield* Harness.complete("later", "x", 1)
        const unexplained = {
          executionId: "s",
          name: "y",
          exit: "1",
          metadata: null,
          completedAt: null,
          consumedAt: null
        }
        yield* write(DeferredStorage.use((storage) => storage.insert([unexplained])))
        const before = yield* Harness.rows("r", "s", "later")
        const report = { runs: 3, clocks: 3, deferreds: 3, unexplained: 1 }

        assert.deepStrictEqual(yield* DeferredClockFold.rebuild(), report)
        assert.deepStrictEqual(yield* Harness.rows("r", "s", "later"), before)
        yield* Harness.wipe("r", "s", "later")
        const wiped = yield* Harness.rows("r", "s", "later")
        assert.deepStrictEqual(yield* DeferredClockFold.rebuild({ dryRun: true }), report)
        assert.deepStrictEqual(yield* Harness.rows("r", "s", "later"), wiped)
        const { changes } = yield* ClockStore
        const seen = yield* changes.count
        assert.deepStrictEqual(yield* DeferredClockFold.rebuild(), report)
        assert.deepStrictEqual(yield* Harness.rows("r", "s", "later"), before)
        assert.strictEqual(yield* changes.count, seen + 1)
      }))

    test("rebuild removes a clock that no entry explains", () =>
      Effect.gen(function* () {
        yield* Harness.start("r")
        yield* Harness.schedule("r", "c", 5)
        const clock = { deferred: "x", deadline: 1, scheduledAt: 1, completedAt: null, outcome: null }
        yield* write(ClockStorage.use((storage) => storage.insert([{ executionId: "r", name: "stray", ...clock }])))
        assert.deepInclude(yield* DeferredClockFold.rebuild(), { clocks: 1 })
        const [rows] = yield* Harness.rows("r")
        assert.deepStrictEqual(
          rows!.clocks.map(({ name }) => name),
          ["c"]
        )
      }))

    test("rebuild lists all that it cannot join, and writes nothing", () =>
      Effect.gen(function* () {
        yield* Harness.start("r", "s")
        yield* Harness.schedule("r", "c", 5)
        for (const deferred of ["gone", "exit", "metadata", "both", "lost"]) {
          yield* Harness.complete("r", deferred, [deferred], deferred)
        }
        yield* Harness.schedule("no-row", "c", 5)
        yield* Harness.complete("also-none", "x", 1)
        yield* Harness.consume("also-none", "x")
        yield* replace("r", "gone", undefined)
        yield* replace("r", "exit", { exit: '["other"]', metadata: '"exit"' })
        yield* replace("r", "metadata", { exit: '["metadata"]', metadata: '"other"' })
        yield* replace("r", "both", { exit: '"other"', metadata: null })
        const runs = ["r", "s", "no-row", "also-none"]
        yield* Harness.wipe(...runs)
        const before = yield* Harness.rows(...runs)
        const executionId = "r"
        const unjoined = yield* Effect.flip(DeferredClockFold.rebuild())
        assert.instanceOf(unjoined, FoldIncomplete)
        assert.sameDeepMembers(
          [...unjoined.unjoined],
          [
            { kind: "row_missing", executionId, deferred: "gone" },
            { kind: "digest_mismatch", executionId, deferred: "exit", part: "exit" },
            { kind: "digest_mismatch", executionId, deferred: "metadata", part: "metadata" },
            { kind: "digest_mismatch", executionId, deferred: "both", part: "exit" },
            { kind: "digest_mismatch", executionId, deferred: "both", part: "metadata" },
            { kind: "run_missing", executionId: "no-row" },
            { kind: "run_missing", executionId: "also-none" }
          ]
        )
        assert.deepStrictEqual(yield* Harness.rows(...runs), before)
      }))

    test(
      "a compacted run whose floor lacks the state fails, also one that never had a clock",
      () =>
        Effect.gen(function* () {
          yield* Harness.start("r", "s")
          yield* append("r", note, note)
          yield* Harness.schedule("s", "c", 5)
          yield* Harness.complete("s", "x", 1)
          yield* compact("r", 2)
          yield* compact("s", 2)
          const unjoined = [
            { kind: "checkpoint_missing" as const, executionId: "r", floor: 2 },
            { kind: "checkpoint_missing" as const, executionId: "s", floor: 2 }
          ]
          const before = yield* Harness.rows("r", "s")
          assert.deepStrictEqual(yield* unjoinedOf(DeferredClockFold.rebuild()), unjoined)
          assert.deepStrictEqual(yield* Harness.rows("r", "s"), before)
          const first = unjoined.slice(0, 1)
          assert.deepStrictEqual(yield* unjoinedOf(DeferredClockFold.capture("r")), first)
          assert.deepStrictEqual(yield* unjoinedOf(DeferredClockFold.checkpointState("r", 2)), first)
        }),
      Harness.services({ fold: false })
    )

    test("a known event that does not decode fails, naming its entry, and nothing is written", () =>
      Effect.gen(function* () {
        yield* Harness.start("r")
        yield* Harness.schedule("r", "c", 5)
        yield* append("r", { ...note, type: "deferred-completed" })
        const before = yield* Harness.rows("r")
        const error = yield* Effect.flip(DeferredClockFold.rebuild())
        assert.instanceOf(error, JournalError)
        assert.deepInclude(error.reason, { _tag: "DecodeFailed", stream: "run/r", seq: 2 })
        assert.deepStrictEqual(yield* Harness.rows("r"), before)
      }))

    test("a rewind takes the rows along that the suffix explains", () =>
      Effect.gen(function* () {
        yield* Harness.start("r")
        yield* Harness.schedule("r", "c", 5)
        yield* Harness.complete("r", "x", 1)
        yield* Harness.schedule("r", "d", 7)
        const kept = yield* Harness.rows("r")
        const after = yield* head("r")
        yield* Harness.consume("r", "x")
        yield* Harness.complete("r", "y", 2)
        yield* Harness.schedule("r", "e", 9)
        yield* TestClock.adjust(6)
        yield* Harness.fire()
        yield* Harness.rewind("r", after)
        assert.deepStrictEqual(yield* Harness.rows("r"), kept)
        // The deadline that has passed is due at once, and what was taken back can happen again.
        assert.deepStrictEqual(yield* Harness.fire(), ["c"])
        assert.isTrue((yield* Harness.complete("r", "y", 3)).first)
        assert.isTrue((yield* Harness.schedule("r", "e", 9)).first)
        assert.deepStrictEqual(yield* Harness.consume("r", "x"), ["x"])
        yield* Harness.rewind("r", 0)
        assert.deepStrictEqual(yield* Harness.rows("r"), [{ clocks: [], deferreds: [] }])
      }))

    test("a rewind into the middle of a firing leaves no run that waits for ever", () =>
      Effect.gen(function* () {
        yield* Harness.start("r")
        yield* Harness.schedule("r", "c", 5)
        yield* TestClock.adjust(5)
        yield* Harness.fire()
        yield* Harness.rewind("r", 2)
        assert.deepStrictEqual(yield* Harness.fire(), ["c"])
        const [rows] = yield* Harness.rows("r")
        assert.strictEqual(rows!.clocks[0]?.outcome, "fired")
        assert.strictEqual(rows!.deferreds.length, 1)
      }))

    for (const seed of options?.seeds ?? [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
      test(`rebuild restores rows over random histories with compactions and rewinds (seed ${seed})`, () =>
        history({ seed, steps: 120 }))
    }
  })
}

const note = { type: "note", identity: undefined, encode: Effect.succeed({}) }

const append = (executionId: string, ...events: Parameters<Journal["Service"]["append"]>[1]) =>
  write(Journal.use((journal) => journal.append(RunStream.of(executionId), events)))

const compact = (executionId: string, seq: number) =>
  Compaction.use((compaction) => compaction.compact({ stream: RunStream.of(executionId), seq }))

const head = (executionId: string) => Journal.use((journal) => journal.head(RunStream.of(executionId)))

const unjoinedOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), (error) => (error instanceof FoldIncomplete ? error.unjoined : error))

/** Puts other values into the row of a completion, or removes it. */
const replace = (
  executionId: string,
  name: string,
  values: { readonly exit: string; readonly metadata: string | null } | undefined
) =>
  write(
    DeferredStorage.use((storage) =>
      Effect.gen(function* () {
        yield* storage.remove([{ executionId, name }])
        if (values === undefined) return
        yield* storage.insert([{ executionId, name, ...values, completedAt: 1, consumedAt: null }])
      })
    )
  )
