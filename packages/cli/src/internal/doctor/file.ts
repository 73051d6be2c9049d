import * as Search from "@strata/search/Search"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import type { PostgresClientError } from "@strata/strata/PostgresClient"
import * as Effect from "effect/Effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import type { SqlError } from "effect/sql/SqlError"
import type { Database } from "../../Database.ts"
import * as DatabaseFile from "../../DatabaseFile.ts"
import * as Reader from "../../Reader.ts"
import { sqlDetail } from "../sqlDetail.ts"
import * as Tables from "../tables.ts"
import * as Checks from "./checks.ts"

/** Asks a SQLite file what an index in it needs. What is tried out is rolled back; a file that is no index is only read. */
export const examine = Effect.fnUntraced(function* (checks: Checks.Checks, database: Database) {
  const opened = Effect.flatMap(Reader.make(database), (sql) =>
    Effect.map(sql`SELECT sqlite_version()`.values, ([row]) => ({ sql, version: String(row?.[0]) }))
  )
  const found = yield* checks.ask("open", named(database.name, opened), ({ version }) => `SQLite ${version}`)
  if (found === undefined) return
  const { sql } = found
  yield* checks.ask("latency", Checks.median(sql`SELECT count(*) FROM sqlite_schema`), Checks.tellMillis)
  const roots = yield* Effect.result(Search.scopes(sql))
  if (roots._tag === "Failure") {
    const { failure } = roots
    const others = failure._tag === "NoIndex" ? yield* Effect.orElseSucceed(Tables.present(sql), () => []) : []
    if (others.length > 0) {
      checks.unknown("index", `there is none; there is ${others.join(", ")}`)
      yield* checks.ask("write", named(database.name, tryOut(database.name)), () => "it can be written")
      return
    }
    return checks.fails(
      "index",
      failure._tag === "SqlError" ? failure.reason._tag : failure._tag,
      failure._tag === "SqlError" ? sqlDetail(failure) : failure.message
    )
  }
  checks.works(
    "index",
    `there is one, of ${roots.success.length === 1 ? "1 directory" : `${roots.success.length} directories`}`
  )
  yield* checks.ask("write", named(database.name, tryOut(database.name)), () => "it can be written")
}, Effect.scoped)

const named = <A, R>(file: string, effect: Effect.Effect<A, SqlError | PostgresClientError, R>) =>
  Effect.mapError(effect, (error) =>
    error._tag === "SqlError" ? (DatabaseFile.becauseReadOnly(file, error) ?? error) : error
  )

const tryOut = (filename: string): Effect.Effect<void, SqlError> =>
  Effect.gen(function* () {
    const sql = yield* SqliteClient.make({ filename })
    const probe = Effect.andThen(sql`CREATE TABLE strata_doctor (id INTEGER)`, Effect.fail("RollBack" as const))
    yield* Effect.catchIf(
      sql.withTransaction(probe),
      (error) => error === "RollBack",
      () => Effect.void
    )
  }).pipe(Effect.scoped, Effect.provide(Reactivity.layer))
