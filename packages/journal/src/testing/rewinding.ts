/**
 * Contract 15: rewinding.
 *
 * @since 0.1.0
 */
import { assert, it } from "@effect/vitest"
import { WriteTransaction } from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { Checkpoints } from "../Checkpoint.ts"
import { Compaction } from "../Compaction.ts"
import * as Event from "../Event.ts"
import * as Fold from "../Fold.ts"
import { Journal } from "../Journal.ts"
import type { Projection } from "../Projections.ts"
import { Projections } from "../Projections.ts"
import { Rewind, Rewound } from "../Rewind.ts"
import * as Harness from "./harness.ts"

/**
 * @since 0.1.0
 * @category suites
 */
export const rewinding = <E>(tier: Harness.Tier<E>): void => {
  const { Ledger, Named, Story, append, count, other, refusal, seqs, stream } = Harness
  const folds = [Story, Ledger]
  const layer = (options?: Harness.ServiceOptions) => Harness.services(options).pipe(Layer.provide(tier.layer))
  const rewind = (after: number) => Rewind.use((service) => service.rewind({ stream, after }))
  const archived = Rewind.use((service) => service.archived({ stream }))

  it.effect("15: archives a suffix, frees its identities, and gives none of its seqs again", () =>
    Effect.gen(function* () {
      const journal = yield* Journal
      const once = Named.make({ name: "once" }, { identity: "once" })
      yield* count(stream, 1, 2, 3)
      const kept = yield* Fold.run(Story, { stream, upTo: 2 })
      yield* Checkpoints.use((checkpoints) => checkpoints.take({ stream, seq: 3 }))
      yield* count(other, 10)
      yield* append(stream, once)
      assert.deepStrictEqual(yield* rewind(2), { archived: 2 })

      assert.deepStrictEqual((yield* Fold.run(Story, { stream })).state, kept.state)
      assert.deepStrictEqual((yield* Fold.runAll(Ledger)).state.entries, 3)
      assert.deepStrictEqual(yield* Checkpoints.use((checkpoints) => checkpoints.list(stream)), [])
      assert.deepStrictEqual(
        (yield* archived).map(({ rewind, seq, type }) => [seq, type, rewind]),
        [
          [4, "named", 1],
          [3, "counted", 1]
        ]
      )
      const marker = Option.getOrThrow(yield* Event.decoder([Rewound])((yield* journal.read({ stream, after: 2 }))[0]!))
      assert.deepInclude(marker, { seq: 5, type: "~rewound", payload: { rewind: 1, after: 2, archived: 2 } })
      const [appended] = yield* append(stream, once)
      assert.deepInclude(appended, { seq: 6, duplicate: false })
      assert.deepStrictEqual(yield* seqs(stream), [1, 2, 5, 6])
      assert.deepStrictEqual(
        (yield* journal.readAll()).map((entry) => [entry.stream, entry.seq]),
        [
          [stream, 1],
          [stream, 2],
          [other, 1],
          [stream, 5],
          [stream, 6]
        ]
      )
      assert.deepStrictEqual(yield* rewind(6), { archived: 0 })
      assert.deepStrictEqual(yield* rewind(0), { archived: 4 })
      assert.deepStrictEqual(yield* seqs(stream), [7])
    }).pipe(Effect.provide(layer({ folds })))
  )

  it.effect("15: removes the rows that the suffix explains in the same write", () => {
    const rows = new Map<number, string>()
    const seen: Array<ReadonlyArray<number>> = []
    /** Rows in memory, of one for each name. */
    const set = (seq: number, name: string | undefined) =>
      WriteTransaction.use((transaction) => {
        const before = rows.get(seq)
        if (name === undefined) rows.delete(seq)
        else rows.set(seq, name)
        return transaction.onRollback(() => void (before === undefined ? rows.delete(seq) : rows.set(seq, before)))
      })
    const decode = Event.decoder([Named])
    const projection: Projection = {
      name: "names",
      rewind: Effect.fnUntraced(function* ({ entries }) {
        const taken = yield* Stream.runCollect(entries)
        seen.push(taken.map(({ seq }) => seq))
        for (const entry of taken) {
          if (Option.isSome(yield* decode(entry))) yield* set(entry.seq, undefined)
        }
      })
    }
    return Effect.gen(function* () {
      const projections = yield* Projections
      yield* projections.register(projection)
      assert.deepInclude(yield* refusal(projections.register(projection)), { _tag: "DuplicateRegistration" })
      yield* append(stream, ...Array.from({ length: 1200 }, (_, i) => Named.make({ name: `${i}` })))
      for (let seq = 1; seq <= 1200; seq++) rows.set(seq, `${seq - 1}`)

      // One that fails, and what the one before it has done.
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* projections.register({ name: "broken", rewind: () => Effect.fail("no") })
          assert.deepInclude(yield* refusal(rewind(3)), { _tag: "ProjectionFailed", projection: "broken", cause: "no" })
        })
      )
      assert.strictEqual(rows.size, 1200)
      assert.strictEqual((yield* seqs(stream, 1000)).length, 200)
      assert.deepStrictEqual(yield* archived, [])

      seen.length = 0
      assert.deepStrictEqual(yield* rewind(3), { archived: 1197 })
      assert.deepStrictEqual(seen, [Array.from({ length: 1197 }, (_, i) => 1200 - i)])
      assert.deepStrictEqual(Array.from(rows.values()), ["0", "1", "2"])
      assert.deepStrictEqual((yield* Fold.run(Story, { stream })).state.names, ["0", "1", "2"])
    }).pipe(Effect.scoped, Effect.provide(layer()))
  })

  it.effect("15: refuses what checkpoints have made final", () =>
    Effect.gen(function* () {
      yield* count(stream, 1, 2, 3)
      yield* count(other, 10, 20)
      yield* Compaction.use((compaction) => compaction.compact({ stream, seq: 2 }))
      assert.deepInclude(yield* refusal(rewind(1)), { _tag: "BelowFloor", stream, resumeAt: 2 })
      // The state over all streams covers the first two entries of this one now.
      yield* Compaction.use((compaction) => compaction.compact({ stream: other, seq: 2 }))
      assert.deepInclude(yield* refusal(rewind(2)), { _tag: "CheckpointedGlobally", stream, seq: 3, folds: ["ledger"] })
      yield* count(stream, 4)
      const before = yield* Fold.runAll(Ledger)
      yield* count(stream, 5)
      assert.deepStrictEqual(yield* rewind(4), { archived: 1 })
      assert.deepStrictEqual((yield* Fold.runAll(Ledger)).state, before.state)
    }).pipe(Effect.provide(layer({ folds })))
  )

  it.effect("15: a rewind in the middle of a fold does not get into its state", () => {
    const interruption = Harness.interruption()
    return Effect.gen(function* () {
      yield* count(stream, ...Array.from({ length: 2500 }, (_, i) => i))
      const wanted = yield* Fold.run(Story, { stream, upTo: 700 })
      const ledger = yield* Fold.runAll(Ledger)
      yield* interruption.arm("between", rewind(700))
      assert.deepStrictEqual((yield* Fold.run(Story, { stream })).state, wanted.state)
      assert.strictEqual((yield* seqs(stream, 600)).length, 101)

      yield* count(stream, ...Array.from({ length: 2500 }, (_, i) => i))
      yield* interruption.arm("between", rewind(0))
      assert.strictEqual((yield* Fold.runAll(Ledger)).state.entries, 0)
      assert.strictEqual(ledger.state.entries, 2500)
    }).pipe(Effect.provide(layer({ folds, intercept: interruption.intercept })))
  })
}
