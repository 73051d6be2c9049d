import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { DatabaseSync } from "node:sqlite"
import * as Query from "../src/Query.ts"

const passages = ["red fox", "red wolf", "grey wolf den", "foo_bar baz", "col:val pair", "café crème", "ΑΘΗΝΑ city"]

/** A real index, so that what FTS5 makes of an expression is what is tested. */
const openIndex = Effect.acquireRelease(
  Effect.sync(() => {
    const database = new DatabaseSync(":memory:")
    database.exec("CREATE VIRTUAL TABLE passages USING fts5(body, tokenize = 'unicode61 remove_diacritics 2')")
    const insert = database.prepare("INSERT INTO passages (body) VALUES (?)")
    for (const passage of passages) insert.run(passage)
    const select = database.prepare("SELECT body FROM passages WHERE passages MATCH ? ORDER BY rowid")
    return {
      search: (query: Query.Query) => select.all(Query.toFts5(query)).map((row) => String(row["body"])),
      close: () => database.close()
    }
  }),
  (index) => Effect.sync(() => index.close())
)

const answers = (input: string) =>
  Effect.gen(function* () {
    const index = yield* openIndex
    return index.search(yield* Effect.fromResult(Query.parse(input)))
  })

const reasonOf = (input: string) =>
  Result.match(Query.parse(input), { onFailure: (error) => error.reason._tag, onSuccess: () => "searched" })

const fragments = [
  '"',
  '""',
  "'",
  "(",
  ")",
  "*",
  "-",
  "--",
  "^",
  "+",
  ":",
  ",",
  ".",
  "\\",
  "%",
  "_",
  "{",
  "}",
  ";",
  " ",
  "  ",
  "\n",
  "\0",
  "AND",
  "OR",
  "NOT",
  "NEAR",
  "NEAR(",
  "red",
  "fox",
  "wolf",
  "body:",
  "col:val",
  "foo_bar",
  "😀",
  "🦠",
  "\u0301",
  "é",
  "日本",
  "\ud800",
  "\udc00",
  "\u200b",
  "\u00a0",
  "\ufeff",
  "\u19b0",
  "1",
  "-fox",
  'red"fox',
  "a*b",
  "**"
] as const

