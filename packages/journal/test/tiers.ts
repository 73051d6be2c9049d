import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Postgres from "@strata/durable/testing/postgres"
import * as JournalStorage from "@strata/journal/JournalStorage"
import type { Tier } from "@strata/journal/testing/harness"
import * as Lockstep from "@strata/journal/testing/lockstep"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export const memory: Tier<never> = {
  layer: JournalStorage.layerMemory.pipe(Layer.provideMerge(DurableWriter.layerMemory()))
}

const onFile = (filename: string) =>
  Layer.mergeAll(JournalStorage.layerSql, DurableWriter.layer()).pipe(
    Layer.provide(SqliteClient.layer({ filename, synchronous: "OFF" }))
  )

/** A file name in a folder that goes with the scope. */
export const tempFile = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-journal-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => join(folder, "test.db")
)

export const sqlite: Tier<Layer.Error<ReturnType<typeof onFile>>> = {
  layer: onFile(":memory:"),
  twoConnections: () =>
    Effect.flatMap(tempFile, (filename) =>
      Effect.map(
        Effect.all([Layer.build(onFile(filename)), Layer.build(Layer.fresh(onFile(filename)))]),
        ([one, two]) => [one, two] as const
      )
    )
}

export const onPostgres = Layer.mergeAll(JournalStorage.layerSql, DurableWriter.layer())

export const postgres: Tier<Layer.Error<typeof onPostgres> | Layer.Error<typeof Postgres.layer>> = {
  layer: Layer.provide(onPostgres, Postgres.layer),
  twoConnections: () =>
    Effect.flatMap(Postgres.schema, (schema) => {
      const connect = Layer.build(Layer.fresh(Layer.provide(onPostgres, Postgres.layerSchema(schema))))
      return Effect.map(Effect.all([connect, connect]), ([one, two]) => [one, two] as const)
    })
}

/**
 * One transaction comes after the other there, so ordinals alone are in order: cursors are given and taken without their
 * transactions, as on the other tiers, and what a rollback drew is given back.
 */
export const postgresInLockstep = Layer.effectContext(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const storage = yield* JournalStorage.JournalStorage
    const context = yield* Effect.context<DurableWriter.DurableWriter>()
    return Context.add(context, JournalStorage.JournalStorage, byOrdinal(sql, storage)).pipe(
      Context.add(Lockstep.Counters, counters(sql))
    )
  })
).pipe(Layer.provide(Layer.provideMerge(onPostgres, Postgres.layer)))

const byOrdinal = (
  sql: SqlClient.SqlClient,
  storage: JournalStorage.JournalStorage["Service"]
): JournalStorage.JournalStorage["Service"] => {
  const out = <A extends JournalStorage.Cursor>(cursor: A): A => ({ ...cursor, transaction: 0 })
  const into = (cursor: JournalStorage.Cursor) =>
    cursor.transaction > 0
      ? Effect.succeed(cursor)
      : Effect.map(
          sql`SELECT coalesce(max(transaction), 0) FROM (
            SELECT transaction, ordinal FROM strata_journal
            UNION ALL SELECT transaction, ordinal FROM strata_journal_floor
            UNION ALL SELECT transaction, ordinal FROM strata_journal_archive
          ) AS all_of_them WHERE ordinal <= ${cursor.ordinal}::bigint`.values,
          ([row]) => ({ ordinal: cursor.ordinal, transaction: Number(row?.[0]) })
        )
  return {
    ...storage,
    append: (...args) => Effect.map(storage.append(...args), (appended) => appended.map(out)),
    identities: (...args) => Effect.map(storage.identities(...args), (found) => found.map(out)),
    read: (options) => Effect.map(storage.read(options), (page) => ({ ...page, entries: page.entries.map(out) })),
    readAll: Effect.fnUntraced(function* (options) {
      const after = yield* into(options.after)
      const upTo = options.upTo && (yield* into(options.upTo))
      const page = yield* storage.readAll({ ...options, after, upTo })
      return { ...page, entries: page.entries.map(out), through: out(page.through), floor: out(page.floor) }
    }),
    lastUpTo: (...args) => Effect.map(storage.lastUpTo(...args), (entry) => entry && out(entry)),
    firstAfter: (...args) => Effect.map(storage.firstAfter(...args), (entry) => entry && out(entry)),
    globalStates: Effect.map(storage.globalStates, (states) =>
      states.map((state) => ({ ...state, at: out(state.at) }))
    ),
    saveGlobalStates: (now, states) =>
      Effect.flatMap(
        Effect.forEach(states, (state) => Effect.map(into(state.at), (at) => ({ ...state, at }))),
        (states) => storage.saveGlobalStates(now, states)
      ),
    globalFloor: Effect.map(storage.globalFloor, out),
    raiseFloor: (stream, seq, global) => Effect.flatMap(into(global), (at) => storage.raiseFloor(stream, seq, at)),
    archived: (options) => Effect.map(storage.archived(options), (entries) => entries.map(out))
  }
}

const counters = (sql: SqlClient.SqlClient): Lockstep.Counters["Service"] =>
  Effect.gen(function* () {
    const names = ["strata_journal_ordinal", "strata_journal_rewind_number"]
    const values = yield* Effect.forEach(names, (name) =>
      Effect.map(sql.unsafe(`SELECT last_value, is_called FROM ${name}`).values, ([row]) => row ?? [])
    )
    return Effect.forEach(
      names,
      (name, i) => sql.unsafe(`SELECT setval('${name}', $1, $2)`, [values[i]?.[0], values[i]?.[1]]),
      { discard: true }
    )
  })
