/** Feeds the visible text of HTML to an {@link Outline}; shared by the HTML format and by the HTML inside Markdown. */
import { Parser } from "htmlparser2"
import type { Outline } from "./Outline.ts"

const hidden = new Set(["script", "style", "template"])

const verbatim = new Set(["pre", "textarea", "listing", "xmp", "plaintext"])

const headingTag = /^h[1-6]$/

const paragraphTags = new Set(
  (
    "address article aside blockquote body caption center details dialog dir div dl fieldset figcaption figure footer " +
    "form header hgroup hr html legend listing main menu nav ol p plaintext pre search section summary table tbody " +
    "textarea tfoot thead ul xmp"
  ).split(" ")
)

const lineTags = new Set(["br", "dd", "dt", "li", "optgroup", "option", "tr"])

const cellTags = new Set(["td", "th"])

/** The parser's time is quadratic in the depth of its stack. */
const maxDepth = 2_000

export interface HtmlResult {
  readonly title: string | undefined
  /** `false` when the elements are nested deeper than any page's: the rest was not read. */
  readonly complete: boolean
}

/**
 * Adds the text of `html`, whose first line is source line `firstLine`. What HTML hides (`script`, `style`, `template`,
 * comments) is left out, alternative text of images is kept, entities are decoded, and white space outside `pre` is
 * collapsed.
 */
export const addHtml = (outline: Outline, html: string, firstLine: number): HtmlResult => {
  const lineAt = lineCounter(html, firstLine)
  const handler = new Handler(outline, {
    line: () => lineAt(parser.startIndex),
    stop: () => parser.pause()
  })
  const parser = new Parser(handler)
  parser.end(html)
  outline.closeHeading()
  outline.block()
  return { title: handler.title?.replace(/\s+/g, " ").trim(), complete: handler.complete }
}

interface Position {
  /** The source line of the event that is being handled. */
  readonly line: () => number
  readonly stop: () => void
}

/** What the parser calls, in the order of the source. */
class Handler {
  title: string | undefined
  complete = true
  private readonly outline: Outline
  private readonly position: Position
  private inTitle = false
  private depth = 0
  private hiddenDepth = 0
  private verbatimDepth = 0
  private svgDepth = 0

  constructor(outline: Outline, position: Position) {
    this.outline = outline
    this.position = position
  }

  onopentagname(name: string): void {
    this.enter(name, 1)
    if (this.depth > maxDepth) {
      this.complete = false
      this.position.stop()
    } else if (name === "title" && this.title === undefined && this.svgDepth === 0) {
      this.inTitle = true
      this.title = ""
    } else if (headingTag.test(name)) {
      this.outline.openHeading(Number(name[1]), this.position.line())
    } else {
      this.boundary(name)
    }
  }

  onclosetag(name: string): void {
    this.enter(name, -1)
    if (name === "title" && this.inTitle) this.inTitle = false
    else if (headingTag.test(name)) this.outline.closeHeading()
    else this.boundary(name)
  }

  onattribute(name: string, value: string): void {
    if (name !== "alt" || value === "" || this.hiddenDepth > 0) return
    this.outline.text(` ${value.replace(/\s+/g, " ")} `, this.position.line())
  }

  ontext(text: string): void {
    if (this.hiddenDepth > 0) return
    if (this.inTitle) this.title += text
    else this.outline.text(this.verbatimDepth > 0 ? text : collapse(text), this.position.line())
  }

  private enter(name: string, by: 1 | -1): void {
    this.depth += by
    if (hidden.has(name)) this.hiddenDepth += by
    else if (verbatim.has(name)) this.verbatimDepth += by
    else if (name === "svg") this.svgDepth += by
  }

  private boundary(name: string): void {
    if (paragraphTags.has(name)) this.outline.block()
    else if (lineTags.has(name)) this.outline.newline()
    else if (cellTags.has(name)) this.outline.text(" ", this.position.line())
  }
}

const collapse = (text: string): string => (/[\t\f\r]| {2}/.test(text) ? text.replace(/[ \t\f\r]+/g, " ") : text)

/** Positions only grow, so each newline is counted once. */
const lineCounter = (text: string, firstLine: number): ((index: number) => number) => {
  let line = firstLine
  let next = text.indexOf("\n")
  return (index) => {
    while (next !== -1 && next < index) {
      line++
      next = text.indexOf("\n", next + 1)
    }
    return line
  }
}
