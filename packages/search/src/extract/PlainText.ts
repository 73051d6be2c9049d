/**
 * Text without structure: code, configuration, logs, prose.
 *
 * @since 0.1.0
 */
import type { Document, Passage } from "../Extractor.ts"
import { split } from "../internal/split.ts"

/**
 * Cuts `text` into passages at paragraphs and lines, indentation kept. There
 * are no headings and no title: the first line of a source file is an import
 * or a licence far more often than a title.
 *
 * @since 0.1.0
 * @category constructors
 */
export const extract = (text: string): Document => {
  const passages: Array<Passage> = []
  split(text, (body, line) => {
    passages.push({ line: line + 1, heading: "", body })
  })
  return { title: undefined, passages }
}
