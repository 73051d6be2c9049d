import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Search from "@strata/search/Search"
import * as PostgresClient from "@strata/strata/PostgresClient"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Database } from "../../Database.ts"
import * as Checks from "./checks.ts"

/** Asks a Postgres what an index in it needs. What is tried out is rolled back. */
export const examine = Effect.fnUntraced(function* (
  checks: Checks.Checks,
  database: Extract<Database, { readonly _tag: "Postgres" }>
) {
  // Of a reader, as that creates nothing.
  const options = { url: database.url, readonly: true, maxConnections: 2, connectTimeout: "3 seconds" } as const
  const opened = Effect.flatMap(PostgresClient.make(options), (sql) => Effect.as(sql`SELECT 1`, sql))
  const sql = yield* checks.ask("connect", opened, () => "user and password are accepted")
  if (sql === undefined) return
  const one = (statement: string) => Effect.map(sql.unsafe(statement).values, ([row]) => row?.[0])
  const version = yield* checks.ask("version", Effect.map(one("SHOW server_version"), String), (found) => found)
  if (version !== undefined && Number.parseInt(version, 10) < 15) {
    checks.fails("version", "Unsupported", `${version} is older than Postgres 15`)
  }
  yield* checks.ask("latency", Checks.median(one("SELECT 1")), Checks.tellMillis)
  const skew = yield* Effect.option(
    Checks.ahead(Effect.map(one("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::FLOAT8"), Number))
  )
  if (skew._tag === "Some") Checks.tellClock(checks, skew.value, 50)
  yield* checks.ask("wakes", notified(sql), () => "LISTEN hears a NOTIFY")
  const tables = yield* checks.ask("read", readable(sql), (all) =>
    all.length === 0 ? "there are no tables yet" : `all of ${all.length} tables`
  )
  if (tables === undefined) return
  if (tables.some(({ reads }) => !reads)) checks.fails("read", "Forbidden", tellLacking(tables, "reads"))
  if (tables.length === 0) {
    yield* checks.ask("write", tryOut(sql, database.schema), () => "tables can be made and written")
    return checks.unknown("index", "there is none yet: strata index DIR creates it")
  }
  if (tables.every(({ writes }) => writes)) checks.works("write", "all tables can be written")
  else checks.fails("write", "Forbidden", tellLacking(tables, "writes"))
  const roots = yield* Effect.result(Search.scopes(sql))
  if (roots._tag === "Success")
    checks.works(
      "index",
      `there is one, of ${roots.success.length === 1 ? "1 directory" : `${roots.success.length} directories`}`
    )
  else checks.unknown("index", roots.failure.message)
}, Effect.scoped)

interface Table {
  readonly name: string
  readonly reads: boolean
  readonly writes: boolean
}

const readable = (sql: SqlClient): Effect.Effect<ReadonlyArray<Table>, SqlError> =>
  Effect.map(sql.unsafe(tableRights).values, (rows) =>
    rows.map(([name, reads, writes]) => ({ name: String(name), reads: reads === true, writes: writes === true }))
  )

const tableRights = String.raw`SELECT c.relname, has_table_privilege(c.oid, 'SELECT'),
    has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')
  FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE n.nspname = current_schema() AND c.relkind = 'r' AND c.relname LIKE 'strata\_%' ORDER BY 1`

const tellLacking = (tables: ReadonlyArray<Table>, right: "reads" | "writes"): string => {
  const lacking = tables.filter((table) => !table[right])
  return `this user has no right to ${right === "reads" ? "read" : "write"} ${lacking[0]!.name}${
    lacking.length > 1 ? ` and ${lacking.length - 1} other tables` : ""
  }`
}

/** A notification to itself, on a channel that nobody else has. */
const notified = (sql: PgClient): Effect.Effect<void, SqlError> =>
  Effect.gen(function* () {
    const channel = `strata_doctor_${yield* Random.nextIntBetween(0, 2 ** 31)}`
    const heard = yield* sql.listen(channel)
    yield* sql.notify(channel, "")
    yield* Queue.take(heard)
  }).pipe(Effect.scoped)

/** Makes and writes a table, and the schema if it is missing, in a transaction that is rolled back. */
const tryOut = (sql: SqlClient, schema: string | undefined): Effect.Effect<void, SqlError> =>
  Effect.gen(function* () {
    const table = sql(`strata_doctor_${yield* Random.nextIntBetween(0, 2 ** 31)}`)
    yield* sql`SET TRANSACTION READ WRITE`
    const [found] = yield* sql`SELECT current_schema()`.values
    if (schema !== undefined && found?.[0] === null) yield* sql`CREATE SCHEMA ${sql(schema)}`
    yield* sql`CREATE TABLE ${table} (id INTEGER PRIMARY KEY)`
    yield* sql`INSERT INTO ${table} VALUES (1) ON CONFLICT DO NOTHING`
    yield* sql`DELETE FROM ${table}`
    return yield* Effect.fail("RollBack" as const)
  }).pipe(
    sql.withTransaction,
    Effect.catchIf(
      (error) => error === "RollBack",
      () => Effect.void
    )
  )
