import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { execFileSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import * as Extractor from "../src/Extractor.ts"

const { extract } = Extractor.make()

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

const utf16 = (text: string, order: "LE" | "BE"): Uint8Array => {
  const bytes = Buffer.from(`\ufeff${text}`, "utf16le")
  return order === "LE" ? bytes : bytes.swap16()
}

const reasonOf = (path: string, bytes: Uint8Array, options?: Extractor.ExtractorOptions) =>
  Effect.map(Effect.flip(Extractor.make(options).extract(path, bytes)), (skip) => skip.reason)

const adversarial: Readonly<Record<string, string>> = {
  quotes: "> ".repeat(10_000),
  lists: "- ".repeat(10_000) + "x",
  brackets: "[".repeat(10_000),
  "nested links": "[".repeat(10_000) + "](a)".repeat(10_000),
  "nested images": "![".repeat(10_000) + "](a)".repeat(10_000),
  emphasis: "*a _b ".repeat(10_000),
  backticks: Array.from({ length: 500 }, (_, index) => "`".repeat(index)).join(" "),
  "one line of words": "word ".repeat(200_000),
  "one word": "x".repeat(1_000_000),
  "open tags": "<div>".repeat(100_000) + "x",
  "open comments": "<!--".repeat(50_000),
  "one tag": `<p ${"a=b ".repeat(100_000)}`,
  "less-thans": "<".repeat(100_000),
  templates: "<template>".repeat(100_000) + "x",
  references: "[a]: b\n".repeat(20_000) + "[a]",
  table: `|${"a|".repeat(20_000)}\n|${"-|".repeat(20_000)}\n`,
  "blank lines": "\n".repeat(500_000) + "x",
  spaces: " ".repeat(500_000) + "x",
  "front matter": `---\n${"- ".repeat(5_000)}\n---\nx`,
  "carriage returns": "a\r".repeat(50_000)
}

describe("Extractor", () => {
  it.effect("chooses the format by the extension", () =>
    Effect.gen(function* () {
      const titleOf = (path: string, text: string) => Effect.map(extract(path, utf8(text)), ({ title }) => title)
      assert.strictEqual(yield* titleOf("a/b.md", "# Title"), "Title")
      assert.strictEqual(yield* titleOf("a/b.MARKDOWN", "# Title"), "Title")
      assert.strictEqual(yield* titleOf("a/b.mdx", "# Title"), "Title")
      assert.strictEqual(yield* titleOf("a/b.html", "<title>Title</title>x"), "Title")
      assert.strictEqual(yield* titleOf("a/b.htm", "<h1>Title</h1>x"), "Title")
      assert.strictEqual(yield* titleOf("a/b.ts", "# Title"), "b.ts")
      assert.strictEqual(yield* titleOf("a/.md", "# Title"), ".md")
      assert.strictEqual(yield* titleOf("a.md/README", "# Title"), "README")
      assert.strictEqual(yield* titleOf("page", "\n<!DOCTYPE html>\n<title>Title</title>x"), "Title")
      assert.strictEqual(yield* titleOf("b.vue", "<html><title>Title</title>x"), "b.vue")
    })
  )

  it.effect("keeps the text of code as it is, with its lines", () =>
    Effect.gen(function* () {
      const { passages } = yield* extract("a.ts", utf8("\n// a\n\n  const b = <c>1\n"))
      assert.deepStrictEqual(passages, [{ line: 2, heading: "", body: "// a\n\n  const b = <c>1" }])
    })
  )

  it.effect("reads UTF-8 and UTF-16 with a mark, and any line ends", () =>
    Effect.gen(function* () {
      const text = "größe\r\n\r\n日本 😀\r\nend"
      for (const bytes of [utf8(text), utf8(`\ufeff${text}`), utf16(text, "LE"), utf16(text, "BE")]) {
        const { passages } = yield* extract("a.txt", bytes)
        assert.deepStrictEqual(passages, [{ line: 1, heading: "", body: "größe\n\n日本 😀\nend" }])
      }
    })
  )

  it.effect("reads a part of a larger buffer", () =>
    Effect.gen(function* () {
      const { passages } = yield* extract("a.txt", utf8("\0\0text\0").subarray(2, 6))
      assert.strictEqual(passages[0]!.body, "text")
    })
  )

  it.effect("says why a file has nothing to search", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* reasonOf("a.txt", utf8("")), { _tag: "Empty" })
      assert.deepStrictEqual(yield* reasonOf("a.txt", utf8(" \n\t")), { _tag: "Empty" })
      assert.deepStrictEqual(yield* reasonOf("a.txt", utf8("\ufeff")), { _tag: "Empty" })
      assert.deepStrictEqual(yield* reasonOf("a.html", utf8("<script>x</script>")), { _tag: "Empty" })
      assert.deepStrictEqual(yield* reasonOf("a.png", Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0, 1, 2)), {
        _tag: "Binary"
      })
      assert.deepStrictEqual(yield* reasonOf("a.pdf", utf8("%PDF-1.4 text")), { _tag: "Binary" })
      assert.deepStrictEqual(yield* reasonOf("a.txt", utf8(`${"text ".repeat(1_000)}\0`)), { _tag: "Binary" })
      assert.deepStrictEqual(yield* reasonOf("a.txt", Buffer.from("the café of the town", "latin1")), {
        _tag: "NotText"
      })
      assert.deepStrictEqual(yield* reasonOf("a.txt", utf8(`${"text ".repeat(10)}😀`).subarray(0, -1)), {
        _tag: "NotText"
      })
      assert.deepStrictEqual(yield* reasonOf("a.txt", Uint8Array.of(0xff, 0xfe, 0x41)), { _tag: "NotText" })
      assert.deepStrictEqual(yield* reasonOf("a.txt", Uint8Array.of(0xff, 0xfe, 0x00, 0xd8)), { _tag: "NotText" })
    })
  )

  it.effect("refuses a file over the limit, and one below it not", () =>
    Effect.gen(function* () {
      const reason = yield* reasonOf("a.txt", utf8("12345"), { maxBytes: 4 })
      assert.deepStrictEqual(reason, { _tag: "TooLarge", size: 5, limit: 4 })
      assert.strictEqual((yield* Extractor.make({ maxBytes: 5 }).extract("a.txt", utf8("12345"))).passages.length, 1)
      const skip = new Extractor.Skip({ path: "a.txt", reason })
      assert.strictEqual(skip.message, "the file has 5 bytes, the limit is 4")
    })
  )

  it.effect("cuts a long title and keeps its text", () =>
    Effect.gen(function* () {
      const long = `${"x".repeat(199)}😀 tail`
      const { title, passages } = yield* extract("a.html", utf8(`<title>${long}</title><p>body`))
      assert.strictEqual(title, "x".repeat(199))
      assert.deepStrictEqual(
        passages.map(({ body }) => body),
        [long, "body"]
      )
    })
  )

  it.effect("takes markup for plain text when it is too long, or its format fails", () =>
    Effect.gen(function* () {
      const format = (maxLength: number): Extractor.Format => ({
        extensions: ["x"],
        maxLength,
        load: Effect.succeed((text) => {
          if (text === "fails") throw new RangeError("too deep")
          return { title: "T", passages: [{ line: 1, heading: "", body: "read" }] }
        })
      })
      const titleOf = (text: string, maxLength: number) =>
        Effect.map(Extractor.make({ formats: [format(maxLength)] }).extract("a.x", utf8(text)), ({ title }) => title)
      assert.strictEqual(yield* titleOf("text", 4), "T")
      assert.strictEqual(yield* titleOf("text", 3), "a.x")
      assert.strictEqual(yield* titleOf("fails", 10), "a.x")
    })
  )

  describe("ends quickly on input made to be slow", () => {
    it.effect.each(Object.entries(adversarial))(
      "%s",
      ([, text]) =>
        Effect.gen(function* () {
          for (const path of ["a.md", "a.html", "a.txt"]) {
            const start = performance.now()
            yield* Effect.result(extract(path, utf8(text)))
            assert.isBelow(performance.now() - start, 5_000, path)
          }
        }),
      20_000
    )
  })

  it.effect.prop(
    "never fails on text",
    { text: Schema.String, path: Schema.Literals(["a.md", "a.html", "a.txt", "a"]) },
    ({ text, path }) =>
      Effect.gen(function* () {
        const result = yield* Effect.result(extract(path, utf8(text)))
        if (result._tag === "Failure") assert.include(["Empty", "Binary"], result.failure.reason._tag)
        else assert.isAbove(result.success.passages.length, 0)
      }),
    { arbitrary: { runs: 300 } }
  )

  it.effect.prop(
    "never dies on bytes",
    { bytes: Schema.Uint8Array, path: Schema.Literals(["a.md", "a.html", "a.txt"]) },
    ({ bytes, path }) => Effect.result(extract(path, bytes)),
    { arbitrary: { runs: 300 } }
  )

  it("loads no parser before a file needs it", () => {
    const script = `
      import { registerHooks } from "node:module"
      const loaded = []
      registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) })
      const Extractor = await import("@strata/search/Extractor")
      const Effect = await import("effect/Effect")
      const parsers = () => loaded.filter((url) => /node_modules\\/(markdown-it|htmlparser2|yaml)\\//.test(url)).length
      const { extract } = Extractor.make()
      await Effect.runPromise(extract("a.ts", Buffer.from("text")))
      const before = parsers()
      await Effect.runPromise(extract("a.md", Buffer.from("text")))
      console.log(JSON.stringify([before, parsers() > 0]))
    `
    const output = execFileSync(
      process.execPath,
      ["--conditions=@strata/source", "--no-warnings", "--input-type=module", "--eval", script],
      { encoding: "utf8", cwd: fileURLToPath(new URL("..", import.meta.url)) }
    )
    assert.deepStrictEqual(JSON.parse(output), [0, true])
  })
})
