/**
 * Contract 17: folding.
 *
 * @since 0.1.0
 */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { Compaction } from "../Compaction.ts"
import * as Event from "../Event.ts"
import * as Fold from "../Fold.ts"
import { Folds } from "../Folds.ts"
import { Journal } from "../Journal.ts"
import * as Harness from "./harness.ts"

/**
 * @since 0.1.0
 * @category suites
 */
export const folding = <E>(tier: Harness.Tier<E>): void => {
  const { Counted, Ledger, Named, Story, append, count, other, refusal, stream } = Harness
  const layer = () => Harness.services().pipe(Layer.provide(tier.layer))

  it.effect("17: passes over entries of types that the fold does not know", () =>
    Effect.gen(function* () {
      yield* append(
        stream,
        Event.json("unknown", "?"),
        Counted.make({ amount: 2 }),
        Event.json("unknown", { amount: 1 })
      )
      const { seq, state } = yield* Fold.run(Story, { stream })
      assert.strictEqual(state.total, 2)
      assert.strictEqual(seq, 3)
      assert.strictEqual((yield* Fold.run(Story, { stream, upTo: 1 })).state.total, 0)
      assert.deepStrictEqual(yield* Fold.run(Story, { stream: other }), {
        seq: 0,
        state: { total: 0, names: [], mix: 7 }
      })
    }).pipe(Effect.provide(layer()))
  )

  it.effect("17: names stream and seq of a known type that does not decode", () =>
    Effect.gen(function* () {
      const journal = yield* Journal
      yield* count(stream, 1)
      yield* append(stream, Event.json("counted", { amount: "many" }))
      const failed = { _tag: "DecodeFailed", stream, seq: 2, type: "counted" } as const
      assert.deepInclude(yield* refusal(Fold.run(Story, { stream })), failed)
      assert.deepInclude(yield* refusal(Fold.runAll(Ledger)), failed)
      const [, broken] = yield* journal.read({ stream })
      assert.deepInclude(yield* refusal(Event.decoder([Counted, Named])(broken!)), failed)
      assert.strictEqual((yield* Fold.run(Story, { stream, upTo: 1 })).state.total, 1)
    }).pipe(Effect.provide(layer()))
  )

  it.effect("17: folds all streams in the order in which they were written, up to a cursor", () =>
    Effect.gen(function* () {
      const journal = yield* Journal
      for (const amount of [1, 2, 3]) {
        yield* count(stream, amount)
        yield* count(other, 10 * amount)
      }
      const all = yield* journal.readAll()
      const full = yield* Fold.runAll(Ledger)
      assert.deepStrictEqual([full.state.entries, full.at.ordinal], [6, all[5]!.ordinal])
      const half = yield* Fold.runAll(Ledger, { upTo: all[2]! })
      assert.deepStrictEqual([half.state.entries, half.at.ordinal], [3, all[2]!.ordinal])
    }).pipe(Effect.provide(layer()))
  )

  it.effect("17: never folds what compaction has left as if it were everything", () =>
    Effect.gen(function* () {
      yield* count(stream, 1, 2, 3)
      yield* Compaction.use((compaction) => compaction.compact({ stream, seq: 2 }))
      assert.deepInclude(yield* refusal(Fold.run(Story, { stream })), {
        _tag: "CheckpointMissing",
        fold: "story",
        stream,
        floor: 2
      })
      assert.deepInclude(yield* refusal(Fold.runAll(Ledger)), { _tag: "CheckpointMissing", fold: "ledger" })
    }).pipe(Effect.provide(layer()))
  )

  it.effect("17: refuses a checkpoint state of another shape", () =>
    Effect.gen(function* () {
      const registry = yield* Folds
      yield* count(stream, 1, 2)
      yield* Effect.scoped(
        Effect.andThen(
          registry.register(Story),
          Compaction.use((compaction) => compaction.compact({ stream, seq: 2 }))
        )
      )
      const reshaped = Fold.make({
        key: "story",
        scope: "stream",
        events: [Counted],
        state: Schema.Struct({ sum: Schema.Int }),
        initial: () => ({ sum: 0 }),
        reduce: (state, event) => ({ sum: state.sum + event.payload.amount })
      })
      assert.deepInclude(yield* refusal(Fold.run(reshaped, { stream })), { _tag: "StateFailed", fold: "story" })
    }).pipe(Effect.provide(layer()))
  )
}
