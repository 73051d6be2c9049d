import { assert, describe, it } from "@effect/vitest"
import * as Event from "@strata/journal/Event"
import type { JournalError } from "@strata/journal/JournalError"
import * as Redaction from "@strata/journal/Redaction"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

const secret = "hunter2-hunter2"
const hidden = Redacted.make(secret)

class Account extends Schema.Class<Account>("Account")({
  user: Schema.String,
  token: Schema.Redacted(Schema.String)
}) {}

interface Tree {
  readonly secret: Redacted.Redacted
  readonly children: ReadonlyArray<Tree>
}
const Tree: Schema.Codec<Tree, unknown> = Schema.Struct({
  secret: Schema.Redacted(Schema.String),
  children: Schema.Array(Schema.suspend((): Schema.Codec<Tree, unknown> => Tree))
})

/** A Schema with a value of it, and what is kept of the value. */
const kept = <A>(name: string, schema: Schema.Codec<A, unknown>, value: A, json: Schema.Json) => ({
  name,
  run: Effect.gen(function* () {
    const event = Event.make("event", schema)
    const encoded = yield* event.make(value).encode
    assert.deepStrictEqual(encoded, json)
    assert.notInclude(JSON.stringify(encoded), "hunter2")
    // What was kept decodes, and gives nothing away.
    const decoded = yield* Effect.fromResult(event.decodePayload(encoded))
    assert.notInclude(JSON.stringify(decoded), "hunter2")
    return decoded
  })
})

const marker = Redaction.marker

const scenarios: ReadonlyArray<{
  readonly name: string
  readonly run: Effect.Effect<unknown, JournalError | Schema.SchemaError>
}> = [
  kept("a value", Schema.Redacted(Schema.String), hidden, marker),
  kept(
    "a struct",
    Schema.Struct({ a: Schema.Redacted(Schema.String), b: Schema.Int }),
    { a: hidden, b: 1 },
    {
      a: marker,
      b: 1
    }
  ),
  kept(
    "no string",
    Schema.Struct({ pin: Schema.Redacted(Schema.Int) }),
    { pin: Redacted.make(1234) },
    {
      pin: marker
    }
  ),
  kept(
    "a struct within",
    Schema.Redacted(Schema.Struct({ key: Schema.String })),
    Redacted.make({ key: secret }),
    marker
  ),
  kept("a plain encoded side", Schema.RedactedFromValue(Schema.String), hidden, marker),
  kept(
    "a label",
    Schema.Redacted(Schema.String, { label: "token" }),
    Redacted.make(secret, { label: "token" }),
    marker
  ),
  kept(
    "what refuses to be encoded otherwise",
    Schema.Redacted(Schema.String, { disallowJsonEncode: true }),
    hidden,
    marker
  ),
  kept(
    "an optional key",
    Schema.Struct({ a: Schema.optional(Schema.Redacted(Schema.String)) }),
    { a: hidden },
    {
      a: marker
    }
  ),
  kept("an absent key", Schema.Struct({ a: Schema.optional(Schema.Redacted(Schema.String)) }), {}, {}),
  kept("lists", Schema.Array(Schema.Redacted(Schema.String)), [hidden, hidden], [marker, marker]),
  kept("tuples", Schema.Tuple([Schema.Int, Schema.Redacted(Schema.String)]), [1, hidden], [1, marker]),
  kept("records", Schema.Record(Schema.String, Schema.Redacted(Schema.String)), { a: hidden }, { a: marker }),
  kept("unions", Schema.Union([Schema.Int, Schema.Redacted(Schema.String)]), hidden, marker),
  kept("classes", Account, new Account({ user: "ada", token: hidden }), { user: "ada", token: marker }),
  kept(
    "recursion",
    Tree,
    { secret: hidden, children: [{ secret: hidden, children: [] }] },
    {
      secret: marker,
      children: [{ secret: marker, children: [] }]
    }
  ),
  kept(
    "dates beside it",
    Schema.Struct({ at: Schema.Date, token: Schema.Redacted(Schema.String) }),
    { at: new Date(0), token: hidden },
    { at: "1970-01-01T00:00:00.000Z", token: marker }
  )
]

describe("payloads with what is Redacted", () => {
  for (const { name, run } of scenarios) {
    it.effect(`hold nothing of ${name}`, () => run)
  }

  it.effect("hold nothing of an Option", () =>
    Effect.gen(function* () {
      const event = Event.make("event", Schema.Option(Schema.Redacted(Schema.String)))
      const encoded = yield* event.make(Option.some(hidden)).encode
      assert.notInclude(JSON.stringify(encoded), "hunter2")
      assert.include(JSON.stringify(encoded), marker)
      const decoded = Result.getOrThrow(event.decodePayload(encoded))
      assert.isTrue(Redacted.isRedacted(Option.getOrThrow(decoded)))
    })
  )

  it.effect("give back a Redacted that has no content", () =>
    Effect.gen(function* () {
      const decoded = yield* kept("", Account, new Account({ user: "ada", token: hidden }), {
        user: "ada",
        token: marker
      }).run
      assert.instanceOf(decoded, Account)
      assert.isTrue(Redacted.isRedacted(decoded.token))
      assert.throws(() => Redacted.value(decoded.token))
    })
  )
})

describe("rules", () => {
  const payload = { a: { b: 1, c: [{ b: 2 }, { b: 3 }] }, b: 4 }
  for (const [name, rules, expected] of [
    ["nothing without rules", [], payload],
    ["one place", [{ path: ["a", "b"] }], { ...payload, a: { ...payload.a, b: marker } }],
    ["a place that is not there", [{ path: ["a", "x"] }, { path: ["a", "b", "c"] }], payload],
    [
      "any one key",
      [{ path: ["a", "c", "*", "b"], replacement: null }],
      { ...payload, a: { b: 1, c: [{ b: null }, { b: null }] } }
    ],
    ["the number of an item", [{ path: ["a", "c", "1"] }], { ...payload, a: { b: 1, c: [{ b: 2 }, marker] } }],
    ["any depth", [{ path: ["**", "b"] }], { a: { b: marker, c: [{ b: marker }, { b: marker }] }, b: marker }],
    [
      "any depth below a key",
      [{ path: ["a", "**", "b"] }],
      { a: { b: marker, c: [{ b: marker }, { b: marker }] }, b: 4 }
    ],
    ["everything below a key", [{ path: ["a", "**"] }], { a: marker, b: 4 }],
    ["the whole payload", [{ path: [] }], marker],
    [
      "by the first rule that matches",
      [{ path: ["b"], replacement: 0 }, { path: ["**", "b"] }],
      { a: { b: marker, c: [{ b: marker }, { b: marker }] }, b: 0 }
    ],
    [
      "of its type",
      [
        { type: "other", path: ["b"] },
        { type: "event", path: ["a"] }
      ],
      { a: marker, b: 4 }
    ]
  ] satisfies ReadonlyArray<readonly [string, ReadonlyArray<Redaction.Rule>, Schema.Json]>) {
    it(`replace ${name}`, () => {
      assert.deepStrictEqual(Redaction.make(rules).redact("event", payload), expected)
    })
  }
})
