/** The whole way from files to hits, with an index in a file of its own. */
import * as Rebuild from "@strata/follower/Rebuild"
import * as Search from "@strata/search/Search"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Stream from "effect/Stream"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { makeWorkspace, openWorkspace, temporaryFolder } from "./workspace.ts"
import { connect, onTiers, type Tier } from "./tiers.ts"

const openDatabase = (tier: Tier) =>
  Effect.map(Effect.all([temporaryFolder, tier.database]), ([base, database]) => ({ base, database }))

onTiers("indexing", (tier) => {
  it.live("finds every file by any word of it, and verifies clean", () =>
    Effect.gen(function* () {
      const base = fileURLToPath(new URL("..", import.meta.url))
      const { compare, index, sql, sync, find } = yield* openWorkspace({
        base,
        database: yield* tier.own,
        folder: "src"
      })
      const { files, processed } = yield* sync()
      assert.isAbove(files, 20)
      assert.strictEqual(processed, files)
      const bodies = yield* sql.unsafe<{ readonly path: string; readonly body: string }>(tier.readPassages)
      for (const { body, path } of bodies) {
        const words = body.match(/[\p{L}\p{N}]+/gu) ?? []
        for (const word of [words.at(0), words.at(words.length >> 1), words.at(-1)]) {
          if (word === undefined) continue
          const { hits } = yield* find(`"${word}"`)
          assert.isTrue(
            hits.some((hit) => hit.path === path),
            `${word} in ${path}`
          )
        }
      }
      assert.deepStrictEqual(yield* compare, { missing: [], stale: [], orphaned: [], unreadable: [] })
      yield* index.check
    })
  )

  it.live("Q5: two files with the same content are both indexed and acknowledged", () =>
    Effect.gen(function* () {
      const { paths, queue, sync, write } = yield* makeWorkspace(tier)
      yield* write("a.txt", "the same")
      yield* write("b/c.txt", "the same")
      yield* sync()
      assert.deepStrictEqual(yield* paths("same"), ["a.txt", "b/c.txt"])
      assert.strictEqual((yield* queue.stats()).total.rows, 0)
    })
  )

  it.live("lets two processes begin one index at a time, and write into it", () =>
    Effect.gen(function* () {
      const { base, database } = yield* openDatabase(tier)
      const folders = ["one", "two"]
      const workspaces = yield* Effect.forEach(folders, (folder) => openWorkspace({ base, database, folder }), {
        concurrency: "unbounded"
      })
      const sync = Effect.forEach(
        workspaces,
        ({ sync, write }, n) =>
          Effect.gen(function* () {
            for (let i = 0; i < 150; i++) yield* write(`f${i % 10}/f${i}.txt`, `common number${i} from${folders[n]}`)
            return yield* sync()
          }),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        (yield* sync).map(({ processed }) => processed),
        [150, 150]
      )
      const generations = yield* Effect.forEach(workspaces, ({ index }) => index.active)
      assert.deepStrictEqual(generations[0], generations[1])
      assert.deepStrictEqual(yield* workspaces[0]!.index.documents, { indexed: 300, skipped: 0 })
      assert.strictEqual((yield* workspaces[1]!.find("common")).total, 300)
      yield* workspaces[0]!.index.check
    })
  )

  it.live("Q12: what is deleted while the index is down is gone when everything has restarted", () =>
    Effect.gen(function* () {
      const database = yield* openDatabase(tier)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { remove, scan, scope, sync, write } = yield* openWorkspace(database)
          for (const path of ["keep.txt", "recorded.txt", "later/unseen.txt"]) yield* write(path, "word")
          yield* sync()
          yield* remove("recorded.txt")
          assert.strictEqual((yield* scan.run({ scope })).removed, 1)
          yield* remove("later")
        })
      )
      const { index, paths, sync } = yield* openWorkspace(database)
      assert.deepStrictEqual(yield* paths("word"), ["keep.txt", "later/unseen.txt", "recorded.txt"])
      yield* sync()
      assert.deepStrictEqual(yield* paths("word"), ["keep.txt"])
      yield* index.check
    })
  )

  it.live("Q13: what is edited in the middle of a rebuild is visible after the switch", () =>
    Effect.gen(function* () {
      const workspace = yield* makeWorkspace(tier)
      const { follower, index, makeFollower, paths, remove, scan, scope, services, sync, write } = workspace
      for (let i = 0; i < 20; i++) yield* write(`f${i}.txt`, `word before${i}`)
      yield* sync()
      const generation = yield* index.begin
      const next = yield* makeFollower(generation)
      // The rebuild registers the follower, which the first looks may come before.
      const tick = Effect.catchReason(next.drain(scope), "DirtyQueueError", "NotRegistered", () => Effect.void)
      yield* Effect.forkScoped(Effect.forever(Effect.delay(tick, "1 millis")))
      const edit = Effect.gen(function* () {
        yield* write("f3.txt", "word edited")
        yield* write("new.txt", "word created")
        yield* remove("f4.txt")
        yield* sync()
      })
      yield* Rebuild.run({
        follower: next,
        replaces: follower.name,
        scopes: [scope],
        // The edit comes when the paths have been listed, before the new index has them.
        content: (scope) =>
          Stream.concat(scan.paths(scope), Stream.fromEffectDrain(Effect.provideContext(edit, services))),
        activate: index.activate(generation)
      }).pipe(Effect.provideContext(services))
      assert.deepStrictEqual(yield* paths("edited"), ["f3.txt"])
      assert.deepStrictEqual(yield* paths("created"), ["new.txt"])
      assert.deepStrictEqual(yield* paths("before3 OR before4"), [])
      assert.strictEqual((yield* paths("word")).length, 20)
      assert.strictEqual(yield* index.dropRetired, 1)
      yield* index.check
    })
  )

  it.live("searches while another client holds the write lock, and sees what is committed", () =>
    Effect.gen(function* () {
      const database = yield* openDatabase(tier)
      const { sql, sync, write } = yield* openWorkspace(database)
      yield* write("a.txt", "word")
      yield* sync()
      const { filename } = database.database
      const peer = yield* connect(database.database)
      const reader = filename === undefined ? peer : yield* SqliteClient.make({ filename, readonly: true })
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`DELETE FROM strata_search_document`
          for (const client of [peer, reader]) {
            assert.strictEqual((yield* Search.search(client, { query: "word" })).total, 1)
          }
        })
      )
      assert.strictEqual((yield* Search.search(reader, { query: "word" })).total, 0)
    }).pipe(Effect.provide(Reactivity.layer))
  )

  it.live("says so when its words do not fit its text", () =>
    Effect.gen(function* () {
      const database = yield* openDatabase(tier)
      const { index, sql, sync, write } = yield* openWorkspace(database)
      yield* write("a.txt", "word")
      yield* write("b.txt", "other")
      yield* sync()
      yield* index.check
      if (database.database.filename === undefined) {
        yield* sql`UPDATE strata_search_passage SET body = 'another' WHERE body = 'other'`
      } else {
        // A client of the library cannot write such tables.
        const raw = new DatabaseSync(database.database.filename, { defensive: false })
        raw.exec("UPDATE strata_search_fts_1_content SET c2 = 'another' WHERE c2 = 'other'")
        raw.close()
      }
      const error = yield* Effect.flip(index.check)
      if (error._tag !== "IndexCorrupt") return assert.fail(error._tag)
      assert.strictEqual(error.reason._tag, "FullText")
    })
  )

  it.live("indexes a page of nothing but markup, and the files beside it", () =>
    Effect.gen(function* () {
      const { paths, sync, write } = yield* makeWorkspace(tier)
      yield* write("page.html", "<h1>word".repeat(150_000))
      yield* write("good.txt", "word")
      yield* sync()
      assert.deepStrictEqual(yield* paths("word"), ["good.txt", "page.html"])
    })
  )

  it.live("sets a file aside that makes more passages than a document can have, and indexes the rest", () =>
    Effect.gen(function* () {
      const { index, makeFollower, paths, queue, reader, scan, scope, write } = yield* makeWorkspace(tier)
      for (const name of ["bad.txt", "good.txt", "other.txt"]) yield* write(name, "word")
      yield* scan.run({ scope })
      const passages = Array.from({ length: 2 ** 20 }, () => ({ line: 1, heading: "", body: "x" }))
      const value = { _tag: "Text", title: "bad", passages } as const
      const follower = yield* makeFollower(yield* index.ensureActive, {
        read: (key) =>
          key.path === "bad.txt" ? Effect.succeedSome({ digest: "bad", load: Effect.succeed(value) }) : reader.read(key)
      })
      yield* follower.drain(scope)
      assert.deepStrictEqual(yield* paths("word"), ["good.txt", "other.txt"])
      assert.deepStrictEqual(
        (yield* queue.deadLetters()).map((row) => [row.path as string, row.lastError]),
        [["bad.txt", "the text makes more than 1048575 passages"]]
      )
    })
  )

  it.live("answers odd queries, or refuses them in one line", () =>
    Effect.gen(function* () {
      const { find, sync, write } = yield* makeWorkspace(tier)
      yield* write("a.md", "# Odd\n\ncol:val and foo(bar) say 🚀 AND so on; it's 100% c++\n")
      yield* sync()
      const answered = [
        '"col',
        "col:val",
        "foo(bar",
        ")foo",
        "AND",
        "OR NOT",
        "foo AND",
        "title:odd",
        "NEAR(foo bar)",
        "f*",
        "it's",
        "'; DROP TABLE strata_search_document; --",
        "^foo",
        "c++ -absent"
      ]
      for (const query of answered) {
        const found = yield* find(query)
        assert.isAtLeast(found.total, 0)
        assert.strictEqual(found.hits.length, found.total)
      }
      assert.strictEqual((yield* find("col:val")).total, 1)
      for (const query of ["", '"', "*", "()", "🚀", "-foo", "-", "x".repeat(1_001)]) {
        const error = yield* Effect.flip(find(query))
        assert.strictEqual(error._tag, "QueryError", query)
        assert.notInclude(error.message, "\n")
      }
    })
  )
})
