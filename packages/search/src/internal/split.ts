/**
 * Cuts text into passages of bounded size.
 *
 * One forward pass over the lines: a passage grows until the next line would
 * take it past {@link targetSize}, and then ends at its last paragraph, else
 * at its last line. Only a line that is itself longer than {@link sizeLimit}
 * is cut inside: between words, else where the tokenizer sees a boundary, else
 * between code points. Sizes are in UTF-16 code units.
 */

/** The size at which a passage ends at the next good place. */
export const targetSize = 1200

/** No passage is larger than this. */
export const sizeLimit = 2000

/** A boundary nearer to the passage's start than this is passed over, so that passages do not become crumbs. */
const crumbSize = targetSize / 4

/**
 * Calls `emit` with each passage of `text` and the 0-based line of `text` it
 * starts in. Every character that is not white space is in exactly one
 * passage; none is blank, and none starts with a blank line or ends with white
 * space.
 */
export const split = (text: string, emit: (body: string, line: number) => void): void => {
  let start = 0
  let startLine = 0
  let paragraph = -1
  let paragraphLine = 0
  let line = 0
  for (let lineStart = 0; lineStart < text.length; line++) {
    const newline = text.indexOf("\n", lineStart)
    const lineEnd = newline === -1 ? text.length : newline
    const next = lineEnd + 1
    if (isBlank(text, lineStart, lineEnd)) {
      if (start === lineStart) {
        start = next
        startLine = line + 1
      } else {
        paragraph = next
        paragraphLine = line + 1
      }
    } else if (lineEnd - start > targetSize) {
      if (paragraph - start > crumbSize) {
        emit(text.slice(start, paragraph).trimEnd(), startLine)
        start = paragraph
        startLine = paragraphLine
      }
      const size = lineEnd - start
      if (start < lineStart && size > targetSize && (lineStart - start > crumbSize || size > sizeLimit)) {
        emit(text.slice(start, lineStart).trimEnd(), startLine)
        start = lineStart
        startLine = line
      }
      if (lineEnd - start > sizeLimit) {
        start = splitLine(text, start, lineEnd, line, emit)
        if (start === lineEnd) {
          start = next
          startLine = line + 1
        }
      }
    }
    lineStart = next
  }
  if (start < text.length) emit(text.slice(start).trimEnd(), startLine)
}

/** Cuts a long line, and answers where its last piece starts, which later lines may still join. */
const splitLine = (
  text: string,
  from: number,
  to: number,
  line: number,
  emit: (body: string, line: number) => void
): number => {
  let start = skipBlank(text, from, to)
  while (to - start > sizeLimit) {
    const end = cutPoint(text, start)
    emit(text.slice(start, end).trimEnd(), line)
    start = skipBlank(text, end, to)
  }
  return start
}

/** Where the piece ends that starts at `start`, when more than {@link sizeLimit} code units follow on the line. */
const cutPoint = (text: string, start: number): number => {
  const target = start + targetSize
  const limit = start + sizeLimit
  const least = start + targetSize / 2
  for (let at = target; at > least; at--) if (isBlankAt(text, at)) return at
  for (let at = target; at <= limit; at++) if (isBlankAt(text, at)) return at
  for (let at = limit; at > least; at--) if (!isWordAt(text, at - 1) || !isWordAt(text, at)) return at
  return isLowSurrogate(text.charCodeAt(limit)) && isHighSurrogate(text.charCodeAt(limit - 1)) ? limit - 1 : limit
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff

const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff

const otherBlank = /^\s$/

const isBlankAt = (text: string, index: number): boolean => {
  const code = text.charCodeAt(index)
  return code <= 0x20 || code === 0xa0 || (code >= 0x1680 && otherBlank.test(text[index]!))
}

const isBlank = (text: string, from: number, to: number): boolean => skipBlank(text, from, to) === to

const skipBlank = (text: string, from: number, to: number): number => {
  let at = from
  while (at < to && isBlankAt(text, at)) at++
  return at
}

/** Marks and both halves of a surrogate pair count as parts of a word, so that no cut falls before or between them. */
const wordPart = /^[\p{L}\p{N}\p{M}\p{Co}\p{Cs}]$/u

const isWordAt = (text: string, index: number): boolean => {
  const code = text.charCodeAt(index)
  if (code < 0x80) {
    return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || (code >= 0x30 && code <= 0x39)
  }
  return wordPart.test(text[index]!)
}
