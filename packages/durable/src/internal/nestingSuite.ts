import { assert, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import type { DurableWriter } from "../DurableWriter.ts"
import { afterCommit, insideTransaction, insideWrite, write, WriteTransaction } from "../DurableWriter.ts"

/** What the tests need of a tier. */
export interface Tier<R> {
  readonly run: <A, E>(test: Effect.Effect<A, E, DurableWriter | R>) => Effect.Effect<A, unknown>
  readonly get: (cell: string) => Effect.Effect<number | undefined, unknown, R>
  readonly set: (cell: string, value: number) => Effect.Effect<void, unknown, R | WriteTransaction>
  /** Whether statements take time of the world. */
  readonly live: boolean
}

/** Writes that are nested in others, forked in them, and outlive them. */
export const nestingTests = <R>(tier: Tier<R>): void => {
  const { get, run, set } = tier
  const effect = tier.live ? it.live : it.effect

  effect("rolls back a nested write that is still open when its outer one ends, and lets it write nothing more", () =>
    run(
      Effect.gen(function* () {
        const [started, goOn] = yield* Effect.all([Deferred.make<void>(), Deferred.make<void>()])
        const undone: Array<string> = []
        const slow = Effect.gen(function* () {
          yield* set("half", 1)
          yield* WriteTransaction.use(({ onRollback }) => onRollback(() => undone.push("half")))
          yield* afterCommit(Effect.sync(() => void undone.push("hook")))
          yield* Deferred.succeed(started, undefined)
          yield* Deferred.await(goOn)
          assert.deepStrictEqual(yield* Effect.all([insideWrite, insideTransaction]), [true, false])
          assert.isTrue(Exit.isFailure(yield* Effect.exit(set("rest", 1))))
          assert.isTrue(Exit.isFailure(yield* Effect.exit(write(set("nested", 1)))))
        })
        const forked = yield* write(
          Effect.gen(function* () {
            yield* set("outer", 1)
            const fiber = yield* Effect.forkDetach(write(slow))
            yield* Deferred.await(started)
            return fiber
          })
        )
        assert.deepStrictEqual(undone, ["half"])
        yield* write(Effect.andThen(Deferred.succeed(goOn, undefined), Fiber.await(forked)))
        const exit = yield* Fiber.await(forked)
        assert.isTrue(Exit.isFailure(exit) && Cause.hasFails(exit.cause))
        assert.deepStrictEqual(yield* Effect.all(["outer", "half", "rest", "nested"].map(get)), [
          1,
          undefined,
          undefined,
          undefined
        ])
        assert.deepStrictEqual(undone, ["half"])
      })
    )
  )

  effect("makes a write of its own of a nested one whose turn comes when its outer one has ended", () =>
    run(
      Effect.gen(function* () {
        const [started, goOn] = yield* Effect.all([Deferred.make<void>(), Deferred.make<void>()])
        const open = Effect.andThen(Deferred.succeed(started, undefined), Deferred.await(goOn))
        const fibers = yield* write(
          Effect.gen(function* () {
            const first = yield* Effect.forkDetach(write(Effect.andThen(set("first", 1), open)))
            yield* Deferred.await(started)
            const second = yield* Effect.forkDetach(write(set("second", 1)), { startImmediately: true })
            return { first, second }
          })
        )
        // It does not wait for the one before it, which nothing can end.
        yield* Fiber.join(fibers.second)
        assert.deepStrictEqual(yield* Effect.all(["first", "second"].map(get)), [undefined, 1])
        yield* Deferred.succeed(goOn, undefined)
        assert.isTrue(Exit.isFailure(yield* Fiber.await(fibers.first)))
      })
    )
  )

  effect("fails a write that lost what it wrote beside a nested one that was rolled back", () =>
    run(
      Effect.gen(function* () {
        const [started, goOn] = yield* Effect.all([Deferred.make<void>(), Deferred.make<void>()])
        const open = Effect.andThen(Deferred.succeed(started, undefined), Deferred.await(goOn))
        const beside = (end: Effect.Effect<void, string>) =>
          write(
            Effect.gen(function* () {
              yield* set("outer", 1)
              const fiber = yield* Effect.forkChild(write(Effect.andThen(set("inner", 1), Effect.andThen(open, end))))
              yield* Deferred.await(started)
              yield* set("beside", 1)
              yield* Deferred.succeed(goOn, undefined)
              yield* Fiber.await(fiber)
            })
          )
        assert.isTrue(Exit.isFailure(yield* Effect.exit(beside(Effect.fail("no")))))
        assert.deepStrictEqual(yield* Effect.all(["outer", "inner", "beside"].map(get)), [
          undefined,
          undefined,
          undefined
        ])
        yield* beside(Effect.void)
        assert.deepStrictEqual(yield* Effect.all(["outer", "inner", "beside"].map(get)), [1, 1, 1])
      })
    )
  )

  effect("is inside of a write while that goes on, and no longer", () =>
    run(
      Effect.gen(function* () {
        const questions = Effect.all([insideWrite, insideTransaction])
        for (const end of [Effect.void, Effect.fail("no")]) {
          const ended = yield* Deferred.make<void>()
          assert.deepStrictEqual(yield* questions, [false, false])
          const escaped = yield* Deferred.make<{
            readonly context: Context.Context<DurableWriter | R>
            readonly fiber: Fiber.Fiber<ReadonlyArray<ReadonlyArray<boolean>>, unknown>
          }>()
          const late = Effect.gen(function* () {
            const during = yield* questions
            yield* Deferred.await(ended)
            const after = yield* questions
            const own = yield* write(Effect.andThen(set("late", 1), questions))
            return [during, after, own, yield* questions]
          })
          yield* Effect.exit(
            write(
              Effect.gen(function* () {
                const context = yield* Effect.context<DurableWriter | R>()
                const fiber = yield* Effect.forkDetach(late, { startImmediately: true })
                yield* Deferred.succeed(escaped, { context, fiber })
                assert.deepStrictEqual(yield* questions, [true, true])
                assert.deepStrictEqual(yield* write(questions), [true, true])
                yield* end
              })
            )
          )
          const { context, fiber } = yield* Deferred.await(escaped)
          assert.deepStrictEqual(yield* Effect.provideContext(questions, context), [false, false])
          yield* Deferred.succeed(ended, undefined)
          assert.deepStrictEqual(yield* Fiber.join(fiber), [
            [true, true],
            [false, false],
            [true, true],
            [false, false]
          ])
          assert.strictEqual(yield* get("late"), 1)
          // It reads as any other fiber does.
          assert.strictEqual(yield* Effect.provideContext(get("late"), context), 1)
        }
      })
    )
  )

  const prop = tier.live ? it.live.prop : it.effect.prop
  prop(
    "answers what is stored, however writes are nested, forked, failed and interrupted",
    { roots: Schema.Array(Node2).check(Schema.isMaxLength(4)) },
    ({ roots }) => run(perform(tier, roots)),
    { arbitrary: { runs: tier.live ? 40 : 250, seed: 5 } }
  )
}

// ---------------------------------------------------------------------------------------------------------------------
// plans
// ---------------------------------------------------------------------------------------------------------------------

const simple = Schema.Literals(["set", "set", "look", "pause", "pause", "long"])

const ending = {
  end: Schema.Literals(["succeed", "succeed", "succeed", "succeed", "fail", "die"]),
  /** After how many pauses it is interrupted, if it has not ended by then; -1 for never. */
  interruptAfter: Schema.Literals([-1, -1, -1, -1, 0, 1, 2, 4])
}

/** Nested writes are awaited, or go on beside what follows. */
const how = Schema.Literals(["await", "fork", "fork", "join"])

const Node0 = Schema.Struct({ steps: Schema.Array(simple).check(Schema.isMaxLength(5)), ...ending })

const Node1 = Schema.Struct({
  steps: Schema.Array(Schema.Union([simple, Schema.Struct({ nested: Node0, how })])).check(Schema.isMaxLength(5)),
  ...ending
})

const Node2 = Schema.Struct({
  steps: Schema.Array(Schema.Union([simple, Schema.Struct({ nested: Node1, how })])).check(Schema.isMaxLength(5)),
  ...ending
})

type Step = (typeof simple)["Type"] | { readonly nested: Node; readonly how: (typeof how)["Type"] }

interface Node {
  readonly steps: ReadonlyArray<Step>
  readonly end: "succeed" | "fail" | "die"
  readonly interruptAfter: number
}

// ---------------------------------------------------------------------------------------------------------------------
// model
// ---------------------------------------------------------------------------------------------------------------------

/** One run of a body. */
interface Body {
  readonly cells: Array<string>
  hooks: number
  undone: number
  hasEnded: boolean
  /** Those around it that had not been answered when it began, and so those that it may have joined. */
  readonly around: ReadonlyArray<Call>
  /** Whether the next one around it went on from its begin to its end. */
  isWithin: boolean
}

/** One call of `write`, which runs its body again after a conflict. */
interface Call {
  readonly parent: Body | undefined
  readonly outer: ReadonlyArray<Call>
  readonly bodies: Array<Body>
  exit: Exit.Exit<void, unknown> | undefined
}

const perform = Effect.fnUntraced(function* <R>({ get, live, set }: Tier<R>, roots: ReadonlyArray<Node>) {
  const calls: Array<Call> = []
  const fibers: Array<Fiber.Fiber<unknown, unknown>> = []
  let lastCell = 0
  const pause = (count: number): Effect.Effect<void> =>
    live ? Effect.sleep(count) : Effect.repeat(Effect.yieldNow, { times: count * 2 })

  const body = Effect.fnUntraced(function* (node: Node, call: Call) {
    const { parent } = call
    const around = call.outer.filter(({ exit }) => exit === undefined)
    const run: Body = { cells: [], hooks: 0, undone: 0, hasEnded: false, around, isWithin: parent?.hasEnded === false }
    call.bodies.push(run)
    yield* afterCommit(Effect.sync(() => void run.hooks++))
    yield* WriteTransaction.use(({ onRollback }) => onRollback(() => void run.undone++))
    const steps = Effect.forEach(node.steps, (step) => one(step, call, run), { discard: true })
    yield* Effect.ensuring(
      Effect.andThen(
        steps,
        Effect.suspend(() => ends[node.end])
      ),
      Effect.sync(() => {
        run.hasEnded = true
        run.isWithin &&= parent?.hasEnded === false
      })
    )
  })

  const one = (
    step: Step,
    call: Call,
    run: Body
  ): Effect.Effect<unknown, unknown, DurableWriter | R | WriteTransaction> => {
    switch (step) {
      case "set": {
        const cell = `cell${lastCell++}`
        return Effect.andThen(
          set(cell, 1),
          Effect.sync(() => run.cells.push(cell))
        )
      }
      case "look":
        return get("cell0")
      case "pause":
        return pause(1)
      case "long":
        return pause(4)
      default: {
        const nested = attempt(step.nested, run, [...call.outer, call])
        if (step.how === "await") return Effect.exit(nested)
        const forked = Effect.map(Effect.forkDetach(nested), (fiber) => {
          fibers.push(fiber)
          return fiber
        })
        return step.how === "fork" ? forked : Effect.flatMap(forked, Fiber.join)
      }
    }
  }

  const attempt = Effect.fnUntraced(function* (
    node: Node,
    parent: Body | undefined,
    outer: ReadonlyArray<Call>
  ): Effect.fn.Return<void, unknown, DurableWriter | R> {
    const call: Call = { parent, outer, bodies: [], exit: undefined }
    calls.push(call)
    const answered = Effect.onExit(write(body(node, call)), (exit) => Effect.sync(() => void (call.exit = exit)))
    if (node.interruptAfter < 0) return yield* answered
    const fiber = yield* Effect.forkDetach(answered, { startImmediately: true })
    fibers.push(fiber)
    yield* pause(node.interruptAfter)
    yield* Fiber.interrupt(fiber)
    return yield* Fiber.await(fiber).pipe(Effect.flatten)
  })

  yield* Effect.forEach(roots, (node) => Effect.exit(attempt(node, undefined, [])), { concurrency: "unbounded" })
  for (let fiber = fibers.pop(); fiber !== undefined; fiber = fibers.pop()) yield* Fiber.await(fiber)

  for (const call of calls) {
    const { bodies, exit } = call
    assert(exit !== undefined || bodies.length === 0, "a write was not answered")
    for (const [place, run] of bodies.entries()) {
      const found = (yield* Effect.forEach(run.cells, get)).filter((value) => value === 1).length
      const succeeded = exit !== undefined && Exit.isSuccess(exit) && place === bodies.length - 1
      const interrupted = exit !== undefined && Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)
      const stored = run.hooks > 0
      assert.strictEqual(
        found,
        stored ? run.cells.length : 0,
        "some of a body's rows are there, or gone, or not committed"
      )
      assert.strictEqual(run.hooks + run.undone, 1, "neither committed nor rolled back, or both")
      if (!succeeded && !interrupted) assert.isFalse(stored, "a failure is there")
      if (succeeded && !stored) {
        assert.isTrue(run.around.some(hasFailed), "a success is not there, and no write around it failed")
      }
      if (stored && run.isWithin) assert.isTrue(call.parent!.hooks > 0, "is there without the write that it stood in")
    }
  }
  // Whatever happened, the writer works.
  yield* write(set("last", 1))
  assert.strictEqual(yield* get("last"), 1)
})

/** In one of its runs, at least: after a conflict, nested writes of the first one are gone. */
const hasFailed = ({ bodies, exit }: Call): boolean => bodies.length > 1 || exit === undefined || Exit.isFailure(exit)

const ends = { succeed: Effect.void, fail: Effect.fail("no"), die: Effect.die("bug") }
