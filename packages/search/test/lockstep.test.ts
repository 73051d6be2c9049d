/** The same files and the same queries on SQLite and on Postgres: the same documents, lines and snippets. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { fileURLToPath } from "node:url"
import { postgres, sqlite } from "./tiers.ts"
import { openWorkspace, temporaryFolder } from "./workspace.ts"

const both = Effect.fnUntraced(function* (base: string, folder?: string) {
  return yield* Effect.forEach([sqlite, postgres], (tier) =>
    Effect.flatMap(tier.own, (database) => openWorkspace({ base, folder, database }))
  )
})

type Workspace = Effect.Success<ReturnType<typeof both>>[number]

/** Without what depends on how a database ranks: the score, and which of several passages is the best. */
const answersOf = Effect.fnUntraced(function* (workspace: Workspace, query: string, passages: boolean) {
  const found = yield* Effect.result(workspace.find(query, { limit: 10_000 }))
  if (found._tag === "Failure") return { error: found.failure.message }
  const hits = found.success.hits.map(({ heading, line, path, snippet, title }) =>
    passages ? { path, title, heading, line, snippet } : { path, title }
  )
  return { total: found.success.total, hits: hits.toSorted((a, b) => (a.path < b.path ? -1 : 1)) }
})

const vocabulary = ["red", "Fox", "wölf", "foo_bar", "it's", "A.B(c)", "über", "x", "ΑΘΗΝΑ", "日本", "1.5", "n:"]

const connectives = ["-", '"', '" ', "*", "* ", " OR ", " NOT ", " AND ", " ", "  ", " -", "\n", ". "]

const parts = Schema.Array(Schema.Literals([...vocabulary, ...connectives]))

describe.skipIf(!postgres.isAvailable())("SQLite and Postgres", { timeout: 120_000 }, () => {
  it.live("find the same in the sources of this package, line by line", () =>
    Effect.gen(function* () {
      const [a, b] = yield* both(fileURLToPath(new URL("..", import.meta.url)), "src")
      yield* a!.sync()
      yield* b!.sync()
      assert.deepStrictEqual(yield* b!.index.documents, yield* a!.index.documents)
      assert.deepStrictEqual(yield* b!.index.digests(b!.scope), yield* a!.index.digests(a!.scope))
      const passages = yield* a!.sql.unsafe<{ readonly body: string }>(sqlite.readPassages)
      for (const { body } of passages.filter((_, i) => i % 12 === 0)) {
        const words = body.match(/[\p{L}\p{N}]+/gu) ?? []
        const middle = words.length >> 1
        const phrase = words.slice(middle, middle + 3).join(" ")
        for (const query of [
          `"${phrase}"`,
          phrase,
          `${words[middle]?.slice(0, 3)}*`,
          `${words.at(-1)} OR "${phrase}"`
        ]) {
          assert.deepStrictEqual(yield* answersOf(b!, query, false), yield* answersOf(a!, query, false), query)
        }
      }
    })
  )

  it.effect.prop(
    "find the same for any texts and any query",
    { texts: Schema.Array(parts).check(Schema.isMinLength(1), Schema.isMaxLength(5)), queries: Schema.Array(parts) },
    ({ queries, texts }) =>
      Effect.gen(function* () {
        const workspaces = yield* both(yield* temporaryFolder)
        const [a, b] = workspaces
        for (const [i, text] of texts.entries()) yield* a!.write(`f${i}.txt`, `${text.join("")} end${i}.`)
        for (const workspace of workspaces) yield* workspace.sync()
        const asked = [
          ...queries.map((query) => query.join("")),
          ...vocabulary,
          "x*",
          "red -x",
          '"red fox" OR x',
          "end*"
        ]
        for (const query of asked) {
          assert.deepStrictEqual(yield* answersOf(b!, query, true), yield* answersOf(a!, query, true), query)
        }
      }),
    { arbitrary: { runs: 12, seed: 11 } }
  )

  it.live("cut the same snippets out of long passages", () =>
    Effect.gen(function* () {
      const workspaces = yield* both(yield* temporaryFolder)
      const [a, b] = workspaces
      let seed = 7
      const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
      const separators = [" ", " ", " ", ", ", ". ", ": ", ".\n", "\n", " - ", "(", ") ", ".", ":"]
      for (let i = 0; i < 60; i++) {
        let text = ""
        for (let word = random(150); word >= 0; word--) {
          const rare = random(12) === 0
          text += `${rare ? vocabulary[random(vocabulary.length)] : `w${random(40)}`}${separators[random(separators.length)]}`
        }
        yield* a!.write(`f${i}.txt`, `start ${text}`)
      }
      for (const workspace of workspaces) yield* workspace.sync()
      const queries = [
        "red OR fox",
        "red",
        "w1 OR w2 OR w3",
        '"w1 w2" OR wolf OR uber',
        "w1*",
        "start",
        "w1 w2",
        "x OR 1.5"
      ]
      for (const query of queries) {
        const expected = yield* answersOf(a!, query, true)
        assert.isAbove(Number(expected.total), 3, query)
        assert.deepStrictEqual(yield* answersOf(b!, query, true), expected, query)
      }
      assert.isTrue(Option.isSome(yield* b!.index.active))
    })
  )
})
