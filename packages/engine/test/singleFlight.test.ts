import { assert, describe, it } from "@effect/vitest"
import { StepKey } from "@strata/cache/StepKey"
import { sha256 } from "@strata/durable/Digest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as SingleFlight from "../src/internal/singleFlight.ts"

const key = (name: string) => StepKey.make(sha256(name))

const runIn = <A, E, R>(
  flights: SingleFlight.Flights,
  name: string,
  effect: Effect.Effect<A, E, R>,
  options: { readonly fresh?: boolean } = {}
) =>
  SingleFlight.run({
    flights,
    key: key(name),
    fresh: options.fresh === true,
    effect,
    onJoin: Effect.void,
    recursive: () => "recursive" as const
  })

/** What callers do, one after the other: ask for the run, or be interrupted; then the run under way ends. */
const Step = Schema.Union([
  Schema.Struct({ _tag: Schema.Literal("Ask") }),
  Schema.Struct({
    _tag: Schema.Literal("Interrupt"),
    caller: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 }))
  }),
  Schema.Struct({ _tag: Schema.Literal("End"), fails: Schema.Boolean })
])

describe("runs of one key", () => {
  it.effect.prop(
    "have one body at a time, and an outcome for everyone who is not interrupted",
    { steps: Schema.Array(Step).check(Schema.isMaxLength(30)) },
    ({ steps }) =>
      Effect.gen(function* () {
        const flights: SingleFlight.Flights = new Map()
        const callers: Array<Fiber.Fiber<string, string>> = []
        const interrupted = new Set<Fiber.Fiber<string, string>>()
        let under: Deferred.Deferred<string, string> | undefined
        let bodies = 0
        let ended = 0
        const body = Effect.suspend(() => {
          assert.isUndefined(under, "two bodies at a time")
          const end = Deferred.makeUnsafe<string, string>()
          under = end
          bodies++
          return Effect.ensuring(
            Deferred.await(end),
            Effect.sync(() => {
              under = undefined
            })
          )
        })
        for (const step of steps) {
          switch (step._tag) {
            case "Ask":
              callers.push(yield* Effect.forkChild(runIn(flights, "a", body), { startImmediately: true }))
              break
            case "Interrupt": {
              const caller = callers[step.caller]
              if (caller === undefined || interrupted.has(caller) || caller.pollUnsafe() !== undefined) break
              interrupted.add(caller)
              yield* Fiber.interrupt(caller)
              break
            }
            case "End":
              if (under === undefined) break
              ended++
              yield* step.fails ? Deferred.fail(under, `failed ${ended}`) : Deferred.succeed(under, `done ${ended}`)
          }
          yield* Effect.yieldNow
          yield* Effect.yieldNow
          // Whoever waits has a body that runs for it, and nobody else has.
          const waiting = callers.filter((caller) => caller.pollUnsafe() === undefined)
          assert.strictEqual(under !== undefined, waiting.length > 0)
          assert.strictEqual(flights.size, waiting.length > 0 ? 1 : 0)
        }
        if (under !== undefined) yield* Deferred.succeed(under, "done at last")
        for (const caller of callers) {
          const exit = yield* Fiber.await(caller)
          assert.strictEqual(Exit.hasInterrupts(exit), interrupted.has(caller))
        }
        assert.strictEqual(flights.size, 0)
        assert.isAtMost(bodies, callers.length)
      }),
    { arbitrary: { runs: 300, seed: 7 } }
  )

  it.effect("share a failure, and remember it no longer than they are under way", () =>
    Effect.gen(function* () {
      const flights: SingleFlight.Flights = new Map()
      const gate = yield* Deferred.make<void>()
      let bodies = 0
      const body = Effect.andThen(
        Effect.sync(() => bodies++),
        Effect.andThen(Deferred.await(gate), Effect.fail("no"))
      )
      const callers = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 5 }, () => Effect.exit(runIn(flights, "a", body))),
          { concurrency: "unbounded" }
        ),
        { startImmediately: true }
      )
      yield* Deferred.succeed(gate, undefined)
      for (const exit of yield* Fiber.join(callers)) assert.deepStrictEqual(exit, Exit.fail("no"))
      assert.strictEqual(bodies, 1)
      yield* Effect.exit(runIn(flights, "a", body))
      assert.strictEqual(bodies, 2)
    })
  )

  it.effect("that have to be fresh do not take the outcome of one that need not", () =>
    Effect.gen(function* () {
      const flights: SingleFlight.Flights = new Map()
      const gate = yield* Deferred.make<void>()
      const asked = yield* Effect.forkChild(runIn(flights, "a", Effect.as(Deferred.await(gate), "old")), {
        startImmediately: true
      })
      const fresh = yield* Effect.forkChild(runIn(flights, "a", Effect.succeed("new"), { fresh: true }), {
        startImmediately: true
      })
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(yield* Fiber.join(asked), "old")
      assert.strictEqual(yield* Fiber.join(fresh), "new")
    })
  )

  it.effect("that would wait for one another end", () =>
    Effect.gen(function* () {
      const flights: SingleFlight.Flights = new Map()
      const bothRun = yield* Deferred.make<void>()
      const own = runIn(
        flights,
        "self",
        Effect.suspend((): Effect.Effect<string, "recursive"> => own)
      )
      assert.strictEqual(yield* Effect.flip(own), "recursive")

      const a: Effect.Effect<string, "recursive"> = runIn(
        flights,
        "a",
        Effect.andThen(
          Deferred.await(bothRun),
          Effect.suspend(() => b)
        )
      )
      const b: Effect.Effect<string, "recursive"> = runIn(
        flights,
        "b",
        Effect.andThen(
          Deferred.await(bothRun),
          Effect.suspend(() => a)
        )
      )
      const first = yield* Effect.forkChild(Effect.exit(a), { startImmediately: true })
      const second = yield* Effect.forkChild(Effect.exit(b), { startImmediately: true })
      yield* Deferred.succeed(bothRun, undefined)
      for (const caller of [first, second]) {
        assert.strictEqual(yield* Effect.flip(Effect.flatten(Fiber.join(caller))), "recursive")
      }
      assert.strictEqual(flights.size, 0)
    })
  )
})
