/**
 * Indexing a real tree, the installed package `effect`: the whole of a first index against plain insertion of the same
 * passages, and a second run without change against a bare walk.
 */
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import type { Scope } from "@strata/dirty-queue/Path"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Follower from "@strata/follower/Follower"
import * as Extractor from "@strata/search/Extractor"
import * as FileReader from "@strata/search/FileReader"
import * as Roots from "@strata/search/Roots"
import * as Scan from "@strata/search/Scan"
import * as SearchIndex from "@strata/search/SearchIndex"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { lstatSync, readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { type Bench, type Case, type Run, temporaryFolder, timed } from "./Harness.ts"

const tree = dirname(fileURLToPath(import.meta.resolve("effect/package.json")))
const base = dirname(tree)

const layer = (filename: string) =>
  Layer.mergeAll(SearchIndex.layer, Scan.layer({ base }), Extractor.layer()).pipe(
    Layer.provideMerge(Layer.mergeAll(Changelog.layer(), DirtyQueue.layer())),
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
    Layer.provideMerge(SqliteClient.layer({ filename, synchronous: "FULL" }))
  )

const scope: Scope = Roots.scopeOf(base, tree)

/** Scan, queue, extraction and full-text index, as `strata index` does it. */
const indexTree = Effect.gen(function* () {
  const index = yield* SearchIndex.SearchIndex
  const scan = yield* Scan.Scan
  const generation = yield* index.ensureActive
  const follower = yield* Follower.make({
    name: "search",
    version: String(generation.id),
    queue: yield* DirtyQueue.DirtyQueue,
    reader: FileReader.make({ base, extractor: yield* Extractor.Extractor, lists: scan.lists }),
    writer: index.writer(generation),
    batchSize: 400,
    concurrency: 1,
    weigh: SearchIndex.weigh,
    maxWeight: 8 * 1024 * 1024
  })
  yield* follower.register(scope)
  yield* scan.run({ scope })
  let more = true
  while (more) more = (yield* follower.drain(scope)).hasMore
})

const first: Run = Effect.gen(function* () {
  const filename = join(yield* temporaryFolder, "index.db")
  const context = yield* Layer.build(layer(filename))
  return yield* timed(Effect.provideContext(indexTree, context))
})

type Row = readonly [rowid: number, title: string, heading: string, body: string, line: number]

const rowsPerTransaction = 1000

const rawInsert = (rows: ReadonlyArray<Row>): Run =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "raw.db")
    const database = yield* Effect.acquireRelease(
      Effect.sync(() => new DatabaseSync(filename)),
      (database) => Effect.sync(() => database.close())
    )
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000")
    database.exec(
      "CREATE VIRTUAL TABLE passage USING fts5(title, heading, body, line UNINDEXED, tokenize = 'unicode61 remove_diacritics 2')"
    )
    const insert = database.prepare("INSERT INTO passage (rowid, title, heading, body, line) VALUES (?, ?, ?, ?, ?)")
    return yield* timed(
      Effect.sync(() => {
        for (let start = 0; start < rows.length; start += rowsPerTransaction) {
          database.exec("BEGIN IMMEDIATE")
          for (const row of rows.slice(start, start + rowsPerTransaction)) insert.run(...row)
          database.exec("COMMIT")
        }
      })
    )
  })

/** What a first index inserts, read back from one. */
const passages: Effect.Effect<ReadonlyArray<Row>, unknown> = Effect.scoped(
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "passages.db")
    const context = yield* Layer.build(layer(filename))
    yield* Effect.provideContext(indexTree, context)
    const sql = yield* Effect.provideContext(SqlClient.SqlClient, context)
    const rows = yield* sql.unsafe("SELECT rowid, title, heading, body, line FROM strata_search_fts_1").values
    return rows.map((row): Row => [Number(row[0]), String(row[1]), String(row[2]), String(row[3]), Number(row[4])])
  })
)

const bareWalk: Run = timed(
  Effect.sync(() => {
    const walk = (folder: string): void => {
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        const path = `${folder}/${entry.name}`
        if (entry.isDirectory()) walk(path)
        else lstatSync(path)
      }
    }
    walk(tree)
  })
)

const firstCase: Case = {
  name: "first",
  about: "the installed package effect into an empty index, synchronous=FULL; raw-fts5 inserts the same passages",
  unit: "ms",
  better: "lower",
  contenders: Effect.map(passages, (rows) => ({ ours: first, rivals: { "raw-fts5": rawInsert(rows) } }))
}

const unchangedCase: Case = {
  name: "unchanged",
  about: "a second run over the installed package effect, nothing changed; lstat is a bare walk of the same tree",
  unit: "ms",
  better: "lower",
  contenders: Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "index.db")
    const context = yield* Layer.build(layer(filename))
    yield* Effect.provideContext(indexTree, context)
    return { ours: timed(Effect.provideContext(Effect.scoped(indexTree), context)), rivals: { lstat: bareWalk } }
  })
}

export const index: Bench = { name: "index", cases: [firstCase, unchangedCase] }
