/**
 * Collects the visible text of a structured document, line by line and with
 * its headings, and cuts it into passages.
 *
 * The text is kept as lines that remember the source line they come from, so
 * that a passage knows its place however much markup was between.
 */
import type { Passage } from "../Extractor.ts"
import { split } from "./split.ts"

/** A longer heading is taken for ordinary text: it is repeated in every passage below it. */
const headingLimit = 200

interface Heading {
  readonly level: number
  readonly text: string
  readonly line: number
}

export class Outline {
  readonly passages: Array<Passage> = []
  private readonly path: Array<Heading> = []
  private first: Heading | undefined
  private lines: Array<string> = []
  private lineNumbers: Array<number> = []
  private current = ""
  private currentLine = 1
  private heading: { readonly level: number; line: number } | undefined
  private sectionIsEmpty = false

  /** Adds text which starts at source line `line`; each newline in it goes on at the next source line. */
  text(chunk: string, line: number): void {
    let from = 0
    for (let at = line; ; at++) {
      const newline = chunk.indexOf("\n", from)
      this.append(newline === -1 ? chunk.slice(from) : chunk.slice(from, newline), at)
      if (newline === -1) return
      if (this.heading === undefined) this.endLine()
      else this.current += " "
      from = newline + 1
    }
  }

  /** Ends a line, if there is one. */
  newline(): void {
    if (this.heading !== undefined) this.current += " "
    else if (this.current.trim() === "") this.current = ""
    else this.endLine()
  }

  /** Ends a paragraph, if there is one. */
  block(): void {
    this.newline()
    if (this.heading === undefined) this.endLine()
  }

  /** Takes the text up to `closeHeading` as a heading of level 1 to 6. */
  openHeading(level: number, line: number): void {
    this.closeHeading()
    this.block()
    this.heading = { level, line }
  }

  closeHeading(): void {
    if (this.heading === undefined) return
    const { level, line } = this.heading
    const text = this.current.replace(/\s+/g, " ").trim()
    this.heading = undefined
    this.current = ""
    if (text.length > headingLimit) {
      this.push(text, line)
      this.block()
    } else if (text !== "") {
      this.section({ level, text, line })
    }
  }

  /** Ends the document. */
  finish(): void {
    this.closeHeading()
    this.block()
    this.flush()
    this.keepLeaf(0)
  }

  /** The first heading of level 1, else the first heading. */
  get title(): string | undefined {
    return this.first?.text
  }

  private append(piece: string, line: number): void {
    if (this.current === "") this.currentLine = line
    this.current += piece
  }

  /** Of several blank lines one is kept. */
  private endLine(): void {
    const line = this.current.trimEnd()
    this.current = ""
    if (line !== "" || this.lines.at(-1) !== "") this.push(line, this.currentLine)
  }

  private push(line: string, lineNumber: number): void {
    this.lines.push(line)
    this.lineNumbers.push(lineNumber)
  }

  private section(heading: Heading): void {
    this.flush()
    this.keepLeaf(heading.level)
    while (this.path.length > 0 && this.path.at(-1)!.level >= heading.level) this.path.pop()
    this.path.push(heading)
    this.sectionIsEmpty = true
    if (this.first === undefined || (this.first.level > 1 && heading.level === 1)) this.first = heading
  }

  /** A heading with nothing below it would be in no passage, so it becomes the body of one. */
  private keepLeaf(nextLevel: number): void {
    const last = this.path.at(-1)
    if (last === undefined || !this.sectionIsEmpty || nextLevel > last.level) return
    this.passages.push({ line: last.line, heading: this.headingPath(), body: last.text })
  }

  private flush(): void {
    const numbers = this.lineNumbers
    const heading = this.headingPath()
    const before = this.passages.length
    split(this.lines.join("\n"), (body, line) => {
      this.passages.push({ line: numbers[line]!, heading, body, ...gaps(numbers, line, body) })
    })
    if (this.passages.length > before) this.sectionIsEmpty = false
    this.lines = []
    this.lineNumbers = []
  }

  private headingPath(): string {
    return this.path.map((heading) => heading.text).join(" > ")
  }
}

/** The numbers of the body's lines, the first of which has the index `first`, unless each is one more than the last. */
const gaps = (numbers: ReadonlyArray<number>, first: number, body: string): Pick<Passage, "lines"> => {
  let count = 1
  for (let at = body.indexOf("\n"); at !== -1; at = body.indexOf("\n", at + 1)) count++
  const lines = numbers.slice(first, first + count)
  return lines.every((line, i) => line === lines[0]! + i) ? {} : { lines }
}
