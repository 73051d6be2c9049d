import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import * as MemoryStore from "@strata/dirty-queue/MemoryStore"
import * as Lockstep from "@strata/dirty-queue/testing/lockstep"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Postgres from "@strata/durable/testing/postgres"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export const memory = (options?: DirtyQueue.DirtyQueueOptions) =>
  Layer.mergeAll(DirtyQueue.layerMemory(options), Changelog.layerMemory(options)).pipe(
    Layer.provide(MemoryStore.layer),
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layerMemory(), ChangeSignal.layer))
  )

export const sqlite = (
  options?: DirtyQueue.DirtyQueueOptions,
  filename = ":memory:",
  client?: Omit<SqliteClient.SqliteClientOptions, "filename">
) =>
  Layer.mergeAll(DirtyQueue.layer(options), Changelog.layer(options)).pipe(
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
    Layer.provideMerge(SqliteClient.layer({ ...client, filename }))
  )

/** On a client of the Postgres of this run. */
const onPostgres = (options?: DirtyQueue.DirtyQueueOptions) =>
  Layer.mergeAll(DirtyQueue.layer(options), Changelog.layer(options)).pipe(
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer))
  )

/** In a schema of its own, or in that of the given name. Time is Effect's unless said otherwise, as on other tiers. */
export const postgres = (options?: DirtyQueue.DirtyQueueOptions, schema?: string) =>
  Layer.provideMerge(
    onPostgres({ clock: "effect", ...options }),
    schema === undefined ? Postgres.layer : Layer.fresh(Postgres.layerSchema(schema))
  )

/** With what puts sequences back after a rollback. */
export const postgresInLockstep = (options: DirtyQueue.DirtyQueueOptions) =>
  Layer.provideMerge(
    Layer.effect(
      Lockstep.Counters,
      Effect.map(SqlClient.SqlClient, (sql) =>
        Effect.gen(function* () {
          const names = ["strata_changelog_seq", "strata_dirty_version", "strata_follower_id"]
          const values = yield* Effect.forEach(names, (name) =>
            Effect.map(sql.unsafe(`SELECT last_value, is_called FROM ${name}`).values, ([row]) => row ?? [])
          )
          return Effect.forEach(
            names,
            (name, i) => sql.unsafe(`SELECT setval('${name}', $1, $2)`, [values[i]?.[0], values[i]?.[1]]),
            { discard: true }
          )
        })
      )
    ),
    postgres(options)
  )

/** A file name in a folder that goes with the scope. */
export const tempFile = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-dirty-queue-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => join(folder, "test.db")
)
