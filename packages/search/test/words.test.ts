import { assert, describe, it } from "@effect/vitest"
import { DatabaseSync } from "node:sqlite"
import { words } from "../src/internal/words.ts"

/** What FTS5 makes of texts. */
const wordsOfFts5 = (texts: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const database = new DatabaseSync(":memory:")
  database.exec(`CREATE VIRTUAL TABLE texts USING fts5(body, tokenize = 'unicode61 remove_diacritics 2')`)
  database.exec("CREATE VIRTUAL TABLE found USING fts5vocab(texts, instance); BEGIN")
  const insert = database.prepare("INSERT INTO texts (rowid, body) VALUES (?, ?)")
  texts.forEach((text, i) => insert.run(i + 1, text))
  const found = texts.map((): Array<string> => [])
  for (const row of database.prepare("SELECT doc, term FROM found ORDER BY doc, offset").iterate()) {
    found[Number(row["doc"]) - 1]!.push(String(row["term"]))
  }
  database.close()
  return found
}

/** Letters that have got another case since version 6.1 of Unicode, and some that have got another category. */
const newer =
  /[\u037f\u0528-\u052f\u{13a0}-\u{13f5}\u{1c80}-\u{1cbf}\u{1cf2}\u{1cf3}\u{19b0}-\u{19c9}\u2c2f\ua698-\ua69b\ua796-\ua7dc\ua7f5\u{104b0}-\u{104d3}\u{10570}-\u{10595}\u{10c80}-\u{10cb2}\u{10d50}-\u{10d65}\u{118a0}-\u{118bf}\u{16e40}-\u{16eb8}\u{1e900}-\u{1e921}]/u

describe("words", () => {
  it("are those of FTS5 for every character that both know", () => {
    const characters: Array<string> = []
    for (let code = 1; code < 0x30000; code++) {
      const character = String.fromCodePoint(code)
      if (/[\p{L}\p{N}\p{Co}]/u.test(character) && !newer.test(character)) characters.push(character)
    }
    assert.isAbove(characters.length, 90_000)
    const texts = characters.map((character) => `a${character}b`)
    const different = wordsOfFts5(texts).flatMap((expected, i) =>
      JSON.stringify(words(texts[i]!)) === JSON.stringify(expected) ? [] : [characters[i]!]
    )
    assert.deepStrictEqual(different, [])
  })

  it("are those of FTS5 for marks and separators", () => {
    const texts: Array<string> = []
    for (let code = 1; code < 0x300; code++) texts.push(`a${String.fromCharCode(code)}b`)
    for (let code = 0x300; code < 0x370; code++) {
      const mark = String.fromCharCode(code)
      texts.push(`a${mark}b`, `${mark}a`, `a ${mark} b`, `a${mark}`)
    }
    for (let code = 0x2000; code < 0x2070; code++) texts.push(`a${String.fromCharCode(code)}b`)
    const known = texts.filter((text) => !/[\p{Cn}\u2066-\u2069\u0378\u0379\u0370-\u037f]/u.test(text))
    assert.deepStrictEqual(known.map(words), wordsOfFts5(known))
  })

  it("have no case and no accents", () => {
    const folded = ["creme", "brulee", "σίσυφοσ", "σ", "istanbul", "set", "½", "10", "³"]
    assert.deepStrictEqual(words("Crème BRÛLÉE, ΣΊΣΥΦΟΣ ς; İstanbul ſet ½ 10⁻³"), folded)
  })
})
