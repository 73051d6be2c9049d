/**
 * The contract of `Changelog`.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import * as Changelog from "../Changelog.ts"
import { ChangeSignal } from "../ChangeSignal.ts"
import * as P from "../Path.ts"
import {
  home,
  incompressible,
  path,
  pathsOf,
  putAll,
  record,
  Recorder,
  removeAll,
  type Services,
  tested,
  type Tier,
  type Unjoined,
  type UnjoinedTier
} from "./fixture.ts"

/**
 * Runs the contract on one tier. Each test builds the layer anew.
 *
 * @since 0.1.0
 * @category suites
 */
export const changelogSuite = <E>(name: string, given: Tier<E> | UnjoinedTier<E>): void => {
  const tier = tested(given)
  const run = <A, E2>(effect: Effect.Effect<A, E2, Unjoined>) => Effect.provide(effect, tier.unjoined())
  const read = (options?: Parameters<Changelog.Changelog["Service"]["read"]>[0]) =>
    Recorder.use((changelog) => changelog.read(options))
  const prune = (options: Parameters<Changelog.Changelog["Service"]["prune"]>[0]) =>
    Recorder.use((changelog) => changelog.prune(options))

  describe(`Changelog (${name})`, () => {
    it.effect("records changes by scope and path, with rising numbers and the time", () =>
      run(
        Effect.gen(function* () {
          yield* TestClock.adjust(1000)
          const other = P.Scope.make("other")
          const range = yield* record([
            Changelog.put({ scope: other, path: path("a") }),
            Changelog.put({ scope: home, path: path("😀"), cid: "c1", mtime: 5 }),
            Changelog.put({ scope: home, path: path("\ufffd") }),
            Changelog.remove({ scope: home, path: path("😀"), mtime: 6 })
          ])
          assert.deepStrictEqual(range, Option.some({ first: 1, last: 4 }))
          assert.deepStrictEqual(yield* read(), [
            {
              seq: 1,
              scope: home,
              path: path("\ufffd"),
              op: "put",
              cid: undefined,
              mtime: undefined,
              recordedAt: 1000
            },
            { seq: 2, scope: home, path: path("😀"), op: "put", cid: "c1", mtime: 5, recordedAt: 1000 },
            { seq: 3, scope: home, path: path("😀"), op: "delete", cid: undefined, mtime: 6, recordedAt: 1000 },
            { seq: 4, scope: other, path: path("a"), op: "put", cid: undefined, mtime: undefined, recordedAt: 1000 }
          ])
          assert.deepStrictEqual(yield* record([]), Option.none())
        })
      )
    )

    it.effect("records more changes than fit into one statement", () =>
      run(
        Effect.gen(function* () {
          const names = Array.from({ length: 2345 }, (_, i) => `p${String(i).padStart(5, "0")}`)
          yield* putAll(...names.toReversed())
          assert.deepStrictEqual(pathsOf(yield* read({ limit: 10_000 })), names)
        })
      )
    )

    it.effect("reads a scope or a prefix in pages", () =>
      run(
        Effect.gen(function* () {
          yield* record([Changelog.put({ scope: P.Scope.make("other"), path: path("a/1") })])
          yield* putAll("a/1", "a/2", "a0", "b/1")
          yield* removeAll("a/1")
          const first = yield* read({ scope: home, prefix: "a/", limit: 2 })
          assert.deepStrictEqual(pathsOf(first), ["a/1", "a/2"])
          const rest = yield* read({ scope: home, prefix: "a/", limit: 2, after: first[1]!.seq })
          assert.deepStrictEqual(
            rest.map((entry) => [entry.path, entry.op]),
            [["a/1", "delete"]]
          )
          assert.deepStrictEqual(pathsOf(yield* read({ prefix: "a/" })), ["a/1", "a/1", "a/2", "a/1"])
        })
      )
    )

    it.effect("prunes by number or time, oldest first, and never gives a number again", () =>
      run(
        Effect.gen(function* () {
          yield* putAll("a", "b")
          yield* TestClock.adjust(10)
          yield* putAll("c")
          yield* TestClock.adjust(10)
          yield* putAll("d")
          assert.strictEqual(yield* prune({ before: { time: 10 }, limit: 1 }), 1)
          assert.deepStrictEqual(pathsOf(yield* read()), ["b", "c", "d"])
          assert.strictEqual(yield* prune({ before: { time: 11 } }), 2)
          assert.deepStrictEqual(pathsOf(yield* read()), ["d"])
          assert.strictEqual(yield* prune({ before: { seq: 4 } }), 0)
          assert.strictEqual(yield* prune({ before: { time: 1000 } }), 1)
          yield* putAll("e")
          assert.deepStrictEqual(
            (yield* read()).map((entry) => entry.seq),
            [5]
          )
        })
      )
    )

    it.effect("shows a view of a prefix without it", () =>
      run(
        Effect.gen(function* () {
          const view = yield* Recorder.useSync((changelog) => changelog.prefixed("a_b/"))
          yield* putAll("aXb/1", "a_b/", "a_b2/1")
          yield* view.record([Changelog.put({ scope: home, path: path("😀.md") })])
          assert.deepStrictEqual(pathsOf(yield* view.read()), ["😀.md"])
          assert.deepStrictEqual(pathsOf(yield* view.read({ prefix: "😀" })), ["😀.md"])
          assert.strictEqual(yield* view.prune({ before: { seq: 100 } }), 2)
          assert.deepStrictEqual(pathsOf(yield* read()), ["aXb/1", "a_b2/1"])
        })
      )
    )

    it.effect("takes names up to their limits, and refuses changes with a longer one", () =>
      run(
        Effect.gen(function* () {
          const scope = P.Scope.make(incompressible(P.maxNameBytes))
          const longest = path(incompressible(P.maxPathBytes))
          yield* record([Changelog.put({ scope, path: longest })])
          assert.deepStrictEqual(pathsOf(yield* read({ scope })), [longest])
          const inBytes = `${"é".repeat(P.maxPathBytes / 2)}a`
          const longScope = P.Scope.make(`${scope}a`)
          for (const [change, text, limit] of [
            [{ scope, path: path(`${longest}a`) }, `${longest}a`, P.maxPathBytes],
            [{ scope, path: path(inBytes) }, inBytes, P.maxPathBytes],
            [{ scope: longScope, path: path("a") }, longScope, P.maxNameBytes]
          ] as const) {
            for (const refused of [Changelog.put(change), Changelog.remove(change)]) {
              const error = yield* Effect.flip(record([Changelog.put({ scope: home, path: path("a") }), refused]))
              assert.instanceOf(error, Changelog.ChangelogError)
              assert.deepInclude(error.reason, { _tag: "NameTooLong", text, limit })
            }
          }
          const view = yield* Recorder.useSync((changelog) => changelog.prefixed("a/"))
          const error = yield* Effect.flip(view.record([Changelog.put({ scope: home, path: longest })]))
          assert.strictEqual(error._tag, "ChangelogError")
          assert.deepStrictEqual(yield* read({ scope: home }), [])
        })
      )
    )

    if (tier.layer !== undefined) {
      const { layer } = tier
      const inWrites = <A, E2>(effect: Effect.Effect<A, E2, Services | Unjoined>) => Effect.provide(effect, layer())

      it.effect("leaves nothing of a write that rolls back, and wakes nobody", () =>
        inWrites(
          Effect.gen(function* () {
            const writer = yield* DurableWriter
            const signal = yield* ChangeSignal
            yield* putAll("kept")
            const seen = yield* signal.count
            assert.strictEqual(seen, 1)
            yield* Effect.exit(writer.write(Effect.andThen(putAll("lost"), Effect.fail("no"))))
            assert.deepStrictEqual(pathsOf(yield* read()), ["kept"])
            assert.strictEqual(yield* signal.count, seen)
            yield* putAll("after")
            const entries = yield* read()
            assert.deepStrictEqual(pathsOf(entries), ["kept", "after"])
            // Some tiers do not give back what a rollback drew.
            assert.isAbove(entries[1]!.seq, entries[0]!.seq)
            assert.strictEqual(yield* signal.count, seen + 1)
          })
        )
      )
    }
  })
}
