/**
 * HTML, well formed or not.
 *
 * @since 0.1.0
 */
import type { Document } from "../Extractor.ts"
import { addHtml } from "../internal/html.ts"
import { Outline } from "../internal/Outline.ts"
import { extract as extractPlain } from "./PlainText.ts"

/**
 * The title is that of `<title>`, else the first `h1`, else the first heading.
 * Text that is not shown (`script`, `style`, `template`, comments) is left
 * out; alternative text of images is kept. A page whose elements are nested more
 * than 2,000 deep is taken as plain text.
 *
 * @since 0.1.0
 * @category constructors
 */
export const extract = (text: string): Document => {
  const outline = new Outline()
  const { title, complete } = addHtml(outline, text, 1)
  if (!complete) return extractPlain(text)
  outline.finish()
  return { title: title === undefined || title === "" ? outline.title : title, passages: outline.passages }
}
