import { assert, it } from "@effect/vitest"
import { Path } from "@strata/dirty-queue/Path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { SqlClient } from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import { makeWorkspace } from "./workspace.ts"
import { onTiers } from "./tiers.ts"

onTiers("SearchIndex", (tier) => {
  const passages = (sql: SqlClient) =>
    Effect.map(sql.unsafe<{ readonly n: number }>(tier.countPassages), ([row]) => row!.n)

  it.live("finds a document with path, line, heading and highlighted snippet", () =>
    Effect.gen(function* () {
      const { find, sync, write } = yield* makeWorkspace(tier)
      yield* write("guide.md", "# Guide\n\nIntro.\n\n## Leases\n\nA claim is a lease, and a lease ends.\n")
      yield* write("other.txt", "nothing of interest")
      yield* sync()
      const { hits, total } = yield* find("lease")
      assert.strictEqual(total, 1)
      const [hit] = hits
      assert.deepStrictEqual(
        [hit?.path, hit?.title, hit?.line, hit?.heading],
        ["guide.md", "Guide", 7, "Guide > Leases"]
      )
      const { highlights, text } = hit!.snippet
      assert.deepStrictEqual(
        highlights.map(([start, end]) => text.slice(start, end)),
        ["lease", "lease"]
      )
      assert.isAbove(hit!.score, 0)
    })
  )

  it.live("gives the line of the first match, however much markup was between", () =>
    Effect.gen(function* () {
      const { find, sync, write } = yield* makeWorkspace(tier)
      yield* write("plain.txt", "one\ntwo\n\nthree needle\nfour needle hay\n")
      yield* write(
        "guide.md",
        "# Needles\n\nfirst\n\n\n\n***\n\n- item\n\n  needle and thread\n\n| a | b |\n|---|---|\n| hay | x |\n"
      )
      yield* write("page.html", "<h1>Top</h1>\n<p>one</p>\n\n<ul>\n\n<li>some\nneedle</li></ul>\n")
      yield* sync()
      const lines = (query: string) =>
        Effect.map(find(query), ({ hits }) => Object.fromEntries(hits.map((hit) => [hit.path, hit.line])))
      assert.deepStrictEqual(yield* lines("needle"), { "plain.txt": 4, "guide.md": 11, "page.html": 7 })
      assert.deepStrictEqual(yield* lines("hay"), { "plain.txt": 5, "guide.md": 15 })
      assert.deepStrictEqual(yield* lines('"needle hay"'), { "plain.txt": 5 })
      // Found by its heading only: where the passage starts.
      assert.deepStrictEqual(yield* lines("needles"), { "guide.md": 3 })
    })
  )

  it.live("ranks a title above a heading above text, one hit a document", () =>
    Effect.gen(function* () {
      const { find, sync, write } = yield* makeWorkspace(tier)
      yield* write("a.md", "# Other\n\nzebra here and words and words\n")
      yield* write("b.md", "# Other\n\n## zebra\n\nnothing but words\n")
      yield* write("c.md", "# zebra\n\nnothing but words\n")
      for (let i = 0; i < 20; i++) yield* write(`fill${i}.md`, "# Fill\n\njust words\n")
      yield* sync()
      const { hits } = yield* find("zebra")
      assert.deepStrictEqual(
        hits.map((hit) => hit.path),
        ["c.md", "b.md", "a.md"]
      )
    })
  )

  it.live("folds case and accents, and finds prefixes and phrases", () =>
    Effect.gen(function* () {
      const { paths, sync, write } = yield* makeWorkspace(tier)
      yield* write("a.txt", "Crème brûlée IS served")
      yield* write("b.txt", "served is creme")
      yield* sync()
      assert.deepStrictEqual(yield* paths("creme"), ["a.txt", "b.txt"])
      assert.deepStrictEqual(yield* paths("CRÈ*"), ["a.txt", "b.txt"])
      assert.deepStrictEqual(yield* paths('"is served"'), ["a.txt"])
      assert.deepStrictEqual(yield* paths("creme -brulee"), ["b.txt"])
    })
  )

  it.live("limits hits to scopes and exact path prefixes, and counts what matches", () =>
    Effect.gen(function* () {
      const { find, scope, sync, write } = yield* makeWorkspace(tier)
      for (const path of ["a_b/x.txt", "aXb/x.txt", "A_B/x.txt", "a_b2/x.txt", "a_b/😀.txt"]) yield* write(path, "word")
      yield* sync()
      const within = yield* find("word", { within: [{ scope, prefix: "a_b/" }] })
      assert.deepStrictEqual(within.hits.map((hit) => hit.path).toSorted(), ["a_b/x.txt", "a_b/😀.txt"])
      const limited = yield* find("word", { limit: 2 })
      assert.deepStrictEqual([limited.hits.length, limited.total], [2, 5])
      assert.strictEqual((yield* find("word", { within: [{ scope: "elsewhere", prefix: "" }] })).total, 0)
    })
  )

  it.live("D1: the old words of a changed document match nothing", () =>
    Effect.gen(function* () {
      const { paths, sync, write } = yield* makeWorkspace(tier)
      yield* write("a.txt", "ancient words")
      yield* sync()
      yield* write("a.txt", "modern words now")
      yield* sync()
      assert.deepStrictEqual(yield* paths("ancient"), [])
      assert.deepStrictEqual(yield* paths("modern"), ["a.txt"])
    })
  )

  it.live("D2: a document that shrinks leaves no passages behind", () =>
    Effect.gen(function* () {
      const { index, sql, sync, write } = yield* makeWorkspace(tier)
      const section = (i: number) => `## Section ${i}\n\n${`word${i} `.repeat(250)}\n\n`
      yield* write("a.md", `# T\n\n${[1, 2, 3, 4, 5].map(section).join("")}`)
      yield* sync()
      const before = yield* passages(sql)
      yield* write("a.md", `# T\n\n${[1, 2].map(section).join("")}`)
      yield* sync()
      assert.isBelow(yield* passages(sql), before)
      yield* index.check
      yield* write("a.md", "")
      yield* sync()
      assert.strictEqual(yield* passages(sql), 0)
      yield* index.check
    })
  )

  it.live("says so when passages and documents do not fit", () =>
    Effect.gen(function* () {
      const { index, sql, sync, write } = yield* makeWorkspace(tier)
      yield* write("a.txt", "one")
      yield* write("b.txt", "two")
      yield* sync()
      yield* index.check
      yield* sql.unsafe(tier.deletePassages("a.txt"))
      yield* sql`DELETE FROM strata_search_document WHERE path = 'b.txt'`
      const error = yield* Effect.flip(index.check)
      if (error._tag !== "IndexCorrupt") return assert.fail(error._tag)
      assert.deepStrictEqual(
        [error.generation, error.reason],
        [1, { _tag: "Passages", documents: 1, orphans: tier.name === "SQLite" ? 1 : 0 }]
      )
    })
  )

  it.live("builds a generation beside the active one, which serves until the switch", () =>
    Effect.gen(function* () {
      const { find, index, makeFollower, queue, scan, scope, switchTo, sync, write } = yield* makeWorkspace(tier)
      yield* write("a.txt", "word")
      yield* sync()
      const next = yield* index.begin
      assert.deepStrictEqual(yield* index.begin, next)
      const follower = yield* makeFollower(next)
      yield* follower.register(scope)
      const paths = yield* Stream.runCollect(scan.paths(scope))
      assert.deepStrictEqual(paths as ReadonlyArray<string>, ["a.txt"])
      yield* queue.enqueue({ follower: follower.name, scope, paths })
      yield* follower.drain(scope)
      assert.strictEqual((yield* find("word")).total, 1)
      assert.strictEqual(Option.getOrUndefined(yield* index.active)?.id, 1)
      yield* switchTo(next)
      assert.strictEqual(Option.getOrUndefined(yield* index.active)?.id, next.id)
      assert.strictEqual((yield* find("word")).total, 1)
      assert.strictEqual(yield* index.dropRetired, 1)
      assert.strictEqual((yield* find("word")).total, 1)
      assert.deepStrictEqual(yield* index.documents, { indexed: 1, skipped: 0 })
      yield* index.check
    })
  )

  it.effect.prop(
    "finds any word of any text, and keeps control characters out of snippets",
    {
      texts: Schema.Array(Schema.String.check(Schema.isMaxLength(60))).check(
        Schema.isMinLength(1),
        Schema.isMaxLength(6)
      )
    },
    ({ texts }) =>
      Effect.gen(function* () {
        const { find, sync, write } = yield* makeWorkspace(tier)
        for (const [i, text] of texts.entries()) {
          // More control characters than this make a file binary.
          const printable = text.replaceAll(/\p{Cc}/gu, " ")
          yield* write(`f${i}.txt`, `${printable} ${"plain ".repeat(40)} \u0002anchor${i}\u0003`)
        }
        yield* sync()
        for (const i of texts.keys()) {
          const { hits } = yield* find(`anchor${i}`)
          assert.isTrue(hits.some((hit) => hit.path === `f${i}.txt`))
          for (const { snippet } of hits) {
            assert.isTrue(snippet.highlights.every(([start, end]) => start < end && end <= snippet.text.length))
          }
        }
      }),
    { arbitrary: { runs: tier.name === "SQLite" ? 20 : 8, seed: 3 } }
  )

  if (tier.name !== "SQLite") return

  it.live("takes documents out, and puts them in, with little more writing than their passages need", () =>
    Effect.gen(function* () {
      const { index, remove, scope, sql, sync, write } = yield* makeWorkspace(tier)
      const changes = Effect.map(sql.unsafe<{ readonly n: number }>("SELECT total_changes() AS n"), ([row]) => row!.n)
      const count = 300
      for (let i = 0; i < count; i++) yield* write(`many/f${i}.txt`, `common word${i} other${i % 7}`)
      yield* write("kept.txt", "kept")
      const start = yield* changes
      yield* sync()
      const filled = yield* changes
      const weights = yield* index.writer(yield* index.ensureActive).weights!(scope, [Path.make("kept.txt")])
      assert.deepStrictEqual([...weights], [["kept.txt", 1200]])
      yield* remove("many")
      yield* sync()
      // Rows of the changelog, the queue, the documents and FTS5's three tables, by triggers too: about 9 a document.
      assert.isBelow((filled - start) / count, 11)
      assert.isBelow(((yield* changes) - filled) / count, 11)
      assert.strictEqual(yield* passages(sql), 1)
      yield* index.check
    })
  )

  it.live("writes the words of many documents once, as one segment", () =>
    Effect.gen(function* () {
      const { sql, sync, write } = yield* makeWorkspace(tier)
      const words = (seed: number) => Array.from({ length: 1500 }, (_, i) => `w${seed}x${i}`).join(" ")
      for (let i = 0; i < 50; i++) yield* write(`f${i}.txt`, words(i))
      yield* sync()
      const [segments] = yield* sql.unsafe<{ readonly n: number }>(
        "SELECT count(DISTINCT id >> 37) AS n FROM strata_search_fts_1_data WHERE id > 10"
      )
      assert.strictEqual(segments?.n, 1)
      assert.isAbove(yield* passages(sql), 50)
    })
  )
})
