import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestConsole from "effect/testing/TestConsole"
import { bytes, duration, hitLines, indexLines, verifyLines } from "../src/internal/lines.ts"
import * as Output from "../src/Output.ts"

const hit = {
  path: "docs/a.md",
  line: 12,
  heading: "A > B",
  score: 1.5,
  snippet: [
    { text: "a ", match: false },
    { text: "word", match: true }
  ]
}

describe("Output", () => {
  it.effect("prints one object with JSON, and lines without", () =>
    Effect.gen(function* () {
      const json = yield* Output.make({ json: true, colors: true })
      yield* json.result({ total: 1 }, () => ["never"])
      yield* json.notice("never")
      assert.deepStrictEqual(yield* TestConsole.logLines, ['{"total":1}'])
      assert.deepStrictEqual(yield* TestConsole.errorLines, [])
      const lines = yield* Output.make({ json: false, colors: false })
      yield* lines.result({ total: 1 }, () => ["a", "b"])
      yield* lines.notice("c")
      assert.deepStrictEqual(yield* TestConsole.logLines, ['{"total":1}', "a", "b"])
      assert.deepStrictEqual(yield* TestConsole.errorLines, ["c"])
    })
  )

  it.effect("lists failures on stderr in both forms", () =>
    Effect.gen(function* () {
      for (const json of [true, false]) {
        const output = yield* Output.make({ json, colors: false })
        yield* output.failures([{ path: "a\u001b[2J", reason: "no text" }])
      }
      assert.deepStrictEqual(yield* TestConsole.logLines, [])
      assert.deepStrictEqual(yield* TestConsole.errorLines, ["a\\u{1b}[2J: no text", "a\\u{1b}[2J: no text"])
    })
  )

  it.effect("marks matches in colours only where they are wanted", () =>
    Effect.gen(function* () {
      for (const colors of [true, false]) {
        const output = yield* Output.make({ json: false, colors })
        yield* output.result({}, (style) => hitLines([hit], style))
      }
      const lines = (yield* TestConsole.logLines).map(String)
      assert.strictEqual(lines[1], "  a \u001b[1m\u001b[33mword\u001b[39m\u001b[22m")
      assert.deepStrictEqual(lines.slice(2), ["docs/a.md:12  A > B", "  a word"])
    })
  )

  it("makes control characters visible, and nothing else", () => {
    assert.strictEqual(Output.visible("a\u001b[31m\nb\tc\u202e\u009b"), "a\\u{1b}[31m\\u{0a}b c\\u{202e}\\u{9b}")
    assert.strictEqual(Output.visible("Übung 😀 — „x“"), "Übung 😀 — „x“")
  })

  it("shows counts, sizes and times for people", () => {
    const result = { scanned: 1, indexed: 1, unchanged: 0, removed: 0, failed: 0, skipped: [], elapsedMs: 61_500 }
    assert.deepStrictEqual(indexLines(result), ["1 file in 1 min 2 s: 1 indexed, 0 unchanged, 0 removed, 0 failed"])
    assert.deepStrictEqual([0, 1023, 1024, 1_572_864, 5 * 2 ** 40].map(bytes), [
      "0 B",
      "1023 B",
      "1.0 KiB",
      "1.5 MiB",
      "5.0 TiB"
    ])
    assert.deepStrictEqual([4.4, 1500, 59_960, 119_999, 3_600_000, 3_599_900].map(duration), [
      "4 ms",
      "1.5 s",
      "1 min 0 s",
      "2 min 0 s",
      "1 h 0 min",
      "1 h 0 min"
    ])
  })

  it.effect("lists what differs in a verification", () =>
    Effect.gen(function* () {
      const output = yield* Output.make({ json: false, colors: false })
      yield* output.result({}, (style) =>
        verifyLines({ ok: false, missing: ["a"], stale: [], orphaned: ["b"], damaged: false }, style)
      )
      yield* output.result({}, (style) =>
        verifyLines({ ok: true, missing: [], stale: [], orphaned: [], damaged: false }, style)
      )
      assert.deepStrictEqual(yield* TestConsole.logLines, [
        "missing   a",
        "orphaned  b",
        "the index agrees with the directories"
      ])
    })
  )
})
