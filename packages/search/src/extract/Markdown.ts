/**
 * Markdown as CommonMark with GitHub's tables and strikethrough.
 *
 * @since 0.1.0
 */
import MarkdownIt, { type Token } from "markdown-it"
import { isMap, parseDocument } from "yaml"
import type { Document } from "../Extractor.ts"
import { addHtml } from "../internal/html.ts"
import { Outline } from "../internal/Outline.ts"
import { extract as extractPlain } from "./PlainText.ts"

/** The parser drops what is nested deeper. */
const maxNesting = 100

const markdown = new MarkdownIt({ html: true })
markdown.set({ maxNesting })

/** Longer front matter is searchable as text, but no title is read from it. In code units. */
const frontmatterLimit = 16_384

/**
 * The title is the front matter's `title`, else the first heading of level 1,
 * else the first heading. Front matter, code blocks, alternative texts and the
 * targets of links and images are searchable text; HTML counts as in the HTML
 * format. A document that is nested deeper than any author writes is taken as
 * plain text, so that nothing in it is lost.
 *
 * @since 0.1.0
 * @category constructors
 */
export const extract = (text: string): Document => {
  const frontmatter = /^---[ \t]*\n([\s\S]*?\n)??(?:---|\.\.\.)[ \t]*(?:\n|$)/.exec(text)
  const body = frontmatter === null ? text : text.slice(frontmatter[0].length)
  const tokens = markdown.parse(body, {})
  if (tokens.some((token) => token.level >= maxNesting - 1)) return extractPlain(text)

  const outline = new Outline()
  if (frontmatter !== null) {
    outline.text(frontmatter[1] ?? "", 2)
    outline.block()
  }
  const writer = new Writer(outline, 1 + countNewlines(frontmatter?.[0] ?? ""))
  if (!writer.blocks(tokens)) return extractPlain(text)
  outline.finish()
  const title = frontmatter === null ? undefined : frontmatterTitle(frontmatter[1] ?? "")
  return { title: title ?? outline.title, passages: outline.passages }
}

const countNewlines = (text: string): number => text.split("\n").length - 1

const frontmatterTitle = (yaml: string): string | undefined => {
  if (yaml.length > frontmatterLimit) return undefined
  const document = parseDocument(yaml, { logLevel: "silent" })
  if (document.errors.length > 0 || !isMap(document.contents)) return undefined
  const title = document.get("title")
  return typeof title === "string" && title.trim() !== "" ? title.trim() : undefined
}

/** Writes tokens to an outline. `firstLine` is the source line of the tokens' line 0. */
class Writer {
  private readonly outline: Outline
  private readonly firstLine: number
  private line: number
  private inHeading = false
  private inRow = false
  private cells = 0

  constructor(outline: Outline, firstLine: number) {
    this.outline = outline
    this.firstLine = firstLine
    this.line = firstLine
  }

  /** Answers whether everything was written; HTML that is nested too deep is not. */
  blocks(tokens: ReadonlyArray<Token>): boolean {
    for (const token of tokens) {
      if (token.map !== null) this.line = this.firstLine + token.map[0]
      if (token.type !== "html_block") this.block(token)
      else if (!addHtml(this.outline, token.content, this.line).complete) return false
    }
    return true
  }

  private block(token: Token): void {
    switch (token.type) {
      case "heading_open":
        this.inHeading = true
        return this.outline.openHeading(Number(token.tag.slice(1)), this.line)
      case "heading_close":
        this.inHeading = false
        return this.outline.closeHeading()
      case "inline":
        this.inline(token.children ?? [])
        if (!this.inHeading && !this.inRow) this.outline.newline()
        return
      case "fence":
        return this.code(token.content, this.line + 1)
      case "code_block":
        return this.code(token.content, this.line)
      case "tr_open":
        this.inRow = true
        this.cells = 0
        return
      case "tr_close":
        this.inRow = false
        return this.outline.newline()
      case "th_open":
      case "td_open":
        if (this.cells++ > 0) this.outline.text(" | ", this.line)
        return
      case "paragraph_open":
      case "paragraph_close":
        return token.hidden ? undefined : this.outline.block()
      case "th_close":
      case "td_close":
      case "list_item_open":
      case "list_item_close":
        return
      default:
        return this.outline.block()
    }
  }

  private code(content: string, line: number): void {
    this.outline.block()
    this.outline.text(content, line)
    this.outline.block()
  }

  private inline(tokens: ReadonlyArray<Token>): void {
    const links: Array<string> = []
    for (const token of tokens) {
      switch (token.type) {
        case "softbreak":
        case "hardbreak":
          this.outline.newline()
          this.line++
          break
        case "image":
          this.inline(token.children ?? [])
          this.target(token)
          break
        case "link_open":
          links.push(token.markup === "autolink" ? "" : this.targetOf(token))
          break
        case "link_close":
          this.outline.text(links.pop() ?? "", this.line)
          break
        case "html_inline":
          if (/^<br\b/i.test(token.content)) this.outline.newline()
          break
        default:
          if (token.content !== "") this.outline.text(token.content, this.line)
      }
    }
  }

  private target(token: Token): void {
    this.outline.text(this.targetOf(token), this.line)
  }

  /** The address and the title of a link or an image, in readable form; embedded data is no address. */
  private targetOf(token: Token): string {
    const address = String(token.attrGet("href") ?? token.attrGet("src") ?? "")
    const readable = address.startsWith("data:") ? "" : markdown.normalizeLinkText(address)
    const title = token.attrGet("title") ?? ""
    const parts = [readable, title].filter((part) => part !== "")
    return parts.length === 0 ? "" : ` (${parts.join(" ").replace(/\s+/g, " ")})`
  }
}
