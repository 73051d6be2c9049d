import type { Query } from "../Query.ts"
import type { FoundPassage } from "./storage.ts"
import { forEachWord, words } from "./words.ts"

/*
 * Where a query matches a text, and the piece of the text around the best matches: what FTS5's `highlight` and `snippet`
 * answer, for databases that have neither.
 */

/** A text in words. */
interface Words {
  readonly words: ReadonlyArray<string>
  readonly starts: ReadonlyArray<number>
  readonly ends: ReadonlyArray<number>
}

interface Phrase {
  readonly words: ReadonlyArray<string>
  readonly prefix: boolean
}

/** An occurrence of a phrase, by the place of its first word. */
interface Instance {
  readonly phrase: number
  readonly at: number
  readonly length: number
}

/** From the first word to the last, inclusive. */
interface Range {
  readonly first: number
  readonly last: number
}

/** What a search tells of a body. */
export const describe = (
  body: string,
  phrases: ReadonlyArray<Phrase>,
  size: number
): Pick<FoundPassage, "linesBefore" | "snippet"> => {
  const text = toWords(body)
  const instances = find(text, phrases)
  const ranges = coalesce(instances)
  const first = ranges[0]
  return {
    linesBefore: first === undefined ? 0 : body.slice(0, text.starts[first.first]).split("\n").length - 1,
    snippet: cut(body, text, ranges, bestStart(body, text, instances, size), size)
  }
}

/** What of a query can be found in a passage that matches. */
export const phrasesOf = (query: Query): ReadonlyArray<Phrase> =>
  query.all.flat().map((term) => ({ words: words(term.text), prefix: term.prefix }))

// ---------------------------------------------------------------------------------------------------------------------
// matches
// ---------------------------------------------------------------------------------------------------------------------

const toWords = (text: string): Words => {
  const words: Array<string> = []
  const starts: Array<number> = []
  const ends: Array<number> = []
  forEachWord(text, (word, start, end) => {
    words.push(word)
    starts.push(start)
    ends.push(end)
  })
  return { words, starts, ends }
}

/** In the order of the text. */
const find = ({ words }: Words, phrases: ReadonlyArray<Phrase>): ReadonlyArray<Instance> => {
  const instances: Array<Instance> = []
  for (let at = 0; at < words.length; at++) {
    for (const [phrase, wanted] of phrases.entries()) {
      if (matchesAt(words, at, wanted)) instances.push({ phrase, at, length: wanted.words.length })
    }
  }
  return instances
}

const matchesAt = (words: ReadonlyArray<string>, at: number, phrase: Phrase): boolean => {
  const last = phrase.words.length - 1
  return phrase.words.every((word, i) => {
    const found = words[at + i]
    return found === word || (i === last && phrase.prefix && found !== undefined && found.startsWith(word))
  })
}

/** What overlaps is one. */
const coalesce = (instances: ReadonlyArray<Instance>): ReadonlyArray<Range> => {
  const ranges: Array<Range> = []
  for (const { at, length } of instances) {
    const before = ranges.at(-1)
    const last = at + length - 1
    if (before !== undefined && at <= before.last) {
      ranges[ranges.length - 1] = { first: before.first, last: Math.max(before.last, last) }
    } else {
      ranges.push({ first: at, last })
    }
  }
  return ranges
}

// ---------------------------------------------------------------------------------------------------------------------
// snippets
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The first word of the best piece, as FTS5 judges: the one with the most different phrases, then with the most matches;
 * one that begins with a sentence is better than one that has its matches in the middle.
 */
const bestStart = (body: string, text: Words, instances: ReadonlyArray<Instance>, size: number): number => {
  const count = text.words.length
  const sentences = sentenceStarts(body, text)
  let best = 0
  let start = 0
  for (const { at } of instances) {
    const window = scoreFrom(instances, at, size)
    if (window.score > best) {
      best = window.score
      const centred = window.first - Math.trunc((size - (window.end - window.first)) / 2)
      start = Math.max(0, Math.min(centred, count - size))
    }
    if (count <= size) continue
    const sentence = sentences.findLast((place) => place <= at) ?? 0
    if (sentence < at) {
      const score = scoreFrom(instances, sentence, size).score + (sentence === 0 ? 120 : 100)
      if (score > best) {
        best = score
        start = sentence
      }
    }
  }
  return start
}

const scoreFrom = (instances: ReadonlyArray<Instance>, from: number, size: number) => {
  const seen = new Set<number>()
  let score = 0
  let first = -1
  let end = 0
  for (const { at, length, phrase } of instances) {
    if (at < from || at >= from + size) continue
    score += seen.has(phrase) ? 1 : 1000
    seen.add(phrase)
    if (first === -1) first = at
    end = at + length
  }
  return { score, first, end }
}

/** The first word, and those behind a full stop or a colon and white space. */
const sentenceStarts = (body: string, { starts }: Words): ReadonlyArray<number> =>
  starts.flatMap((start, i) =>
    i === 0 || /[.:][ \t\n\r]+$/.test(body.slice(Math.max(0, start - 8), start)) ? [i] : []
  )

const cut = (body: string, text: Words, ranges: ReadonlyArray<Range>, first: number, size: number) => {
  const last = Math.min(first + size, text.words.length) - 1
  const from = first === 0 ? 0 : text.starts[first]!
  const isEnd = last >= text.words.length - 1
  const to = isEnd ? body.length : text.ends[last]!
  const before = first === 0 ? "" : "…"
  const highlights = ranges
    .filter((range) => range.first >= first && range.first <= last)
    .map(
      (range) =>
        [
          before.length + text.starts[range.first]! - from,
          before.length + text.ends[Math.min(range.last, last)]! - from
        ] as const
    )
  return { text: `${before}${body.slice(from, to)}${isEnd ? "" : "…"}`, highlights }
}
