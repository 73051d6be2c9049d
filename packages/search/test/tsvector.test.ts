import { assert, describe, it } from "@effect/vitest"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as SqlClient from "effect/sql/SqlClient"
import { toPieces, toTsquery } from "../src/internal/tsvector.ts"
import * as Query from "../src/Query.ts"

const piecesOf = (body: string, lines = "1") => toPieces({ title: "A title", heading: "A > B", body, lines })

const tsquery = (text: string): string => {
  const query = Query.parse(text)
  return Result.isSuccess(query) ? toTsquery(query.success) : assert.fail(query.failure.message)
}

describe("tsvector", () => {
  it("makes queries of words alone", () => {
    assert.strictEqual(tsquery("red"), "('red')")
    assert.strictEqual(tsquery(`"red fo"* wolf OR bär -den`), "('red' <-> 'fo':*) & (('wolf') | ('bar')) & !(('den'))")
    assert.strictEqual(tsquery("it's a:b*&!(c|d)'"), "('it' <-> 's') & ('a' <-> 'b' <-> 'c' <-> 'd')")
    assert.strictEqual(tsquery("'; DROP TABLE x; --"), "('drop') & ('table') & ('x')")
  })

  it("keeps a passage as it is in one piece, with weights, and a gap between its parts", () => {
    assert.deepStrictEqual(piecesOf("Say b, say B."), [
      {
        title: "A title",
        heading: "A > B",
        body: "Say b, say B.",
        lines: "1",
        words: "'a':1A,4B 'title':2A 'b':5B,8,10 'say':7,9 "
      }
    ])
  })

  it("cuts where a word comes too often, and knows the lines of each piece", () => {
    const lines = Array.from({ length: 100 }, (_, i) => `${"0 ".repeat(6)}line${i}`)
    const body = lines.join("\n")
    const pieces = piecesOf(body, "11")
    assert.strictEqual(pieces.map((piece) => piece.body).join("\n"), body)
    assert.deepStrictEqual(
      pieces.map((piece) => piece.lines),
      ["11", "51", "91"]
    )
    const numbers = lines.map((_, i) => String(3 * i)).join(",")
    assert.strictEqual(
      piecesOf(body, numbers)
        .map((piece) => piece.lines)
        .join(","),
      numbers
    )
  })

  it("cuts what has too many words, and words that are too long", () => {
    const many = Array.from({ length: 40_000 }, (_, i) => `w${i}`).join(" ")
    const pieces = piecesOf(many)
    assert.strictEqual(pieces.map((piece) => piece.body).join(" "), many)
    assert.strictEqual(pieces.length, 3)
    const [long] = piecesOf("😀a".repeat(10) + "語".repeat(5_000))
    for (const [, word] of long!.words.matchAll(/'([^']*)'/g)) assert.isAtMost(Buffer.byteLength(word!), 2_000)
    const wide = Array.from({ length: 600 }, (_, i) => "語".repeat(600) + i).join(" ")
    for (const { words } of piecesOf(wide)) assert.isBelow(Buffer.byteLength(words), 1024 * 1024)
    assert.strictEqual(
      piecesOf(wide)
        .map((piece) => piece.body)
        .join(" "),
      wide
    )
  })
})

describe.skipIf(!Postgres.isAvailable())("tsvector on Postgres", () => {
  it.live("is taken whole, whatever the text", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const texts = [
        "",
        " ",
        "a'b\\c\"d$$e:f*g&h|i!j(k)l<->m",
        "0 ".repeat(5_000),
        Array.from({ length: 40_000 }, (_, i) => `w${i}`).join(" "),
        Array.from({ length: 600 }, (_, i) => "語".repeat(600) + i).join(" "),
        "x".repeat(100_000),
        "\u{10fffd}\ue000 private"
      ]
      for (const body of texts) {
        for (const passage of [
          { title: "t", heading: "h", body },
          { title: body, heading: body, body: "b" }
        ]) {
          for (const { words } of toPieces({ ...passage, lines: "1" })) {
            const told = [...words.matchAll(/'[^']*':([^ ]*)/g)].map(([, positions]) => positions!.split(",").length)
            const [row] = yield* sql`
              SELECT coalesce(sum(cardinality(positions)), 0) FROM unnest(${words}::tsvector)
            `.values
            assert.strictEqual(
              Number(row?.[0]),
              told.reduce((sum, count) => sum + count, 0)
            )
          }
        }
      }
    }).pipe(Effect.provide(Postgres.layer))
  )
})
