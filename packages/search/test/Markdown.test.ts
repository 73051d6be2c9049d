import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Document } from "../src/Extractor.ts"
import { extract } from "../src/extract/Markdown.ts"

const source = (...lines: ReadonlyArray<string>): string => lines.join("\n")

const bodies = (document: Document): ReadonlyArray<string> => document.passages.map((passage) => passage.body)

const wordCounts = (texts: Iterable<string>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const text of texts) for (const word of text.match(/w\d+w/g) ?? []) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}

/** Each form shows every `@` it has as a word. */
const forms = [
  "@ @ @",
  "@\n@",
  "@  \n@",
  "*@* **@** ~~@~~ `@`",
  "> @\n> > @",
  "- @\n  - @\n\n    @",
  "1. @\n2. @",
  "- [ ] @\n- [x] @",
  "```js\n@ = [@](@)\n```",
  "    @ code @",
  "| @ | @ |\n| --- | --- |\n| @ | @ |",
  "[@](@.md)",
  '[@](https://x.y/@ "@")',
  '![@](img/@.png "@")',
  "<https://x.y/@>",
  "[@][ref]\n\n[ref]: https://x.y",
  "[@ *@*](a) [@]",
  "<div>@ <b>@</b></div>",
  "a<br>@<span title='x'>@</span>",
  "@ &amp; @ \\* @",
  "*@ **@",
  "[@",
  "```\n@",
  "<p>@",
  "| @",
  "+ @\n\n\n+ @",
  "@[^1]",
  "<!-- hidden -->\n\n@",
  "<pre>\n@\n\n@</pre>",
  "@\t@"
] as const

const headings = ["# @", "## @ *@*", "### [@](@)", "###### @", "@\n===", "@\n---", "<h2>@</h2>", "# @ #"] as const

describe("Markdown", () => {
  it("gives each passage its line and the headings above it", () => {
    const document = extract(
      source(
        "intro",
        "",
        "# Guide",
        "",
        "first",
        "second",
        "",
        "## Install",
        "npm",
        "",
        "### Linux",
        "apt",
        "",
        "## Use",
        "run"
      )
    )
    assert.deepStrictEqual(document, {
      title: "Guide",
      passages: [
        { line: 1, heading: "", body: "intro" },
        { line: 5, heading: "Guide", body: "first\nsecond" },
        { line: 9, heading: "Guide > Install", body: "npm" },
        { line: 12, heading: "Guide > Install > Linux", body: "apt" },
        { line: 15, heading: "Guide > Use", body: "run" }
      ]
    })
  })

  it("makes a passage of a heading with nothing below it", () => {
    const document = extract(source("# A", "## B", "text", "## C", "# D"))
    assert.deepStrictEqual(document.passages, [
      { line: 3, heading: "A > B", body: "text" },
      { line: 4, heading: "A > C", body: "C" },
      { line: 5, heading: "D", body: "D" }
    ])
  })

  it("takes a long heading for text", () => {
    const long = "word ".repeat(60).trim()
    assert.deepStrictEqual(extract(source("# A", `## ${long}`, "text")).passages, [
      { line: 2, lines: [2, 2, 3], heading: "A", body: `${long}\n\ntext` }
    ])
  })

  it("reads the title from front matter, which is text too", () => {
    const document = extract(source("---", 'title: "The: title"', "tags: [a, b]", "---", "", "# Heading", "text"))
    assert.deepStrictEqual(document, {
      title: "The: title",
      passages: [
        { line: 2, heading: "", body: 'title: "The: title"\ntags: [a, b]' },
        { line: 7, heading: "Heading", body: "text" }
      ]
    })
  })

  it("does without a title where front matter is malformed", () => {
    for (const yaml of ["title: [", "- a", "title: 3", "title: ''", "", "a: &a [*a]", "{".repeat(5_000)]) {
      assert.strictEqual(extract(source("---", yaml, "---", "## Heading")).title, "Heading", yaml.slice(0, 20))
    }
  })

  it("shows the targets of links and images, but no embedded data", () => {
    const document = extract(
      source('[text](docs/a%20b.md "Title") <https://x.y/>', "![alt](a.png) ![data](data:image/png;base64,AAAA)")
    )
    assert.deepStrictEqual(bodies(document), ["text (docs/a b.md Title) https://x.y/\nalt (a.png) data"])
  })

  it("keeps the cells of a row in a line", () => {
    assert.deepStrictEqual(bodies(extract(source("| a | b |", "| - | - |", "| c | d |")))[0], "a | b\n\nc | d")
  })

  it("reads HTML, headings included", () => {
    const document = extract(
      source("<h1 align=center>Name</h1>", "", "<p>", "some <b>bo</b>ld", "</p>", "", "<script>x</script>")
    )
    assert.deepStrictEqual(document, { title: "Name", passages: [{ line: 4, heading: "Name", body: "some bold" }] })
  })

  it("knows the line of a passage in the middle of a block", () => {
    const line = "x".repeat(99)
    for (const [before, after] of [
      ["```", "```"],
      ["<pre>", "</pre>"],
      ["", ""],
      ["> quote", ""]
    ]) {
      const text = source("# T", before!, ...Array.from({ length: 20 }, (_, index) => `${line}${index}`), after!)
      const second = extract(text).passages[1]!
      assert.strictEqual(text.split("\n")[second.line - 1], second.body.split("\n")[0], before)
    }
  })

  it("takes what is nested too deep for plain text, and loses nothing", () => {
    for (const text of [
      "> ".repeat(10_000) + "deep",
      "- ".repeat(10_000) + "deep",
      "x\n\n" + "<div>".repeat(10_000) + "deep"
    ]) {
      const { passages } = extract(text)
      assert.strictEqual(
        passages
          .map(({ body }) => body)
          .join("")
          .replace(/\s+/g, ""),
        text.replace(/\s+/g, "")
      )
    }
  })

  it.effect.prop(
    "shows every visible word in one passage, or in the headings of one",
    { parts: Schema.Array(Schema.Literals([...forms, ...headings])), front: Schema.Boolean },
    ({ parts, front }) =>
      Effect.sync(() => {
        let count = 0
        const text = (front ? "---\ndescription: @\n---\n" : "") + parts.join("\n\n")
        const numbered = text.replace(/@/g, () => `w${count++}w`)
        const { passages } = extract(numbered)
        const inBodies = wordCounts(passages.map(({ body }) => body))
        const inHeadings = wordCounts(passages.map(({ heading }) => heading))
        for (const word of wordCounts([numbered]).keys()) {
          if (inHeadings.has(word)) assert.isAtMost(inBodies.get(word) ?? 0, 1, `${word} in\n${numbered}`)
          else assert.strictEqual(inBodies.get(word), 1, `${word} in\n${numbered}`)
        }
      }),
    { arbitrary: { runs: 300 } }
  )
})
