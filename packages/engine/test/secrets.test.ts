import { assert, describe, it } from "@effect/vitest"
import { sha256 } from "@strata/durable/Digest"
import * as Action from "@strata/engine/Action"
import * as StepKeys from "@strata/engine/StepKeys"
import { Journal } from "@strata/journal/Journal"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Redacted from "effect/Redacted"
import { MinimumLogLevel } from "effect/References"
import * as Schema from "effect/Schema"
import * as Tracer from "effect/Tracer"
import { inspect } from "node:util"
import * as Tiers from "./tiers.ts"

const secret = "hunter2-hunter2"
const path = "plain-input"

class Refused extends Schema.TaggedError<Refused>("test/Refused")("Refused", {
  token: Schema.Redacted(Schema.String),
  why: Schema.String
}) {}

const action = Action.make({
  name: "login",
  version: "1",
  input: Schema.Struct({ token: Schema.Redacted(Schema.String), path: Schema.String }),
  success: Schema.Int,
  error: Refused,
  run: ({ path: input, token }) => {
    if (input === "refused") return Effect.fail(new Refused({ token, why: Redacted.value(token) }))
    if (input === "defect") return Effect.die(Redacted.value(token))
    return Effect.succeed(input === "invalid" ? 1.5 : 1)
  }
})

/** Everything that is said in the course of an effect: what is logged, spans, metrics, and the journal afterwards. */
const overheard = <A, E>(effect: Effect.Effect<A, E, Action.Services>) =>
  Effect.gen(function* () {
    const logged: Array<string> = []
    const spans: Array<Tracer.NativeSpan> = []
    const exit = yield* Effect.exit(effect).pipe(
      Effect.provideService(
        Tracer.Tracer,
        Tracer.make({
          span: (options) => {
            const span = new Tracer.NativeSpan(options)
            spans.push(span)
            return span
          }
        })
      ),
      Effect.provide(Logger.layer([Logger.make((entry) => void logged.push(inspect(entry.message, { depth: 9 })))])),
      Effect.provideService(MinimumLogLevel, "All")
    )
    const { readAll } = yield* Journal
    const journal = JSON.stringify(yield* readAll())
    const attributes = spans.map(({ attributes, events, name }) => inspect({ name, attributes, events }, { depth: 9 }))
    const metrics = inspect(yield* Metric.snapshot, { depth: 9 })
    assert.isAbove(spans.length, 0)
    return { exit, journal, said: [...logged, ...attributes, journal, metrics].join("\n") }
  }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))

const run = (input: string, token = secret) => action.run({ path: input, token: Redacted.make(token) })

const secretSuite = <E>(name: string, layer: Layer.Layer<Action.Services, E>) =>
  describe(`a secret in an input, on ${name}`, () => {
    for (const input of [path, "refused", "defect", "invalid"]) {
      it.effect(`is nowhere to be found after a body that is ${input}`, () =>
        Effect.gen(function* () {
          const { journal, said } = yield* overheard(run(input))
          assert.notInclude(said, secret)
          // Nor what else the input was.
          assert.notInclude(said, path)
          assert.include(journal, "login")
        }).pipe(Effect.provide(layer))
      )
    }

    it.effect("is in no error of the engine", () =>
      Effect.gen(function* () {
        const { exit } = yield* overheard(run("invalid"))
        assert.isTrue(Exit.isFailure(exit))
        if (Exit.isFailure(exit)) assert.notInclude(Cause.pretty(exit.cause), secret)
      }).pipe(Effect.provide(layer))
    )

    it.effect("is part of the key", () =>
      Effect.gen(function* () {
        const one = yield* action.key({ path, token: Redacted.make(secret) })
        const other = yield* action.key({ path, token: Redacted.make("another") })
        assert.notStrictEqual(one, other)
      })
    )

    it.effect("cannot be found out by trying when there is a pepper", () =>
      Effect.gen(function* () {
        const guess = sha256(
          JSON.stringify({
            action: "login",
            environment: [null, null],
            input: { path, token: secret },
            version: "1"
          })
        )
        assert.include((yield* overheard(run(path))).said, guess)
        const peppered = Effect.provideService(run(path), StepKeys.Pepper, Redacted.make("pepper-pepper"))
        const { said } = yield* Effect.provide(overheard(peppered), Layer.fresh(layer))
        assert.notInclude(said, guess)
        assert.notInclude(said, "pepper-pepper")
      }).pipe(Effect.provide(layer))
    )
  })

secretSuite("memory", Tiers.memory)
secretSuite("SQLite", Tiers.sqlite)
