/**
 * Contracts 52 and 54 of `DeferredStore`: the first completion wins, and the journal is told of it, without its value.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import { sha256 } from "@strata/durable/Digest"
import { write } from "@strata/durable/DurableWriter"
import { Journal } from "@strata/journal/Journal"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { DeferredStore } from "../DeferredStore.ts"
import * as RunStream from "../RunStream.ts"
import { StateError } from "../StateError.ts"
import type { Services, Tier } from "./harness.ts"
import * as Harness from "./harness.ts"

/**
 * Runs the contracts on one tier. Each test builds its layer anew.
 *
 * @since 0.1.0
 * @category suites
 */
export const deferredStoreSuite = <E>(name: string, tier: Tier<E>): void => {
  const test = (title: string, body: () => Effect.Effect<void, unknown, Services>) =>
    it.effect(title, () => Effect.provide(body(), Layer.provideMerge(Harness.services(), tier.layer)))

  describe(`DeferredStore (${name})`, () => {
    test("keeps the first completion, and gives it to a later one, which appends nothing", () =>
      Effect.gen(function* () {
        yield* TestClock.adjust(5)
        const kept = {
          executionId: "r",
          name: "d",
          exit: { _tag: "Success", value: [1, "é\u0000"] },
          metadata: { by: "a" },
          completedAt: 5,
          consumedAt: undefined
        }
        assert.deepStrictEqual(yield* Harness.complete("r", "d", kept.exit, kept.metadata), { ...kept, first: true })
        yield* TestClock.adjust(5)
        assert.deepStrictEqual(yield* Harness.complete("r", "d", "other"), { ...kept, first: false })
        assert.deepStrictEqual(yield* Harness.complete("r", "d", kept.exit, kept.metadata), { ...kept, first: false })
        assert.deepStrictEqual(
          yield* DeferredStore.use((store) => store.get({ executionId: "r", name: "d" })),
          Option.some(kept)
        )
        assert.deepStrictEqual(yield* Harness.story("r"), ["deferred-completed d"])
      }))

    test("journals digests of the canonical JSON, and no value", () =>
      Effect.gen(function* () {
        yield* TestClock.adjust(7)
        yield* Harness.complete("r", "d", { b: 1, a: "secret-exit" }, "secret-metadata")
        yield* Harness.complete("r", "e", null)
        yield* Harness.consume("r", "d")
        const entries = yield* Journal.use((journal) => journal.read({ stream: RunStream.of("r") }))
        assert.deepStrictEqual(
          entries.map(({ payload, type }) => [type, payload]),
          [
            [
              "deferred-completed",
              { name: "d", exit: sha256('{"a":"secret-exit","b":1}'), metadata: sha256('"secret-metadata"'), at: 7 }
            ],
            ["deferred-completed", { name: "e", exit: sha256("null"), metadata: null, at: 7 }],
            ["deferred-consumed", { name: "d", at: 7 }]
          ]
        )
      }))

    test("the first of a list wins", () =>
      Effect.gen(function* () {
        const of = (executionId: string, name: string, exit: number) => ({ executionId, name, exit })
        const completed = yield* write(
          DeferredStore.use((store) =>
            store.complete([of("r", "d", 1), of("s", "d", 2), of("r", "d", 3), of("r", "e", 4), of("s", "d", 5)])
          )
        )
        assert.deepStrictEqual(
          completed.map(({ executionId, exit, first, name }) => [executionId, name, exit, first]),
          [
            ["r", "d", 1, true],
            ["s", "d", 2, true],
            ["r", "d", 1, false],
            ["r", "e", 4, true],
            ["s", "d", 2, false]
          ]
        )
        assert.deepStrictEqual(yield* Harness.story("r"), ["deferred-completed d", "deferred-completed e"])
        assert.deepStrictEqual(yield* Harness.story("s"), ["deferred-completed d"])
        assert.deepStrictEqual(yield* write(DeferredStore.use((store) => store.complete([]))), [])
      }))

    test("the first consumption wins, and only of what is completed", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* Harness.consume("r", "d"), [])
        yield* Harness.complete("r", "d", 1)
        yield* TestClock.adjust(3)
        assert.deepStrictEqual(yield* Harness.consume("r", "d", "e", "d"), ["d"])
        yield* TestClock.adjust(3)
        assert.deepStrictEqual(yield* Harness.consume("r", "d"), [])
        assert.deepStrictEqual(yield* Harness.story("r"), ["deferred-completed d", "deferred-consumed d"])
        const [completion] = yield* DeferredStore.use((store) => store.ofRun("r"))
        assert.deepInclude(completion, { name: "d", completedAt: 0, consumedAt: 3 })
      }))

    test("a write that fails leaves neither row nor entry", () =>
      Effect.gen(function* () {
        yield* Harness.complete("r", "d", 1)
        const failing = Effect.andThen(
          Effect.andThen(Harness.complete("r", "e", 2), Harness.consume("r", "d")),
          Effect.fail("no")
        )
        assert.deepStrictEqual(yield* Effect.exit(write(failing)), Exit.fail("no"))
        assert.deepStrictEqual(yield* Harness.story("r"), ["deferred-completed d"])
        const completions = yield* DeferredStore.use((store) => store.ofRun("r"))
        assert.deepStrictEqual(
          completions.map(({ consumedAt, name }) => [name, consumedAt]),
          [["d", undefined]]
        )
        assert.isTrue((yield* Harness.complete("r", "e", 3)).first)
      }))

    test("refuses what not every store keeps, and changes nothing", () =>
      Effect.gen(function* () {
        const reasonOf = <A, E2, R>(effect: Effect.Effect<A, E2, R>) =>
          Effect.map(Effect.flip(effect), (error) => (error instanceof StateError ? error.reason._tag : error))
        assert.strictEqual(yield* reasonOf(Harness.complete("r", "a\0b", 1)), "InvalidName")
        assert.strictEqual(yield* reasonOf(Harness.complete("r", "", 1)), "InvalidName")
        assert.strictEqual(yield* reasonOf(Harness.complete("\ud800", "d", 1)), "InvalidName")
        assert.strictEqual(yield* reasonOf(Harness.consume("", "d")), "InvalidName")
        assert.strictEqual(yield* reasonOf(Harness.complete("r", "d", Number.NaN)), "InvalidValue")
        assert.strictEqual(yield* reasonOf(Harness.complete("r", "d", 1, "\udc00")), "InvalidValue")
        const both = [
          { executionId: "r", name: "good", exit: 1 },
          { executionId: "r", name: "bad", exit: Infinity }
        ]
        assert.strictEqual(yield* reasonOf(write(DeferredStore.use((store) => store.complete(both)))), "InvalidValue")
        assert.deepStrictEqual(yield* DeferredStore.use((store) => store.ofRun("r")), [])
        assert.deepStrictEqual(yield* Harness.story("r"), [])
      }))

    test("removes the deferreds of a run, and of no other", () =>
      Effect.gen(function* () {
        for (const run of ["r", "r_", "R", "s"]) yield* Harness.complete(run, "d", run)
        yield* Harness.complete("r", "e", 1)
        assert.strictEqual(yield* write(DeferredStore.use((store) => store.removeOf(["r", "none"]))), 2)
        const left = yield* Effect.forEach(["r", "r_", "R", "s"], (run) =>
          DeferredStore.use((store) => store.ofRun(run))
        )
        assert.deepStrictEqual(
          left.map((rows) => rows.length),
          [0, 1, 1, 1]
        )
      }))

    if (tier.twoConnections !== undefined) {
      const twoConnections = tier.twoConnections

      it.live("of two connections exactly one completes first, and both give its exit", () =>
        Effect.gen(function* () {
          const connections = yield* twoConnections()
          for (let round = 0; round < 20; round++) {
            const completed = yield* Effect.forEach(
              connections,
              (connection, i) =>
                Harness.complete("r", `d${round}`, i).pipe(
                  Effect.provide(Layer.provide(Harness.services(), Layer.succeedContext(connection)))
                ),
              { concurrency: "unbounded" }
            )
            const winner = completed.findIndex(({ first }) => first)
            assert.strictEqual(completed.filter(({ first }) => first).length, 1)
            assert.deepStrictEqual(
              completed.map(({ exit }) => exit),
              [winner, winner]
            )
          }
          const story = yield* Harness.story("r").pipe(
            Effect.provide(Layer.provide(Harness.services(), Layer.succeedContext(connections[0])))
          )
          assert.strictEqual(new Set(story).size, 20)
          assert.strictEqual(story.length, 20)
        })
      )
    }
  })
}
