/**
 * Contracts 11 and 12: seqs, ordinals and identities.
 *
 * @since 0.1.0
 */
import { assert, it } from "@effect/vitest"
import { write } from "@strata/durable/DurableWriter"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Event from "../Event.ts"
import { Journal } from "../Journal.ts"
import * as Harness from "./harness.ts"

/**
 * @since 0.1.0
 * @category suites
 */
export const appending = <E>(tier: Harness.Tier<E>): void => {
  const { Counted, append, count, other, refusal, seqs, stream } = Harness
  const layer = () => Harness.services().pipe(Layer.provide(tier.layer))

  it.effect("11: gives every stream its seqs, all of them one order, and none twice", () =>
    Effect.gen(function* () {
      const journal = yield* Journal
      assert.deepStrictEqual(
        (yield* count(stream, 1, 2)).map(({ seq }) => seq),
        [1, 2]
      )
      yield* count(other, 3)
      yield* Effect.exit(
        write(Effect.andThen(journal.append(stream, [Counted.make({ amount: 9 })]), Effect.fail("no")))
      )
      yield* count(stream, 4)

      const entries = yield* journal.read({ stream })
      assert.deepStrictEqual(
        entries.map(({ payload, seq, type }) => ({ payload, seq, type })),
        [1, 2, 4].map((amount, i) => ({ payload: { amount }, seq: i + 1, type: "counted" }))
      )
      const all = yield* journal.readAll()
      assert.deepStrictEqual(
        all.map((entry) => [entry.stream, entry.seq]),
        [
          [stream, 1],
          [stream, 2],
          [other, 1],
          [stream, 3]
        ]
      )
      const ordinals = all.map(({ ordinal }) => ordinal)
      assert.deepStrictEqual(
        ordinals,
        ordinals.toSorted((a, b) => a - b)
      )
      assert.strictEqual(new Set(ordinals).size, 4)
      assert.deepStrictEqual(yield* journal.streams(), [
        { stream, head: 3, floor: 0 },
        { stream: other, head: 1, floor: 0 }
      ])
      assert.strictEqual(yield* journal.head(stream), 3)
    }).pipe(Effect.provide(layer()))
  )

  it.effect("11: appends to many streams at once as to each of them, or to none", () =>
    Effect.gen(function* () {
      const journal = yield* Journal
      const event = (amount: number) => Counted.make({ amount })
      yield* count(stream, 1)
      const both = [
        { stream, events: [event(2), event(3)] },
        { stream: other, events: [event(4)] }
      ]
      yield* Effect.exit(write(Effect.andThen(journal.appendAll(both), Effect.fail("no"))))
      yield* write(journal.appendAll(both))
      yield* write(journal.appendAll([]))
      yield* count(stream, 5)
      for (const [name, amounts] of [
        [stream, [1, 2, 3, 5]],
        [other, [4]]
      ] as const) {
        assert.deepStrictEqual(
          (yield* journal.read({ stream: name })).map(({ payload, seq }) => ({ payload, seq })),
          amounts.map((amount, i) => ({ payload: { amount }, seq: i + 1 }))
        )
      }
      assert.strictEqual((yield* journal.readAll()).length, 5)
      const named = [{ stream, events: [Counted.make({ amount: 6 }, { identity: "six" })] }]
      const refused = yield* Effect.flip(write(journal.appendAll(named)))
      assert.strictEqual(refused.reason._tag, "EncodeFailed")
    }).pipe(Effect.provide(layer()))
  )

  it.effect("11: reads from a seq or a cursor, up to a seq, by type, and in pages", () =>
    Effect.gen(function* () {
      const journal = yield* Journal
      yield* append(stream, Counted.make({ amount: 1 }), Event.json("note", null), Counted.make({ amount: 2 }))
      yield* append(other, Event.json("note", { b: [1, null], a: "é😀\u0000" }))
      assert.deepStrictEqual(yield* seqs(stream, 1), [2, 3])
      const some = yield* journal.read({ stream, upTo: 2, types: ["counted"] })
      assert.deepStrictEqual(
        some.map(({ seq }) => seq),
        [1]
      )
      const [first] = yield* journal.readAll({ limit: 1 })
      const notes = yield* journal.readAll({ after: first, types: ["note"] })
      assert.deepStrictEqual(
        notes.map((entry) => [entry.stream, entry.payload]),
        [
          [stream, null],
          [other, { a: "é😀\u0000", b: [1, null] }]
        ]
      )
      assert.deepStrictEqual(yield* journal.read({ stream: other, after: 7 }), [])
    }).pipe(Effect.provide(layer()))
  )

  it.effect("12: appends an identity once, and refuses it with other content", () =>
    Effect.gen(function* () {
      const journal = yield* Journal
      const once = { identity: "attempt/1" }
      const [first] = yield* append(stream, Event.json("note", { a: 1, b: 2 }, once))
      const again = yield* append(
        stream,
        Counted.make({ amount: 1 }),
        Event.json("note", { b: 2, a: 1 }, once),
        Counted.make({ amount: 2 }, { identity: "attempt/2" }),
        Counted.make({ amount: 2 }, { identity: "attempt/2" })
      )
      assert.deepStrictEqual(
        again.map(({ duplicate, seq }) => [seq, duplicate]),
        [
          [2, false],
          [1, true],
          [3, false],
          [3, true]
        ]
      )
      assert.deepStrictEqual(again[1], { ...first!, duplicate: true })

      for (const event of [Event.json("note", { a: 1 }, once), Event.json("remark", { a: 1, b: 2 }, once)]) {
        const reason = yield* refusal(append(stream, Counted.make({ amount: 3 }), event))
        assert.deepInclude(reason, { _tag: "IdentityConflict", stream, identity: "attempt/1", seq: 1 })
      }
      assert.deepStrictEqual(yield* seqs(stream), [1, 2, 3])
      // Identities are those of one stream.
      assert.deepStrictEqual(
        (yield* append(other, Event.json("note", 3, once))).map(({ duplicate }) => duplicate),
        [false]
      )
      assert.strictEqual((yield* journal.read({ stream: other }))[0]?.identity, "attempt/1")
    }).pipe(Effect.provide(layer()))
  )

  it.effect("12: refuses types and identities that a store could not give back", () =>
    Effect.gen(function* () {
      for (const event of [
        Event.json("", 1),
        Event.json("a\0b", 1),
        Event.json("note", 1, { identity: "\ud800" }),
        Event.json("note", 1, { identity: "a\0b" })
      ]) {
        assert.strictEqual((yield* refusal(append(stream, Event.json("note", 1), event)))._tag, "EncodeFailed")
      }
      assert.deepStrictEqual(yield* seqs(stream), [])
    }).pipe(Effect.provide(layer()))
  )

  if (tier.twoConnections !== undefined) {
    const twoConnections = tier.twoConnections

    it.live("11: shows nothing before the commit, to another connection either", () =>
      Effect.gen(function* () {
        const [one, two] = yield* twoConnections()
        const mine = yield* Layer.build(Harness.services().pipe(Layer.provide(Layer.succeedContext(one))))
        const theirs = yield* Layer.build(Harness.services().pipe(Layer.provide(Layer.succeedContext(two))))
        const appended = yield* Deferred.make<void>()
        const commit = yield* Deferred.make<void>()
        const fiber = yield* Journal.use((journal) => journal.append(stream, [Counted.make({ amount: 1 })])).pipe(
          Effect.andThen(Deferred.succeed(appended, undefined)),
          Effect.andThen(Deferred.await(commit)),
          write,
          Effect.provideContext(mine),
          Effect.forkChild
        )
        yield* Deferred.await(appended)
        assert.deepStrictEqual(yield* Effect.provideContext(seqs(stream), theirs), [])
        yield* Deferred.succeed(commit, undefined)
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(yield* Effect.provideContext(seqs(stream), theirs), [1])
      })
    )

    it.live("11, 12: gives out each seq once, and keeps each identity once, between two connections", () =>
      Effect.gen(function* () {
        const contexts = yield* Effect.forEach(yield* twoConnections(), (context) =>
          Layer.build(Harness.services().pipe(Layer.provide(Layer.succeedContext(context))))
        )
        const results = yield* Effect.forEach(
          Array.from({ length: 40 }, (_, i) => i),
          (i) =>
            append(stream, Counted.make({ amount: 1 }), Counted.make({ amount: 2 }, { identity: `${i >> 1}` })).pipe(
              Effect.provideContext(contexts[i % 2]!)
            ),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(results.flat().filter(({ duplicate }) => duplicate).length, 20)
        const found = yield* Effect.provideContext(seqs(stream), contexts[0]!)
        assert.deepStrictEqual(
          found,
          Array.from({ length: 60 }, (_, i) => i + 1)
        )
      })
    )
  }
}
