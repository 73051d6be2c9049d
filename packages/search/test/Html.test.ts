import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Document } from "../src/Extractor.ts"
import { extract } from "../src/extract/Html.ts"

const source = (...lines: ReadonlyArray<string>): string => lines.join("\n")

const body = (document: Document): string => document.passages.map((passage) => passage.body).join("\n\n")

/** Each form shows every `@` it has as a word. */
const forms = [
  "<p>@ @</p>",
  "<p>@",
  "@<br>@",
  "<b>@</b> <i>@",
  "<ul><li>@<li>@</ul>",
  "<table><tr><td>@<td>@</table>",
  "@ &amp; @",
  "<h1>@</h1>",
  "<h2>@ <i>@</i>",
  "<h3></h3>@",
  "<pre>\n@\n  @</pre>",
  "<textarea>@</textarea>",
  "<img alt='@'>",
  "</p>@",
  "<div @>@".replace("@>", ">"),
  "<a href=x>@</a>",
  "@ < @",
  "<!-- x -->@",
  "<script>x</script>@",
  "<p\nclass='x'\n>@\n@",
  "<svg><title>@</title><text>@</text></svg>",
  "<option>@<option>@",
  "<noscript>@</noscript>",
  "&#x41;@ &nbsp;@",
  "&bogus;@"
] as const

describe("Html", () => {
  it("gives each passage its line and the headings above it", () => {
    const document = extract(
      source(
        "<!doctype html>",
        "<head><title>The &amp; title</title><style>p { color: red }</style></head>",
        "<body>",
        "<h1>Guide</h1><p>first",
        "   second</p>",
        "<h2",
        "  id='x'>Install <small>now</small></h2>",
        "",
        "<p>npm</p>"
      )
    )
    assert.deepStrictEqual(document, {
      title: "The & title",
      passages: [
        { line: 4, heading: "Guide", body: "first\n second" },
        { line: 9, heading: "Guide > Install now", body: "npm" }
      ]
    })
  })

  it("has the first heading of level 1 for a title, where the page has none", () => {
    assert.strictEqual(extract("<title> </title><h2>B</h2><h1>A</h1><h1>C</h1>").title, "A")
    assert.strictEqual(extract("<h2>B</h2>").title, "B")
    assert.isUndefined(extract("<p>text").title)
  })

  it("leaves out what is not shown", () => {
    const hidden = ["<script>x</script>", "<style>x</style>", "<template>x<p>x</template>", "<!-- x -->", "<?x x?>"]
    assert.strictEqual(body(extract(hidden.join("y"))).replace(/\s+/g, ""), "yyyy")
    assert.deepStrictEqual(extract("<script>const a = '<h1>x</h1>'").passages, [])
  })

  it("decodes entities without cutting words", () => {
    assert.strictEqual(body(extract("<p>caf&eacute;s &lt;b&gt; &#128512; AT&T")), "cafés <b> 😀 AT&T")
  })

  it("keeps a word whole that markup divides, and separates what is set apart", () => {
    assert.strictEqual(body(extract("<p>un<b>believ</b>able<p>a<td>b<br>c")), "unbelievable\n\na b\nc")
    assert.strictEqual(body(extract("un<b\n>believable")), "unbelievable")
  })

  it("keeps the white space of pre", () => {
    assert.strictEqual(body(extract("<pre>\n  a   b\n    c\n</pre>")), "  a   b\n    c")
  })

  it("knows the line of a passage in the middle of a paragraph", () => {
    const text = source(
      "<p>",
      ...Array.from({ length: 20 }, (_, index) => `<i>${"x".repeat(90)}${index}</i> &amp; y`),
      "</p>"
    )
    const second = extract(text).passages[1]!
    assert.include(text.split("\n")[second.line - 1], second.body.split(" ")[0])
  })

  it("takes what is nested too deep for plain text", () => {
    const text = `${"<div>".repeat(100_000)}deep`
    assert.strictEqual(
      extract(text)
        .passages.map((passage) => passage.body)
        .join("")
        .replace(/\s+/g, ""),
      text
    )
  })

  it.effect.prop(
    "shows every visible word in one passage, or in the headings of one",
    { parts: Schema.Array(Schema.Literals(forms)) },
    ({ parts }) =>
      Effect.sync(() => {
        let count = 0
        const text = parts.join("\n").replace(/@/g, () => `w${count++}w`)
        const { passages } = extract(text)
        for (let word = 0; word < count; word++) {
          const holds = (value: string) => value.includes(`w${word}w`)
          const found = passages.filter((passage) => holds(passage.body)).length
          if (!passages.some((passage) => holds(passage.heading))) assert.strictEqual(found, 1, `w${word}w in\n${text}`)
          else assert.isAtMost(found, 1, `w${word}w in\n${text}`)
        }
      }),
    { arbitrary: { runs: 300 } }
  )

  it.effect.prop("reads any string", { text: Schema.String }, ({ text }) =>
    Effect.sync(() => {
      for (const markup of [text, `<p>${text}`, `<${text}>x`, `<a ${text}`, `<pre>${text}</pre>`]) extract(markup)
    })
  )
})
