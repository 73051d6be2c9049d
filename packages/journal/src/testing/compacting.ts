/**
 * Contract 14: checkpoints and compaction.
 *
 * @since 0.1.0
 */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Checkpoints } from "../Checkpoint.ts"
import { Compaction } from "../Compaction.ts"
import * as Event from "../Event.ts"
import * as Fold from "../Fold.ts"
import { Folds } from "../Folds.ts"
import { Journal } from "../Journal.ts"
import type { JournalStorage } from "../JournalStorage.ts"
import { Rewind } from "../Rewind.ts"
import * as Harness from "./harness.ts"

/**
 * @since 0.1.0
 * @category suites
 */
export const compacting = <E>(tier: Harness.Tier<E>): void => {
  const { Counted, Ledger, Named, Story, append, count, other, refusal, seqs, stream } = Harness
  const folds = [Story, Ledger]
  const layer = (options?: Harness.ServiceOptions) => Harness.services(options).pipe(Layer.provide(tier.layer))
  const compact = (seq: number, forget?: ReadonlyArray<string>) =>
    Compaction.use((compaction) => compaction.compact({ stream, seq, forget }))

  const initial = { total: 0, names: [], mix: 7 }
  const none = { entries: 0, mix: 0 }

  const states = Effect.gen(function* () {
    return {
      story: yield* Fold.run(Story, { stream }),
      other: yield* Fold.run(Story, { stream: other }),
      ledger: yield* Fold.runAll(Ledger)
    }
  })

  /** Everything that a compaction changes. */
  const observe = Effect.gen(function* () {
    const journal = yield* Journal
    const floor = yield* journal.floor(stream)
    return {
      floor,
      seqs: yield* seqs(stream, Math.max(floor - 1, 0)),
      all: yield* journal.readAll({ compacted: "skip" }),
      checkpoints: yield* Checkpoints.use((checkpoints) => checkpoints.list(stream)),
      states: yield* states
    }
  })

  const history = Effect.gen(function* () {
    yield* count(stream, 1, 2)
    yield* count(other, 10)
    yield* append(stream, Named.make({ name: "a" }), Counted.make({ amount: 3 }))
    yield* count(other, 20)
    yield* count(stream, 4)
  })

  it.effect("14: deletes strictly below a checkpointed entry, and folds give what they gave", () =>
    Effect.gen(function* () {
      const journal = yield* Journal
      yield* history
      const before = yield* states
      const checkpoint = yield* Checkpoints.use((checkpoints) => checkpoints.take({ stream, seq: 4 }))
      assert.deepStrictEqual(checkpoint, { stream, seq: 4, folds: ["story"] })
      assert.deepStrictEqual(yield* compact(4), { deleted: 3, floor: 4 })

      assert.strictEqual(yield* journal.floor(stream), 4)
      assert.deepStrictEqual(yield* seqs(stream, 3), [4, 5])
      assert.deepInclude(yield* refusal(seqs(stream, 2)), { _tag: "BelowFloor", stream, resumeAt: 4 })
      assert.deepStrictEqual(yield* states, before)
      assert.deepStrictEqual(yield* seqs(other), [1, 2])
      assert.deepInclude(yield* refusal(Fold.run(Story, { stream, upTo: 3 })), { _tag: "BelowFloor", resumeAt: 4 })

      assert.deepStrictEqual(yield* compact(4), { deleted: 0, floor: 4 })
      assert.deepInclude(yield* refusal(compact(3)), { _tag: "BelowFloor", resumeAt: 4 })
      assert.deepStrictEqual(yield* compact(5), { deleted: 1, floor: 5 })
      assert.deepStrictEqual(yield* states, before)
      assert.deepStrictEqual(
        (yield* count(stream, 5)).map(({ seq }) => seq),
        [6]
      )
    }).pipe(Effect.provide(layer({ folds })))
  )

  it.effect("14: names committed entries alone", () =>
    Effect.gen(function* () {
      const checkpoints = yield* Checkpoints
      yield* count(stream, 1, 2)
      for (const seq of [0, 3]) {
        assert.deepInclude(yield* refusal(checkpoints.take({ stream, seq })), { _tag: "NoSuchEntry", seq })
        assert.deepInclude(yield* refusal(compact(seq)), { _tag: "NoSuchEntry", seq })
      }
      assert.deepInclude(yield* refusal(checkpoints.take({ stream: other })), { _tag: "NoSuchEntry", seq: 0 })
      yield* checkpoints.take({ stream })
      yield* checkpoints.take({ stream, seq: 1 })
      assert.deepStrictEqual(yield* checkpoints.list(stream), [
        { stream, seq: 1, folds: ["story"] },
        { stream, seq: 2, folds: ["story"] }
      ])
    }).pipe(Effect.provide(layer({ folds })))
  )

  it.effect("14: compacts what is older than the last compaction of another stream", () =>
    Effect.gen(function* () {
      const compaction = yield* Compaction
      yield* history
      const before = yield* states
      yield* compaction.compact({ stream, seq: 5 })
      assert.deepStrictEqual(yield* compaction.compact({ stream: other, seq: 2 }), { deleted: 1, floor: 2 })
      assert.deepStrictEqual(yield* states, before)
    }).pipe(Effect.provide(layer({ folds })))
  )

  it.effect("14: keeps no state of entries that were rewound meanwhile", () => {
    const interruption = Harness.interruption()
    return Effect.gen(function* () {
      const rewind = yield* Rewind
      yield* count(other, 1, 2, 3)
      yield* count(stream, 4, 5)
      yield* interruption.arm("behind", rewind.rewind({ stream: other, after: 1 }))
      assert.deepStrictEqual(yield* compact(2), { deleted: 1, floor: 2 })
      assert.deepStrictEqual(yield* Fold.runAll(Ledger).pipe(Effect.map(({ state }) => state.entries)), 3)
    }).pipe(Effect.provide(layer({ folds: [Ledger], intercept: interruption.intercept })))
  })

  it.effect("14: refuses when another process has compacted without a fold meanwhile", () => {
    const interruption = Harness.interruption()
    return Effect.gen(function* () {
      const store = Layer.succeedContext(yield* Layer.build(tier.layer))
      const mine = yield* Layer.build(
        Harness.services({ folds: [Ledger], intercept: interruption.intercept }).pipe(Layer.provide(store))
      )
      const theirs = yield* Layer.build(Harness.services().pipe(Layer.provide(store)))
      yield* Effect.gen(function* () {
        yield* count(stream, 1, 2, 3)
        yield* count(other, 1, 2)
        yield* interruption.arm(
          "behind",
          Effect.provideContext(
            Compaction.use((compaction) => compaction.compact({ stream: other, seq: 2 })),
            theirs
          )
        )
        assert.deepInclude(yield* refusal(compact(2)), { _tag: "CheckpointMissing", fold: "ledger" })
        assert.deepStrictEqual(yield* seqs(stream), [1, 2, 3])
      }).pipe(Effect.provideContext(mine))
    })
  })

  it.effect("14: keeps identities of what it deletes", () =>
    Effect.gen(function* () {
      const event = Counted.make({ amount: 1 }, { identity: "once" })
      yield* append(stream, event, Counted.make({ amount: 2 }))
      yield* compact(2)
      const [again] = yield* append(stream, event)
      assert.deepInclude(again, { seq: 1, duplicate: true })
    }).pipe(Effect.provide(layer()))
  )

  it.effect("14: refuses when a fold cannot take part", () =>
    Effect.gen(function* () {
      const checkpoints = yield* Checkpoints
      const registry = yield* Folds
      yield* history
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Effect.forEach(folds, registry.register)
          assert.deepInclude(yield* refusal(registry.register(Story)), { _tag: "DuplicateRegistration", name: "story" })
          yield* compact(3)
        })
      )
      const before = yield* observe

      // A process in which the folds are not registered.
      assert.deepInclude(yield* refusal(compact(4)), { _tag: "FoldsNotRegistered", folds: ["story", "ledger"] })
      assert.deepInclude(yield* refusal(compact(4, ["story"])), { _tag: "FoldsNotRegistered", folds: ["ledger"] })

      // Folds that came after the compaction.
      const late = Fold.make({
        ...Story,
        key: "late",
        events: [Counted],
        initial: () => initial,
        reduce: (state) => state
      })
      const lateLedger = Fold.make({
        ...Ledger,
        key: "late-ledger",
        events: [Counted],
        initial: () => none,
        reduce: (s) => s
      })
      yield* Effect.forEach(folds, registry.register)
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* registry.register(late)
          assert.deepInclude(yield* refusal(compact(4)), { _tag: "CheckpointMissing", fold: "late", floor: 3 })
        })
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* registry.register(lateLedger)
          const reason = yield* refusal(compact(4))
          assert.deepInclude(reason, { _tag: "CheckpointMissing", fold: "late-ledger", stream: undefined })
        })
      )
      assert.deepStrictEqual(yield* observe, before)

      yield* registry.register(late)
      yield* registry.register(lateLedger)
      yield* checkpoints.adopt(late, { stream, state: initial })
      yield* checkpoints.adoptAll(lateLedger, { state: none })
      assert.deepStrictEqual(yield* compact(4), { deleted: 1, floor: 4 })
      assert.deepStrictEqual((yield* observe).states, before.states)
    }).pipe(Effect.scoped, Effect.provide(layer()))
  )

  it.effect("14: refuses when an entry of a fold does not decode", () =>
    Effect.gen(function* () {
      yield* count(stream, 1)
      yield* append(stream, Event.json("counted", { amount: "many" }), Counted.make({ amount: 2 }))
      assert.deepInclude(yield* refusal(compact(3)), { _tag: "DecodeFailed", stream, seq: 2, type: "counted" })
      assert.deepStrictEqual(yield* seqs(stream), [1, 2, 3])
    }).pipe(Effect.provide(layer({ folds })))
  )

  it.effect("14: gives up folds that are to be forgotten", () =>
    Effect.gen(function* () {
      const registry = yield* Folds
      yield* history
      yield* Effect.scoped(Effect.andThen(Effect.forEach(folds, registry.register), compact(3)))
      assert.deepStrictEqual(yield* compact(4, ["story", "ledger"]), { deleted: 1, floor: 4 })
      assert.deepStrictEqual(yield* compact(5), { deleted: 1, floor: 5 })
      assert.strictEqual((yield* refusal(Fold.runAll(Ledger)))._tag, "CheckpointMissing")
      assert.strictEqual((yield* refusal(Fold.run(Story, { stream })))._tag, "CheckpointMissing")
    }).pipe(Effect.provide(layer()))
  )

  it.effect("14: leaves everything as it was when it breaks down at any step of its write", () => {
    let crashAfter: keyof JournalStorage["Service"] | undefined
    const intercept = (storage: JournalStorage["Service"]): JournalStorage["Service"] => {
      const crash =
        <Arguments extends ReadonlyArray<unknown>, A, E, R>(
          step: keyof JournalStorage["Service"],
          f: (...args: Arguments) => Effect.Effect<A, E, R>
        ) =>
        (...args: Arguments) =>
          Effect.tap(f(...args), () => (crashAfter === step ? Effect.die("crash") : Effect.void))
      return {
        ...storage,
        saveStates: crash("saveStates", storage.saveStates),
        saveGlobalStates: crash("saveGlobalStates", storage.saveGlobalStates),
        deleteBelow: crash("deleteBelow", storage.deleteBelow),
        raiseFloor: crash("raiseFloor", storage.raiseFloor)
      }
    }
    return Effect.gen(function* () {
      yield* history
      yield* compact(2)
      const before = yield* observe
      for (const step of ["saveStates", "saveGlobalStates", "deleteBelow", "raiseFloor"] as const) {
        crashAfter = step
        assert.strictEqual((yield* Effect.exit(compact(4)))._tag, "Failure")
        assert.deepStrictEqual(yield* observe, before, step)
      }
      crashAfter = undefined
      assert.deepStrictEqual(yield* compact(4), { deleted: 2, floor: 4 })
      assert.deepStrictEqual((yield* observe).states, before.states)
    }).pipe(Effect.provide(layer({ folds, intercept })))
  })

  it.effect("14: a compaction in the middle of a fold does not change what it gives", () => {
    const interruption = Harness.interruption()
    return Effect.gen(function* () {
      yield* count(stream, ...Array.from({ length: 2500 }, (_, i) => i))
      const before = yield* states
      yield* interruption.arm("between", compact(1400))
      assert.deepStrictEqual(yield* Fold.run(Story, { stream }), before.story)
      assert.strictEqual(yield* Journal.use((journal) => journal.floor(stream)), 1400)
      yield* interruption.arm("between", compact(2450))
      assert.deepStrictEqual(yield* Fold.runAll(Ledger), before.ledger)
      assert.strictEqual(yield* Journal.use((journal) => journal.floor(stream)), 2450)
    }).pipe(Effect.provide(layer({ folds, intercept: interruption.intercept })))
  })
}
