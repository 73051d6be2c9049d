/**
 * The contract of `DurableWriter` as a suite that any tier can run.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { DurableWriter } from "./DurableWriter.ts"
import { afterCommit, WriteTransaction, write } from "./DurableWriter.ts"
import { nestingTests } from "./internal/nestingSuite.ts"

/**
 * What a tier has to bring: a small store of numbers by name, written through
 * the tier's own means, to see what a write left behind.
 *
 * @since 0.1.0
 * @category services
 */
export class Cells extends Context.Service<
  Cells,
  {
    readonly get: (name: string) => Effect.Effect<number | undefined, unknown>
    /** Sets a cell; correct only inside a write. */
    readonly set: (name: string, value: number) => Effect.Effect<void, unknown, WriteTransaction>
    /** Fails when the cell exists already. */
    readonly insert: (name: string, value: number) => Effect.Effect<void, unknown, WriteTransaction>
  }
>()("@strata/durable/testing/Cells") {}

/**
 * Runs the contract on one tier. Each test builds `layer` anew over an empty
 * store. `twoConnections` builds two independent pairs over one store, for the
 * claims about concurrency; a tier without a store outside the process has
 * none.
 *
 * @since 0.1.0
 * @category suites
 */
export const durableWriterSuite = <E>(
  name: string,
  options: {
    readonly layer: () => Layer.Layer<DurableWriter | Cells, E>
    readonly twoConnections?:
      | (() => Effect.Effect<
          readonly [Context.Context<DurableWriter | Cells>, Context.Context<DurableWriter | Cells>],
          E,
          Scope.Scope
        >)
      | undefined
    /** Whether writes of one process conflict, and wait to be retried: their delays pass in the time of the world. */
    readonly conflicts?: boolean | undefined
  }
): void => {
  const effect = options.conflicts === true ? it.live : it.effect
  const run = <A, E2>(test: Effect.Effect<A, E2, DurableWriter | Cells>) => Effect.provide(test, options.layer())
  const get = (cell: string) => Cells.use((cells) => cells.get(cell))
  const set = (cell: string, value: number) => Cells.use((cells) => cells.set(cell, value))

  describe(`DurableWriter (${name})`, () => {
    effect("loses no update of concurrent read-modify-writes in one process", () =>
      run(
        Effect.gen(function* () {
          const increment = write(
            Effect.gen(function* () {
              const value = (yield* get("n")) ?? 0
              yield* Effect.yieldNow
              yield* set("n", value + 1)
            })
          )
          yield* Effect.all(
            Array.from({ length: 50 }, () => increment),
            { concurrency: "unbounded" }
          )
          assert.strictEqual(yield* get("n"), 50)
        })
      )
    )

    effect("rolls back a failure, a defect and an interruption, and nothing else", () =>
      run(
        Effect.gen(function* () {
          yield* write(set("kept", 1))
          assert.deepStrictEqual(
            yield* Effect.exit(write(Effect.andThen(set("a", 1), Effect.fail("no")))),
            Exit.fail("no")
          )
          assert.deepStrictEqual(
            yield* Effect.exit(write(Effect.andThen(set("b", 1), Effect.die("bug")))),
            Exit.die("bug")
          )
          const written = yield* Deferred.make<void>()
          const fiber = yield* Effect.forkChild(
            write(set("c", 1).pipe(Effect.andThen(Deferred.succeed(written, undefined)), Effect.andThen(Effect.never)))
          )
          yield* Deferred.await(written)
          yield* Fiber.interrupt(fiber)
          assert.deepStrictEqual(yield* Effect.all([get("kept"), get("a"), get("b"), get("c")]), [
            1,
            undefined,
            undefined,
            undefined
          ])
        })
      )
    )

    effect("joins a nested write as a savepoint", () =>
      run(
        Effect.gen(function* () {
          yield* write(
            Effect.gen(function* () {
              yield* set("outer", 1)
              yield* Effect.exit(write(Effect.andThen(set("lost", 1), Effect.fail("no"))))
              yield* write(set("inner", 1))
            })
          )
          assert.deepStrictEqual(yield* Effect.all([get("outer"), get("lost"), get("inner")]), [1, undefined, 1])
          yield* Effect.exit(write(Effect.andThen(write(set("inner", 2)), Effect.fail("no"))))
          assert.strictEqual(yield* get("inner"), 1)
        })
      )
    )

    const endings = { success: Effect.void, failure: Effect.fail("no"), interruption: Effect.never }
    for (const [ending, end] of Object.entries(endings)) {
      effect(`is over for a fiber that was forked in it and goes on: its write is one of its own (${ending})`, () =>
        run(isOverForForked(end))
      )
    }

    effect("undoes state in memory at once when it is interrupted, also that of a nested write", () =>
      run(
        Effect.gen(function* () {
          const undone: Array<string> = []
          const register = (text: string) =>
            WriteTransaction.use((transaction) => transaction.onRollback(() => void undone.push(text)))
          const forkedUntil = Effect.fnUntraced(function* <E, R>(
            body: (reached: Effect.Effect<boolean>) => Effect.Effect<unknown, E, R>
          ) {
            const reached = yield* Deferred.make<void>()
            const fiber = yield* Effect.forkChild(write(body(Deferred.succeed(reached, undefined))))
            yield* Deferred.await(reached)
            return fiber
          })
          const waiting = (reached: Effect.Effect<boolean>) => Effect.andThen(reached, Effect.never)
          const one = yield* forkedUntil((reached) => Effect.andThen(register("one"), waiting(reached)))
          yield* Fiber.interrupt(one)
          assert.deepStrictEqual(undone.splice(0), ["one"])
          const two = yield* forkedUntil((reached) =>
            register("outer").pipe(
              Effect.andThen(write(register("ended"))),
              Effect.andThen(write(Effect.andThen(register("open"), waiting(reached))))
            )
          )
          yield* Fiber.interrupt(two)
          assert.deepStrictEqual(undone, ["open", "ended", "outer"])
        })
      )
    )

    const isOverForForked = (end: Effect.Effect<void, string>) =>
      Effect.gen(function* () {
        const ended = yield* Deferred.make<void>()
        const undone: Array<string> = []
        const seen: Array<string> = []
        const late = Effect.gen(function* () {
          yield* Deferred.await(ended)
          yield* afterCommit(Effect.sync(() => void seen.push("at once")))
          yield* WriteTransaction.use(({ onRollback }) => onRollback(() => undone.push("nothing")))
          yield* write(Effect.andThen(set("late", 1), afterCommit(Effect.sync(() => void seen.push("late")))))
        })
        const started = yield* Deferred.make<Fiber.Fiber<void, unknown>>()
        const body = Effect.flatMap(Effect.forkDetach(late), (fiber) => Deferred.succeed(started, fiber))
        const writing = yield* Effect.forkChild(write(Effect.andThen(set("first", 1), Effect.andThen(body, end))))
        const forked = yield* Deferred.await(started)
        if (end === Effect.never) yield* Fiber.interrupt(writing)
        const first = yield* Fiber.await(writing)
        const [inside, leave] = yield* Effect.all([Deferred.make<void>(), Deferred.make<void>()])
        const other = yield* Effect.forkChild(
          write(
            set("other", 1).pipe(
              Effect.andThen(Deferred.succeed(inside, undefined)),
              Effect.andThen(Deferred.await(leave)),
              Effect.andThen(Effect.fail("no"))
            )
          )
        )
        yield* Deferred.await(inside)
        yield* Deferred.succeed(ended, undefined)
        for (let i = 0; i < 100; i++) yield* Effect.yieldNow
        yield* Deferred.succeed(leave, undefined)
        assert.deepStrictEqual(yield* Fiber.await(other), Exit.fail("no"))
        yield* Fiber.join(forked)
        assert.deepStrictEqual(yield* Effect.all([get("first"), get("other"), get("late")]), [
          Exit.isSuccess(first) ? 1 : undefined,
          undefined,
          1
        ])
        assert.deepStrictEqual([seen, undone], [["at once", "late"], []])
      })

    effect("takes in what a nested write has forked, once that has ended", () =>
      run(
        Effect.gen(function* () {
          const seen: Array<string> = []
          const forkInNested = Effect.gen(function* () {
            const ended = yield* Deferred.make<void>()
            const late = Effect.gen(function* () {
              yield* Deferred.await(ended)
              yield* afterCommit(Effect.sync(() => void seen.push("committed")))
              yield* WriteTransaction.use(({ onRollback }) => onRollback(() => seen.push("undone")))
              yield* write(set("late", 1))
            })
            const forked = yield* write(Effect.forkDetach(late))
            yield* Deferred.succeed(ended, undefined)
            yield* Fiber.join(forked)
          })
          yield* Effect.exit(write(Effect.andThen(forkInNested, Effect.fail("no"))))
          assert.strictEqual(yield* get("late"), undefined)
          assert.deepStrictEqual(seen, ["undone"])
          yield* write(forkInNested)
          assert.strictEqual(yield* get("late"), 1)
          assert.deepStrictEqual(seen, ["undone", "committed"])
        })
      )
    )

    effect("keeps sibling savepoints apart", () =>
      run(
        Effect.gen(function* () {
          yield* write(
            Effect.all(
              Array.from({ length: 8 }, (_, i) =>
                Effect.exit(
                  write(
                    set(`cell${i}`, i).pipe(
                      Effect.andThen(Effect.yieldNow),
                      Effect.andThen(i % 2 === 0 ? Effect.void : Effect.fail("odd"))
                    )
                  )
                )
              ),
              { concurrency: "unbounded" }
            )
          )
          assert.deepStrictEqual(yield* Effect.all(Array.from({ length: 8 }, (_, i) => get(`cell${i}`))), [
            0,
            undefined,
            2,
            undefined,
            4,
            undefined,
            6,
            undefined
          ])
        })
      )
    )

    effect("runs afterCommit once, in order, with the caller's services, and drops it on rollback", () =>
      run(
        Effect.gen(function* () {
          class Name extends Context.Service<Name, string>()("Name") {}
          const seen: Array<string> = []
          const note = (text: string) =>
            afterCommit(
              Name.use((name) =>
                Effect.map(Effect.option(get("n")), (n) => {
                  seen.push(`${text}:${name}:${Option.getOrUndefined(n)}`)
                })
              )
            )
          const hooks = Effect.gen(function* () {
            yield* set("n", 1)
            yield* note("first")
            yield* Effect.exit(write(Effect.andThen(note("dropped"), Effect.fail("no"))))
            yield* write(note("second"))
            yield* Effect.provideService(note("third"), Name, "B")
            assert.deepStrictEqual(seen, [])
          })
          yield* Effect.provideService(write(hooks), Name, "A")
          assert.deepStrictEqual(seen, ["first:A:1", "second:A:1", "third:B:1"])
          const failing = Effect.andThen(hooks, Effect.fail("no"))
          seen.length = 0
          assert.deepStrictEqual(yield* Effect.exit(Effect.provideService(write(failing), Name, "A")), Exit.fail("no"))
          assert.deepStrictEqual(seen, [])
        })
      )
    )

    effect("runs afterCommit outside of the write", () =>
      run(
        Effect.gen(function* () {
          const seen: Array<boolean> = []
          const look = Effect.map(
            Effect.serviceOption(WriteTransaction),
            (inside) => void seen.push(Option.isSome(inside))
          )
          yield* write(Effect.andThen(afterCommit(look), write(Effect.andThen(look, afterCommit(look)))))
          assert.deepStrictEqual(seen, [true, false, false])
        })
      )
    )

    effect("goes on after an afterCommit callback died", () =>
      run(
        Effect.gen(function* () {
          let ran = false
          yield* write(
            Effect.gen(function* () {
              yield* set("n", 1)
              yield* afterCommit(Effect.die("bug"))
              yield* afterCommit(Effect.sync(() => void (ran = true)))
            })
          )
          assert.isTrue(ran)
          assert.strictEqual(yield* get("n"), 1)
        })
      )
    )

    effect("undoes state in memory in reverse order, also that of a nested write", () =>
      run(
        Effect.gen(function* () {
          const undone: Array<string> = []
          const register = (text: string) =>
            WriteTransaction.use((transaction) => transaction.onRollback(() => void undone.push(text)))
          const body = Effect.gen(function* () {
            yield* register("first")
            yield* write(register("nested"))
            yield* Effect.exit(write(Effect.andThen(register("alone"), Effect.fail("no"))))
            assert.deepStrictEqual(undone.splice(0), ["alone"])
            yield* register("last")
          })
          yield* write(body)
          assert.deepStrictEqual(undone, [])
          yield* Effect.exit(write(Effect.andThen(body, Effect.fail("no"))))
          assert.deepStrictEqual(undone, ["last", "nested", "first"])
        })
      )
    )

    effect("lets a waiting write be interrupted", () =>
      run(
        Effect.gen(function* () {
          const started = yield* Deferred.make<void>()
          const finish = yield* Deferred.make<void>()
          const first = yield* Effect.forkChild(
            write(Effect.andThen(Deferred.succeed(started, undefined), Deferred.await(finish)))
          )
          yield* Deferred.await(started)
          const second = yield* Effect.forkChild(write(set("never", 1)))
          yield* Effect.yieldNow
          yield* Fiber.interrupt(second)
          yield* Deferred.succeed(finish, undefined)
          yield* Fiber.join(first)
          assert.isUndefined(yield* get("never"))
          yield* write(set("after", 1))
          assert.strictEqual(yield* get("after"), 1)
        })
      )
    )

    nestingTests({ run, get, set, live: options.conflicts === true })

    if (options.twoConnections !== undefined) {
      const twoConnections = options.twoConnections

      it.live("loses no update between two connections, and no conflict reaches a caller", () =>
        Effect.gen(function* () {
          const connections = yield* twoConnections()
          const increment = write(
            Effect.gen(function* () {
              const value = (yield* get("n")) ?? 0
              yield* Effect.yieldNow
              yield* set("n", value + 1)
            })
          )
          yield* Effect.forEach(
            Array.from({ length: 60 }, (_, i) => connections[i % 2 === 0 ? 0 : 1]),
            (connection) => Effect.provideContext(increment, connection),
            { concurrency: "unbounded", discard: true }
          )
          assert.strictEqual(yield* Effect.provideContext(get("n"), connections[0]), 60)
        })
      )

      it.live("lets exactly one of two check-then-insert writes win", () =>
        Effect.gen(function* () {
          const connections = yield* twoConnections()
          const claim = (cell: string, value: number) =>
            write(
              Effect.gen(function* () {
                if ((yield* get(cell)) !== undefined) return false
                yield* Effect.yieldNow
                yield* Cells.use((cells) => cells.insert(cell, value))
                return true
              })
            )
          for (let round = 0; round < 10; round++) {
            const won = yield* Effect.all(
              connections.map((connection, i) => Effect.provideContext(claim(`cell${round}`, i), connection)),
              { concurrency: "unbounded" }
            )
            assert.strictEqual(won.filter((won) => won).length, 1)
          }
        })
      )
    }
  })
}
