/** Notes of many tenants in Postgres, and an index of their tags that followers on several machines keep. */
import { Changelog, DirtyQueue, Path } from "@strata/dirty-queue"
import * as PostgresSignal from "@strata/dirty-queue/PostgresSignal"
import { DurableWriter, Migrations } from "@strata/durable"
import { ContentReader, Follower, type IndexWriter, ProcessingError } from "@strata/follower"
import * as ClusterFollowers from "@strata/follower/ClusterFollowers"
import { Config, Context, Duration, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"

const tables: Migrations.MigrationSet = {
  name: "example",
  migrations: {
    "1_initial": [
      `CREATE TABLE note (tenant TEXT, title TEXT, text TEXT NOT NULL, PRIMARY KEY (tenant, title))`,
      `CREATE TABLE tag (tenant TEXT, tag TEXT, title TEXT, PRIMARY KEY (tenant, title, tag))`,
      // Only to show what happened: who had a tenant from when to when, and who indexed a note.
      `CREATE TABLE stay (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant TEXT NOT NULL, runner TEXT NOT NULL,
        since TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(), until TIMESTAMPTZ
      )`,
      `CREATE TABLE work (
        tenant TEXT NOT NULL, title TEXT NOT NULL, runner TEXT NOT NULL,
        at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
      )`
    ]
  }
}

/** The queue on the Postgres in context. `LEASE` is how long what a runner claimed stays its own after it died. */
export const layerStore = Layer.unwrap(
  Effect.map(Config.Duration("LEASE").pipe(Config.withDefault(Duration.seconds(30))), (lease) =>
    Layer.mergeAll(Changelog.layer(), DirtyQueue.layer({ lease })).pipe(
      Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), PostgresSignal.layer()))
    )
  )
)

const follower = { name: "tags", version: "1" }
const followerName = Path.FollowerName.make("tags@1")

/** What every process can do, whether it runs followers or not. */
export class Notes extends Context.Service<Notes>()("Notes", {
  make: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const changelog = yield* Changelog.Changelog
    const queue = yield* DirtyQueue.DirtyQueue
    const durable = yield* DurableWriter.DurableWriter
    yield* Migrations.run(tables)
    return {
      /** From now on the tenant's notes are followed: by whichever runner it falls to, within seconds. */
      addTenant: (tenant: Path.Scope) => queue.register({ follower: followerName, scope: tenant }),
      /** The note and the change of it commit together. */
      save: Effect.fn("Notes.save")(function* (tenant: Path.Scope, title: Path.Path, text: string) {
        yield* durable.write(
          Effect.andThen(
            sql`INSERT INTO note ${sql.insert({ tenant, title, text })}
              ON CONFLICT (tenant, title) DO UPDATE SET text = excluded.text`,
            changelog.record([{ op: "put", scope: tenant, path: title }])
          ),
          // Both statements are right whatever others commit meanwhile, so this never fails because of a follower.
          { isolation: "read committed" }
        )
      }),
      tagged: Effect.fn("Notes.tagged")(function* (tenant: Path.Scope, tag: string) {
        const rows = yield* sql`SELECT title FROM tag WHERE tenant = ${tenant} AND tag = ${tag} ORDER BY title`.values
        return rows.map(([title]) => String(title))
      })
    }
  })
}) {
  static readonly layer = Layer.effect(Notes, Notes.make)
}

/** The followers of those tenants that the cluster gives to this runner. */
export const layerFollowers = (runner: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const queue = yield* DirtyQueue.DirtyQueue
      return ClusterFollowers.layerFollowers({
        name: follower.name,
        scopes: ClusterFollowers.registeredScopes(queue, followerName),
        follower: (tenant) =>
          Effect.andThen(
            recordStay(sql, tenant, runner),
            Follower.make({
              ...follower,
              scope: tenant,
              queue,
              reader: reader(sql),
              writer: writer(sql, runner),
              batchSize: 10
            })
          )
      })
    })
  ).pipe(Layer.provide(Layer.effectDiscard(Migrations.run(tables))), Layer.provide(ClusterFollowers.layer()))

const reader = (sql: SqlClient.SqlClient) =>
  ContentReader.fromLookup(({ path, scope }) =>
    sql<{ readonly text: string }>`SELECT text FROM note WHERE tenant = ${scope} AND title = ${path}`.pipe(
      Effect.map(([note]) => Option.map(Option.fromUndefinedOr(note), ({ text }) => text)),
      Effect.mapError((error) => ProcessingError.transient("the note cannot be read", error))
    )
  )

/** Index, record and acknowledgement commit together, or not at all. */
const writer = (sql: SqlClient.SqlClient, runner: string): IndexWriter.Transactional<string> => ({
  mode: "transactional",
  write: Effect.fnUntraced(function* ({ removals, scope: tenant, upserts }) {
    for (const { path: title } of [...removals, ...upserts]) {
      yield* sql`DELETE FROM tag WHERE tenant = ${tenant} AND title = ${title}`
      yield* sql`INSERT INTO work ${sql.insert({ tenant, title, runner })}`
    }
    for (const { path: title, value } of upserts) {
      for (const tag of new Set(value.match(/#\w+/g))) {
        yield* sql`INSERT INTO tag ${sql.insert({ tenant, tag, title })}`
      }
    }
  })
})

const recordStay = (sql: SqlClient.SqlClient, tenant: Path.Scope, runner: string) =>
  Effect.acquireRelease(
    sql<{ readonly id: unknown }>`INSERT INTO stay ${sql.insert({ tenant, runner }).returning("id")}`,
    ([stay]) => Effect.ignore(sql`UPDATE stay SET until = clock_timestamp() WHERE id = ${stay?.id}`, { log: true })
  )
