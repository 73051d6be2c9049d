/*
 * The words of a text, as FTS5's tokenizer `unicode61 remove_diacritics 2` finds them: letters, digits and characters of
 * private use make words, which are compared without case, and without the accents of Latin letters. So a text has the
 * same words on every database, whatever language and locale it was set up for. FTS5 takes characters that Unicode got
 * after version 6.1 for parts of words, and knows no cases of them; here they are what Unicode says.
 */

/**
 * Calls `visit` with each word, folded, and where it is in the text: start and end in UTF-16 code units, end exclusive.
 * Ends early when `visit` answers `false`.
 */
export const forEachWord = (
  text: string,
  visit: (word: string, start: number, end: number) => boolean | void
): void => {
  word.lastIndex = 0
  for (let match = word.exec(text); match !== null; match = word.exec(text)) {
    const [found] = match
    const next = word.lastIndex
    if (visit(fold(found), match.index, next) === false) return
    word.lastIndex = next
  }
}

/** The words of a text, in order. */
export const words = (text: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  forEachWord(text, (word) => void found.push(word))
  return found
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Combining marks that are a part of the word they come after, and that folding drops. All others end a word. */
const accents = "\\u0300-\\u0304\\u0306-\\u030c\\u030f\\u0311\\u031b\\u0323-\\u0328\\u032d\\u032e\\u0330\\u0331"

const character = "\\p{L}\\p{N}\\p{Co}"

const word = new RegExp(`[${character}][${character}${accents}]*`, "gu")

const accent = new RegExp(`[${accents}]`, "g")

const isAscii = (text: string): boolean => !/[^\0-\x7f]/.test(text)

const fold = (word: string): string => {
  if (isAscii(word)) return word.toLowerCase()
  let folded = ""
  for (const character of word.replace(accent, "")) {
    let known = foldedCharacters.get(character)
    if (known === undefined) {
      known = foldCharacter(character)
      foldedCharacters.set(character, known)
    }
    folded += known
  }
  return folded
}

/** By the characters that texts had so far. */
const foldedCharacters = new Map<string, string>()

/** The other case and back, so that the forms of one letter are one; what is not one letter then stays as it is. */
const foldCharacter = (character: string): string => {
  if (character === "ı") return character
  const upper = character.toUpperCase()
  const lower = (isOne(upper) ? upper : character).toLowerCase()
  // Of all Latin letters the one whose accents FTS5 leaves.
  if (lower === "ǡ") return lower
  const decomposed = lower.normalize("NFD")
  if (/^[a-z]\p{M}+$/u.test(decomposed)) return decomposed[0]!
  return isOne(lower) ? lower : character
}

const isOne = (text: string): boolean => text.length === 1 || (text.length === 2 && text.codePointAt(0)! > 0xffff)
