import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { sizeLimit, split, targetSize } from "../src/internal/split.ts"

interface Piece {
  readonly body: string
  readonly line: number
}

const pieces = (text: string): ReadonlyArray<Piece> => {
  const found: Array<Piece> = []
  split(text, (body, line) => found.push({ body, line }))
  return found
}

const bare = (text: string): string => text.replace(/\s+/g, "")

const words = (text: string): ReadonlyArray<string> => text.match(/[\p{L}\p{N}\p{M}]+/gu) ?? []

const ingredients = [
  "a",
  "word",
  "Ünïcode",
  "naïve",
  "日本語の文章",
  "句。",
  "x".repeat(300),
  "😀",
  "👩‍👩‍👧",
  "e\u0301",
  "foo_bar(baz);",
  " ",
  "  ",
  "\t",
  "\u00a0",
  "\u3000",
  "\n",
  "\n\n",
  "\n \n",
  "    return x\n",
  "a line of some length.\n"
] as const

const Recipe = Schema.Array(
  Schema.Struct({
    ingredient: Schema.Literals(ingredients),
    times: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 500 }))
  })
)

const assertPassages = (text: string): void => {
  const lines = text.split("\n")
  const found = pieces(text)
  assert.strictEqual(found.map((piece) => bare(piece.body)).join(""), bare(text))
  for (const { body, line } of found) {
    assert.isAtMost(body.length, sizeLimit)
    assert.notStrictEqual(body.trim(), "")
    assert.strictEqual(body, body.trimEnd())
    assert.isTrue(body.isWellFormed(), "cuts a surrogate pair")
    assert.include(lines[line], body.split("\n")[0])
  }
  for (const [index, { line }] of found.entries()) {
    if (index > 0) assert.isAtLeast(line, found[index - 1]!.line)
  }
}

describe("split", () => {
  it.effect.prop(
    "keeps all text, in order, in passages of bounded size",
    { recipe: Recipe },
    ({ recipe }) =>
      Effect.sync(() => assertPassages(recipe.map(({ ingredient, times }) => ingredient.repeat(times)).join(""))),
    { arbitrary: { runs: 1_000 } }
  )

  it.effect.prop(
    "keeps any string",
    { text: Schema.String },
    ({ text }) =>
      Effect.sync(() => {
        const visible = text.toWellFormed().replace(/\p{Cc}/gu, " ")
        assertPassages(visible.repeat(1 + (visible.length % 200)))
      }),
    { arbitrary: { runs: 300 } }
  )

  it.effect.prop(
    "cuts no word of up to 600 characters",
    { lengths: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 600 }))) },
    ({ lengths }) =>
      Effect.sync(() => {
        const text = lengths
          .map((length, index) => `w${"x".repeat(length - 1)}${[" ", "\n", "(", ","][index % 4]}`)
          .join("")
        assert.deepStrictEqual(
          pieces(text).flatMap(({ body }) => words(body)),
          words(text)
        )
      })
  )

  it("ends a passage at a paragraph, where there is one", () => {
    const paragraph = `${"word ".repeat(100).trim()}.`
    const found = pieces([paragraph, paragraph, paragraph].join("\n\n"))
    assert.deepStrictEqual(found, [
      { body: `${paragraph}\n\n${paragraph}`, line: 0 },
      { body: paragraph, line: 4 }
    ])
  })

  it("ends a passage at a line, where there is no paragraph", () => {
    const line = "x".repeat(99)
    const found = pieces(Array.from({ length: 30 }, () => line).join("\n"))
    assert.deepStrictEqual(
      found.map((piece) => [piece.line, piece.body.split("\n").length]),
      [
        [0, 12],
        [12, 12],
        [24, 6]
      ]
    )
  })

  it("leaves a long line whole up to the limit", () => {
    const line = "word ".repeat(390).trim()
    assert.isAbove(line.length, targetSize)
    assert.deepStrictEqual(pieces(`intro\n${line}`), [{ body: `intro\n${line}`, line: 0 }])
  })

  it("keeps the indentation of the first line", () => {
    assert.deepStrictEqual(pieces("\n\n  indented\n"), [{ body: "  indented", line: 2 }])
  })

  it("passes over the blank end of a long line", () => {
    const words = "word ".repeat(300)
    for (const end of ["", "\n", "\n\n \n", "\n\nend"]) {
      const found = pieces(words + " ".repeat(3_000) + end)
      assert.strictEqual(found.map(({ body }) => bare(body)).join(""), bare(words + end))
      assert.isTrue(found.every(({ body }) => body.trim() !== ""))
      if (end === "\n\nend") assert.deepStrictEqual(found.at(-1), { body: "end", line: 2 })
    }
  })

  it("has nothing for blank text", () => {
    for (const text of ["", " ", "\n", " \n\t\n\n"]) assert.deepStrictEqual(pieces(text), [])
  })
})
