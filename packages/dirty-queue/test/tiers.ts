import type { D1Client } from "@effect/sql-d1/D1Client"
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as D1Changelog from "@strata/dirty-queue/D1Changelog"
import * as D1DirtyQueue from "@strata/dirty-queue/D1DirtyQueue"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import * as MemoryStore from "@strata/dirty-queue/MemoryStore"
import { Recorder, recorder } from "@strata/dirty-queue/testing/fixture"
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

/** With what the steps of the suites record by. */
export const withRecorder = <A, E, R>(layer: Layer.Layer<A | Changelog.Changelog, E, R>) =>
  Layer.provideMerge(recorder, layer)

export const memory = (options?: DirtyQueue.DirtyQueueOptions) =>
  Layer.mergeAll(DirtyQueue.layerMemory(options), Changelog.layerMemory(options)).pipe(
    withRecorder,
    Layer.provide(MemoryStore.layer),
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layerMemory(), ChangeSignal.layer))
  )

export const sqlite = (
  options?: DirtyQueue.DirtyQueueOptions,
  filename = ":memory:",
  client?: Omit<SqliteClient.SqliteClientOptions, "filename">
) =>
  Layer.mergeAll(DirtyQueue.layer(options), Changelog.layer(options)).pipe(
    withRecorder,
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
    Layer.provideMerge(SqliteClient.layer({ ...client, filename }))
  )

/** On a client of the Postgres of this run. */
const onPostgres = (options?: DirtyQueue.DirtyQueueOptions) =>
  Layer.mergeAll(DirtyQueue.layer(options), Changelog.layer(options)).pipe(
    withRecorder,
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer))
  )

/** In a schema of its own, or in that of the given name. Time is Effect's unless said otherwise, as on other tiers. */
export const postgres = (options?: DirtyQueue.DirtyQueueOptions, schema?: string) =>
  Layer.provideMerge(
    onPostgres({ clock: "effect", ...options }),
    schema === undefined ? Postgres.layer : Layer.fresh(Postgres.layerSchema(schema))
  )

/** On an empty D1, or on the one of the given client. Time is Effect's unless said otherwise, as on other tiers. */
export const d1 = <E>(
  client: Layer.Layer<D1Client | SqlClient.SqlClient, E>,
  options: DirtyQueue.DirtyQueueOptions = {}
) => {
  const all = { clock: "effect", ...options } as const
  return Layer.mergeAll(D1DirtyQueue.layer(all), d1Recorder).pipe(
    Layer.provideMerge(D1Changelog.layer(all)),
    Layer.provideMerge(ChangeSignal.layer),
    Layer.provideMerge(Layer.fresh(client))
  )
}

const d1Recorder = Layer.effect(
  Recorder,
  Effect.map(D1Changelog.D1Changelog, (changelog) => ({
    ...changelog,
    prefixed: (prefix: string) => D1Changelog.prefixed(changelog, prefix)
  }))
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
