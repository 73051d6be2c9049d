/**
 * Contract 14, for streams that go as a whole.
 *
 * @since 0.1.0
 */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Checkpoints } from "../Checkpoint.ts"
import { Compaction } from "../Compaction.ts"
import * as Fold from "../Fold.ts"
import { Journal } from "../Journal.ts"
import { Rewind } from "../Rewind.ts"
import * as Harness from "./harness.ts"

/**
 * @since 0.1.0
 * @category suites
 */
export const removing = <E>(tier: Harness.Tier<E>): void => {
  const { Counted, Ledger, Named, Story, append, count, other, refusal, seqs, stream } = Harness
  const layer = (options?: Harness.ServiceOptions) => Harness.services(options).pipe(Layer.provide(tier.layer))
  const remove = <A, E2, R>(within: Effect.Effect<A, E2, R>) =>
    Compaction.use((compaction) => compaction.remove({ streams: [stream], within }))

  const history = Effect.gen(function* () {
    yield* append(stream, Named.make({ name: "a" }, { identity: "once" }), Counted.make({ amount: 1 }))
    yield* count(other, 10)
    yield* count(stream, 2, 3)
    yield* Rewind.use((rewind) => rewind.rewind({ stream, after: 3 }))
    yield* Checkpoints.use((checkpoints) => checkpoints.take({ stream, seq: 2 }))
  })

  it.effect("14: a removed stream is as if it had never been, and its seqs are not given again", () =>
    Effect.gen(function* () {
      const journal = yield* Journal
      yield* history
      assert.deepStrictEqual(yield* remove(append(other, Counted.make({ amount: 20 }))), {
        deleted: 4,
        within: [
          {
            ...(yield* journal.readAll({ compacted: "skip" }))
              .map(({ ordinal, transaction }) => ({ ordinal, transaction }))
              .at(-1)!,
            seq: 2,
            duplicate: false
          }
        ]
      })
      assert.strictEqual(yield* journal.head(stream), 0)
      assert.strictEqual(yield* journal.floor(stream), 0)
      assert.deepStrictEqual(yield* seqs(stream), [])
      assert.deepStrictEqual(yield* Rewind.use((rewind) => rewind.archived({ stream })), [])
      assert.deepStrictEqual(yield* Checkpoints.use((checkpoints) => checkpoints.list(stream)), [])
      assert.deepStrictEqual(
        (yield* journal.streams()).map((info) => info.stream),
        [other]
      )
      assert.deepStrictEqual(yield* seqs(other), [1, 2])
      assert.deepInclude(yield* refusal(journal.readAll()), { _tag: "BelowGlobalFloor" })

      // The identity is free, and the seqs are those behind the removed ones.
      yield* append(stream, Named.make({ name: "b" }, { identity: "once" }), Counted.make({ amount: 1 }))
      assert.deepStrictEqual(yield* seqs(stream), [6, 7])
      assert.deepStrictEqual((yield* Fold.run(Story, { stream })).state, {
        ...(yield* Fold.run(Story, { stream })).state,
        total: 1,
        names: ["b"]
      })
      yield* count(other, 1)
      assert.deepStrictEqual(yield* seqs(other), [1, 2, 3])
    }).pipe(Effect.provide(layer({ folds: [Story] })))
  )

  it.effect("14: when what goes with a stream cannot be removed, nothing is", () =>
    Effect.gen(function* () {
      yield* history
      const before = yield* Journal.use((journal) => journal.readAll())
      const failing = Effect.andThen(count(other, 1), Effect.fail("no"))
      assert.strictEqual(yield* Effect.flip(remove(failing)), "no")
      assert.deepStrictEqual(yield* Journal.use((journal) => journal.readAll()), before)
      assert.strictEqual((yield* Rewind.use((rewind) => rewind.archived({ stream }))).length, 1)
    }).pipe(Effect.provide(layer()))
  )

  it.effect("14: a fold over all streams keeps what it has of a removed one", () =>
    Effect.gen(function* () {
      yield* history
      const before = (yield* Fold.runAll(Ledger)).state
      yield* remove(Effect.void)
      assert.deepStrictEqual((yield* Fold.runAll(Ledger)).state, before)
      yield* count(stream, 5)
      assert.strictEqual((yield* Fold.runAll(Ledger)).state.entries, before.entries + 1)
    }).pipe(Effect.provide(layer({ folds: [Story, Ledger] })))
  )
}
