/**
 * Contract 16: redaction.
 *
 * @since 0.1.0
 */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { Compaction } from "../Compaction.ts"
import * as Event from "../Event.ts"
import * as Fold from "../Fold.ts"
import { Journal } from "../Journal.ts"
import type { JournalStorage, StoredState } from "../JournalStorage.ts"
import * as Harness from "./harness.ts"

const secret = "hunter2-hunter2"

const Login = Event.make(
  "login",
  Schema.Struct({ user: Schema.String, token: Schema.Redacted(Schema.String.check(Schema.isMinLength(12))) })
)

/**
 * @since 0.1.0
 * @category suites
 */
export const redacting = <E>(tier: Harness.Tier<E>): void => {
  const { append, refusal, stream } = Harness
  const layer = (options?: Harness.ServiceOptions) => Harness.services(options).pipe(Layer.provide(tier.layer))

  it.effect("16: keeps nothing that is redacted, by type or by rule", () => {
    const written: Array<string> = []
    const rules = [
      { path: ["**", "password"] },
      { type: "request", path: ["headers", "*", "value"] },
      { type: "request", path: ["attempts"], replacement: 0 }
    ]
    return Effect.gen(function* () {
      const journal = yield* Journal
      const request = { password: secret, headers: [{ name: "a", value: secret }], attempts: secret, at: "home" }
      yield* append(
        stream,
        Login.make({ user: "ada", token: Redacted.make(secret) }),
        Event.json("request", request),
        Event.json("other", { deep: [{ password: secret }], attempts: 3 })
      )
      const entries = yield* journal.read({ stream })
      assert.deepStrictEqual(
        entries.map(({ payload }) => payload),
        [
          { token: "[redacted]", user: "ada" },
          { password: "[redacted]", headers: [{ name: "a", value: "[redacted]" }], attempts: 0, at: "home" },
          { deep: [{ password: "[redacted]" }], attempts: 3 }
        ]
      )
      assert.strictEqual(written.length, 3)
      assert.notInclude(written.join(), "hunter2")

      const login = Option.getOrThrow(yield* Event.decoder([Login])(entries[0]!))
      assert.isTrue(Redacted.isRedacted(login.payload.token))
      assert.throws(() => Redacted.value(login.payload.token))
    }).pipe(
      Effect.provide(
        layer({
          rules,
          intercept: (storage) => ({
            ...storage,
            append: (now, stream, events) => {
              written.push(...events.map((event) => JSON.stringify(event)))
              return storage.append(now, stream, events)
            }
          })
        })
      )
    )
  })

  it.effect("16: names no part of a payload in an error", () =>
    Effect.gen(function* () {
      const Strict = Event.make("strict", Schema.Struct({ code: Schema.String.check(Schema.isMaxLength(3)) }))
      const reason = yield* refusal(append(stream, Strict.make({ code: secret })))
      assert.strictEqual(reason._tag, "EncodeFailed")
      assert.notInclude(JSON.stringify(reason) + reason.message, "hunter2")
      const surrogate = yield* refusal(append(stream, Event.json("strict", { code: `${secret}\ud800` })))
      assert.strictEqual(surrogate._tag, "EncodeFailed")
      assert.notInclude(JSON.stringify(surrogate) + surrogate.message, "hunter2")
    }).pipe(Effect.provide(layer()))
  )

  it.effect("16: leaves states of checkpoints as they are", () => {
    const written: Array<StoredState> = []
    const passwords = Fold.make({
      key: "passwords",
      scope: "stream",
      events: [Event.make("set", Schema.Struct({ name: Schema.String }))],
      state: Schema.Struct({ password: Schema.String, count: Schema.Int }),
      initial: () => ({ password: "the word itself", count: 0 }),
      reduce: (state) => ({ ...state, count: state.count + 1 })
    })
    const intercept = (storage: JournalStorage["Service"]): JournalStorage["Service"] => ({
      ...storage,
      saveStates: (now, stream, seq, states) => {
        written.push(...states)
        return storage.saveStates(now, stream, seq, states)
      }
    })
    return Effect.gen(function* () {
      yield* append(stream, Event.json("set", { name: "a" }), Event.json("set", { name: "b" }))
      yield* Compaction.use((compaction) => compaction.compact({ stream, seq: 2 }))
      assert.deepStrictEqual(written, [{ fold: "passwords", state: `{"count":2,"password":"the word itself"}` }])
    }).pipe(Effect.provide(layer({ folds: [passwords], rules: [{ path: ["**", "password"] }], intercept })))
  })
}
