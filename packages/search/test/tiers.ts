import * as Postgres from "@strata/durable/testing/postgres"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import { describe } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** A database that several clients can open. */
export interface Database {
  readonly layer: Layer.Layer<SqlClient.SqlClient, SqlError>
  /** On SQLite. */
  readonly filename?: string
}

export interface Tier {
  readonly name: "SQLite" | "Postgres"
  readonly isAvailable: () => boolean
  /** A new database for one client. */
  readonly own: Effect.Effect<Database, SqlError, Scope.Scope>
  /** A new database for several clients. */
  readonly database: Effect.Effect<Database, SqlError, Scope.Scope>
  /** How many passages the first generation has. */
  readonly countPassages: string
  /** Path and body of each passage of the first generation. */
  readonly readPassages: string
  /** Removes the passages of the document that has this path. */
  readonly deletePassages: (path: string) => string
}

/** A client of its own of a database. */
export const connect = (database: Database): Effect.Effect<SqlClient.SqlClient, SqlError, Scope.Scope> =>
  Effect.map(Layer.build(Layer.fresh(database.layer)), (context) => Context.get(context, SqlClient.SqlClient))

export const sqlite: Tier = {
  name: "SQLite",
  isAvailable: () => true,
  own: Effect.succeed({ layer: SqliteClient.layer({ filename: ":memory:" }) }),
  database: Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-search-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    ),
    (folder) => {
      const filename = join(folder, "index.db")
      return { filename, layer: SqliteClient.layer({ filename }) }
    }
  ),
  countPassages: "SELECT count(*) AS n FROM strata_search_fts_1",
  readPassages:
    "SELECT d.path, f.body FROM strata_search_fts_1 AS f JOIN strata_search_document AS d ON d.id = f.rowid >> 20",
  deletePassages: (path) =>
    `DELETE FROM strata_search_fts_1
    WHERE rowid >> 20 = (SELECT id FROM strata_search_document WHERE path = '${path}')`
}

const onPostgres = Effect.map(Postgres.schema, (schema) => ({ layer: Postgres.layerSchema(schema) }))

export const postgres: Tier = {
  name: "Postgres",
  isAvailable: Postgres.isAvailable,
  own: onPostgres,
  database: onPostgres,
  countPassages: "SELECT count(*)::INTEGER AS n FROM strata_search_passage",
  readPassages:
    "SELECT d.path, p.body FROM strata_search_passage AS p JOIN strata_search_document AS d ON d.id = p.document",
  deletePassages: (path) =>
    `DELETE FROM strata_search_passage
    WHERE document = (SELECT id FROM strata_search_document WHERE path = '${path}')`
}

/** The same tests on every database. */
export const onTiers = (name: string, suite: (tier: Tier) => void): void => {
  for (const tier of [sqlite, postgres]) {
    describe.skipIf(!tier.isAvailable())(`${name} on ${tier.name}`, { timeout: 120_000 }, () => suite(tier))
  }
}