describe("Query", () => {
  describe("searches", () => {
    const cases: ReadonlyArray<readonly [query: string, found: ReadonlyArray<string>]> = [
      ["red", ["red fox", "red wolf"]],
      ["red wolf", ["red wolf"]],
      ["wolf red", ["red wolf"]],
      ['"red wolf"', ["red wolf"]],
      ['"wolf red"', []],
      ["wo*", ["red wolf", "grey wolf den"]],
      ['"red wo"*', ["red wolf"]],
      ["wolf -red", ["grey wolf den"]],
      ['wolf -"grey wolf"', ["red wolf"]],
      ["wolf NOT red", ["grey wolf den"]],
      ["fox OR den", ["red fox", "grey wolf den"]],
      ["fox OR wolf red", ["red fox", "red wolf"]],
      ["red fox OR wolf -fox", ["red wolf"]],
      ["red AND wolf", ["red wolf"]],
      ["foo_bar", ["foo_bar baz"]],
      ["foo_ba*", ["foo_bar baz"]],
      ["bar_foo", []],
      ["col:val", ["col:val pair"]],
      ["body:red", []],
      ["--red", ["red fox", "red wolf"]],
      ["CAFE", ["café crème"]],
      ["αθηνα", ["ΑΘΗΝΑ city"]]
    ]
    it.effect.each(cases)("%s", ([query, found]) =>
      Effect.map(answers(query), (bodies) => assert.deepStrictEqual(bodies, found))
    )
  })

  describe("takes what is no syntax for text", () => {
    const cases: ReadonlyArray<readonly [query: string, found: ReadonlyArray<string>]> = [
      ['"red', ["red fox", "red wolf"]],
      ['red"', ["red fox", "red wolf"]],
      ['"red fox" "wolf', []],
      ["(red", ["red fox", "red wolf"]],
      ["red))", ["red fox", "red wolf"]],
      ["red *", ["red fox", "red wolf"]],
      ["red -", ["red fox", "red wolf"]],
      ["red ^fox", ["red fox"]],
      ["{red} + fox;", ["red fox"]],
      ["red\0fox", ["red fox"]],
      ["red 😀", ["red fox", "red wolf"]],
      ["red -😀", ["red fox", "red wolf"]],
      ["NEAR(red fox)", []],
      ["red OR", []],
      ["OR red", []]
    ]
    it.effect.each(cases)("%s", ([query, found]) =>
      Effect.map(answers(query), (bodies) => assert.deepStrictEqual(bodies, found))
    )
  })

  it("refuses what has no word", () => {
    for (const input of ["", " ", "\n\t", "\0"]) assert.strictEqual(reasonOf(input), "Empty", JSON.stringify(input))
    for (const input of ["*", "-", '"', '""', '"!"', "()", "😀", "-*", "\u0301", "\ud800"]) {
      assert.strictEqual(reasonOf(input), "NotSearchable", JSON.stringify(input))
    }
    for (const input of ["-red", '-"red fox"', "-red -fox"])
      assert.strictEqual(reasonOf(input), "OnlyExclusions", input)
  })

  it("searches lone operators as words", () => {
    for (const input of ["AND", "OR", "NOT", "NEAR", "AND OR NOT"])
      assert.strictEqual(reasonOf(input), "searched", input)
  })

  it("refuses what is too long, and says so in one line", () => {
    const result = Query.parse("x ".repeat(600))
    assert.isTrue(Result.isFailure(result))
    if (Result.isFailure(result)) {
      assert.deepStrictEqual(result.failure.reason, { _tag: "TooLong", length: 1_199, limit: Query.maxLength })
      assert.strictEqual(result.failure.message, "the query has 1199 characters, the limit is 1000")
    }
  })

  it("says the reason in one line", () => {
    for (const input of ["", "*", "-red"]) {
      const result = Query.parse(input)
      assert.isTrue(Result.isFailure(result))
      if (Result.isFailure(result)) assert.match(result.failure.message, /^the query [^\n]+$/)
    }
  })

  it("reads any query up to the limit", () => {
    for (const part of ["x ", "x OR ", "-x ", '"x" ', '"', "*", "(", "x* "]) {
      assert.isString(reasonOf(part.repeat(Math.floor(Query.maxLength / part.length))))
    }
  })

  it("keeps the terms as data", () => {
    assert.deepStrictEqual(
      Query.parse('red fox* OR "grey wolf" -den'),
      Result.succeed({
        all: [
          [{ text: "red", prefix: false }],
          [
            { text: "fox", prefix: true },
            { text: "grey wolf", prefix: false }
          ]
        ],
        none: [{ text: "den", prefix: false }]
      })
    )
  })

  it("keeps quotes inside literals, in terms from elsewhere too", () => {
    const query = { all: [[{ text: 'say "hi" OR', prefix: true }]], none: [{ text: '"', prefix: false }] }
    assert.strictEqual(Query.toFts5(query), `("say ""hi"" OR"*) NOT ("""")`)
  })

  it.effect("never lets FTS5 fail, nor match everything, whatever the input", () =>
    Effect.gen(function* () {
      const index = yield* openIndex
      const check = (input: string) => {
        const query = Query.parse(input)
        if (Result.isSuccess(query)) assert.isBelow(index.search(query.success).length, passages.length, input)
      }
      for (const a of fragments) for (const b of fragments) for (const c of ["", ...fragments]) check(`${a}${b} ${c}`)
    })
  )

  it.effect.prop(
    "never lets FTS5 fail on random queries",
    { parts: Schema.Array(Schema.Literals(fragments)), noise: Schema.String, spaced: Schema.Boolean },
    ({ parts, noise, spaced }) =>
      Effect.gen(function* () {
        const index = yield* openIndex
        for (const input of [parts.join(spaced ? " " : ""), noise, `${parts.join("")}${noise}`]) {
          const query = Query.parse(input)
          if (Result.isSuccess(query)) assert.isBelow(index.search(query.success).length, passages.length, input)
        }
      }),
    { arbitrary: { runs: 500 } }
  )

  it.effect("runs the longest queries", () =>
    Effect.gen(function* () {
      const index = yield* openIndex
      for (const part of ["x ", "x OR ", "x -y ", '"x" ', "x* "]) {
        const query = yield* Effect.fromResult(Query.parse(part.repeat(Math.floor(Query.maxLength / part.length))))
        assert.deepStrictEqual(index.search(query), [])
      }
    })
  )
})
