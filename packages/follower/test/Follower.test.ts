import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import * as MemoryStore from "@strata/dirty-queue/MemoryStore"
import * as DurableWriter from "@strata/durable/DurableWriter"
import type * as IndexWriter from "@strata/follower/IndexWriter"
import { followerSuite, TestIndex } from "@strata/follower/testing"
import { SqliteClient } from "@strata/sqlite"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"

interface Entry {
  readonly digest: string
  readonly value: string
}

const indexMemory = Layer.sync(TestIndex, () => {
  const indexes = new Map<string, Map<string, Entry>>()
  const at = (name: string, scope: string) => {
    const key = `${name}/${scope}`
    const entries = indexes.get(key) ?? new Map<string, Entry>()
    indexes.set(key, entries)
    return entries
  }
  const writer = (name: string): IndexWriter.Transactional<string> => ({
    mode: "transactional",
    digests: (scope, paths) =>
      Effect.sync(
        () =>
          new Map(
            paths.flatMap((path) => {
              const entry = at(name, scope).get(path)
              return entry === undefined ? [] : [[path, entry.digest] as const]
            })
          )
      ),
    write: (batch) =>
      DurableWriter.WriteTransaction.use((transaction) => {
        const entries = at(name, batch.scope)
        const before = new Map(entries)
        for (const { digest, path, value } of batch.upserts) entries.set(path, { digest, value })
        for (const { path } of batch.removals) entries.delete(path)
        return transaction.onRollback(() => {
          entries.clear()
          for (const [path, entry] of before) entries.set(path, entry)
        })
      })
  })
  return TestIndex.of({
    writer,
    entries: (name, scope) =>
      Effect.sync(() => Object.fromEntries([...at(name, scope)].map(([path, entry]) => [path, entry.value])))
  })
})

const indexSql = Layer.effect(
  TestIndex,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`CREATE TABLE entry (
      name TEXT, scope TEXT, path TEXT, digest TEXT, value TEXT, PRIMARY KEY (name, scope, path)
    )`
    const writer = (name: string): IndexWriter.Transactional<string> => ({
      mode: "transactional",
      digests: (scope, paths) =>
        Effect.map(
          sql<{ readonly path: (typeof paths)[number]; readonly digest: string }>`
            SELECT path, digest FROM entry WHERE name = ${name} AND scope = ${scope} AND ${sql.in("path", paths)}`,
          (rows) => new Map(rows.map((row) => [row.path, row.digest]))
        ),
      write: (batch) =>
        Effect.gen(function* () {
          for (const { digest, path, value } of batch.upserts) {
            yield* sql`INSERT OR REPLACE INTO entry VALUES (${name}, ${batch.scope}, ${path}, ${digest}, ${value})`
          }
          for (const { path } of batch.removals) {
            yield* sql`DELETE FROM entry WHERE name = ${name} AND scope = ${batch.scope} AND path = ${path}`
          }
        })
    })
    return TestIndex.of({
      writer,
      entries: (name, scope) =>
        Effect.map(
          sql<{ readonly path: string; readonly value: string }>`
            SELECT path, value FROM entry WHERE name = ${name} AND scope = ${scope} ORDER BY path`,
          (rows) => Object.fromEntries(rows.map((row) => [row.path, row.value]))
        )
    })
  })
)

followerSuite("memory", () =>
  Layer.mergeAll(Changelog.layerMemory(), DirtyQueue.layerMemory(), indexMemory).pipe(
    Layer.provideMerge(Layer.mergeAll(MemoryStore.layer, DurableWriter.layerMemory(), ChangeSignal.layer))
  )
)

followerSuite("sqlite", () =>
  Layer.mergeAll(Changelog.layer(), DirtyQueue.layer(), indexSql).pipe(
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
    Layer.provideMerge(SqliteClient.layer({ filename: ":memory:" }))
  )
)
