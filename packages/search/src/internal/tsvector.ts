import type { Query, Term } from "../Query.ts"
import type { NewPassage } from "./storage.ts"
import { forEachWord, words } from "./words.ts"

/*
 * Passages and queries in the text forms of Postgres's `tsvector` and `tsquery`. Both are made of words that consist of
 * letters and digits alone, each within quotes, so that nothing of a text or a query is taken for syntax. No text search
 * configuration has a part in it.
 */

// ---------------------------------------------------------------------------------------------------------------------
// queries
// ---------------------------------------------------------------------------------------------------------------------

/** Words of a term are one phrase. */
export const toTsquery = (query: Query): string => {
  const all = query.all.map((terms) => (terms.length === 1 ? phrase(terms[0]!) : either(terms))).join(" & ")
  return query.none.length === 0 ? all : `${all} & !${either(query.none)}`
}

const either = (terms: ReadonlyArray<Term>): string => `(${terms.map(phrase).join(" | ")})`

const phrase = (term: Term): string => {
  const found = words(term.text)
  return `(${found
    .map((word, i) => `${quote(word)}${term.prefix && i === found.length - 1 ? ":*" : ""}`)
    .join(" <-> ")})`
}

// ---------------------------------------------------------------------------------------------------------------------
// passages
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A passage with its words, in as many pieces as `tsvector` makes necessary, which forgets positions above 16,383, more
 * than 256 positions of one word, and takes a mebibyte in all: a piece ends before the word that would be too much. Of a
 * title and a heading, which every piece has, only what fits is indexed; those of `Extractor` always do, but for the
 * positions of a word that they repeat many times.
 */
export const toPieces = (passage: Omit<NewPassage, "words">): ReadonlyArray<NewPassage> => {
  const title = passage.title
  const heading = passage.heading
  const numbers = passage.lines.split(",")
  const pieces: Array<NewPassage> = []
  let vector = headOf(title, heading)
  let start = 0
  const finish = (end: number) => {
    const all = start === 0 && end === passage.body.length
    const body = all ? passage.body : passage.body.slice(start, end).trimEnd()
    pieces.push({ title, heading, body, lines: linesFrom(passage.body, start, numbers, body), words: vector.toText() })
  }
  forEachWord(passage.body, (word, at) => {
    if (vector.add(word, "", limits.repeats, limits.words, limits.bytes)) return
    finish(at)
    start = at
    vector = headOf(title, heading)
    vector.add(word, "", limits.repeats, limits.words, limits.bytes)
  })
  finish(passage.body.length)
  return pieces
}

/** Well below those of Postgres. */
const limits = {
  repeats: 240,
  words: 16_000,
  bytes: 512 * 1024,
  headRepeats: 100,
  headWords: 4_000,
  headBytes: 64 * 1024
}

/** Words are compared by their first bytes; Postgres takes 2,046 at most. */
const wordBytes = 2_000

const headOf = (title: string, heading: string): Vector => {
  const vector = new Vector()
  for (const [text, weight] of [
    [title, "A"],
    [heading, "B"]
  ] as const) {
    forEachWord(text, (word) => {
      vector.add(word, weight, limits.headRepeats, limits.headWords, limits.headBytes)
    })
    vector.leaveGap()
  }
  return vector
}

/** Words with their positions and weights. */
class Vector {
  private readonly positions = new Map<string, Array<string>>()
  private position = 0
  private bytes = 0

  /** Whether the word was still within the limits. */
  add(word: string, weight: "" | "A" | "B", repeats: number, words: number, bytes: number): boolean {
    const known = this.positions.get(word)
    if (this.position >= words || (known?.length ?? 0) >= repeats) return false
    if (known === undefined) {
      if (this.bytes > bytes) return false
      this.bytes += Math.min(wordBytes, 4 * word.length)
    }
    this.position++
    if (known === undefined) this.positions.set(word, [`${this.position}${weight}`])
    else known.push(`${this.position}${weight}`)
    return true
  }

  /** No phrase goes over it. */
  leaveGap(): void {
    this.position++
  }

  toText(): string {
    let text = ""
    for (const [word, positions] of this.positions) text += `${quote(word)}:${positions.join(",")} `
    return text
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const quote = (word: string): string => `'${cut(word)}'`

const cut = (word: string): string => {
  if (word.length * 3 <= wordBytes || Buffer.byteLength(word) <= wordBytes) return word
  let bytes = 0
  let length = 0
  for (const character of word) {
    bytes += Buffer.byteLength(character)
    if (bytes > wordBytes) break
    length += character.length
  }
  return word.slice(0, length)
}

/** The numbers of the lines of a piece. */
const linesFrom = (body: string, start: number, numbers: ReadonlyArray<string>, piece: string): string => {
  if (start === 0 && piece.length === body.length) return numbers.join(",")
  const before = newlines(body.slice(0, start))
  if (numbers.length === 1) return String(Number(numbers[0]) + before)
  return numbers.slice(before, before + newlines(piece) + 1).join(",")
}

const newlines = (text: string): number => {
  let count = 0
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count++
  return count
}
