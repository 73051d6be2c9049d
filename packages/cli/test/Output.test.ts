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

const same = (text: string) => text

const plain = { strong: same, faint: same, path: same, match: same }

const nothing = { failed: 0, failures: [], skipped: 0, skips: [] }

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
        yield* output.failures({ failed: 3, failures: [{ path: "a\u001b[2J", reason: "no text" }] })
      }
      assert.deepStrictEqual(yield* TestConsole.logLines, [])
      const lines = ["a\\u{1b}[2J: no text", "and 2 more"]
      assert.deepStrictEqual(yield* TestConsole.errorLines, [...lines, ...lines])
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
    const result = {
      scanned: 1,
      indexed: 1,
      unchanged: 0,
      removed: 0,
      failed: 0,
      failures: [],
      skipped: 0,
      skips: [],
      elapsedMs: 61_500
    }
    assert.deepStrictEqual(indexLines(result), [
      "1 file in 1 min 2 s: 1 indexed, 0 unchanged, 0 skipped, 0 removed, 0 failed"
    ])
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
        verifyLines({ ok: false, missing: ["a"], stale: [], orphaned: ["b"], damaged: false, ...nothing }, style)
      )
      yield* output.result({}, (style) =>
        verifyLines({ ok: true, missing: [], stale: [], orphaned: [], damaged: false, ...nothing }, style)
      )
      assert.deepStrictEqual(yield* TestConsole.logLines, [
        "missing   a",
        "orphaned  b",
        "the index agrees with the directories"
      ])
    })
  )

  it("shows the first paths that failed or were skipped, and how many more there are", () => {
    const list = (count: number, reason: string) => Array.from({ length: count }, (_, i) => ({ path: `f${i}`, reason }))
    const result = { scanned: 30, indexed: 0, unchanged: 4, removed: 0, failed: 1, elapsedMs: 1 }
    const lines = indexLines({ ...result, failures: list(1, "bad"), skipped: 25, skips: list(25, "the file is empty") })
    assert.strictEqual(lines.length, 22)
    assert.deepStrictEqual(lines.slice(0, 2), [
      "30 files in 1 ms: 0 indexed, 4 unchanged, 25 skipped, 0 removed, 1 failed",
      "skipped   f0: the file is empty"
    ])
    assert.strictEqual(lines.at(-1), "          and 5 more")
    const verified = { ok: false, missing: [], stale: [], orphaned: [], damaged: false, ...nothing }
    assert.deepStrictEqual(verifyLines({ ...verified, failed: 1, failures: list(1, "bad") }, plain), [
      "failed    f0: bad",
      "all else in the index agrees"
    ])
  })
})
