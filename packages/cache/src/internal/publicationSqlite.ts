import type { MigrationSet } from "@strata/durable/Migrations"
import * as Migrations from "@strata/durable/Migrations"
import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { PublicationStorage } from "../PublicationStorage.ts"

export const make: Effect.Effect<
  PublicationStorage["Service"],
  SqlError | Migrator.MigrationError,
  SqlClient.SqlClient
> = Effect.gen(function* () {
  yield* Migrations.run(migrationsSqlite)
  const run = yield* Rows.run
  return {
    published: (tier, keys) =>
      Effect.map(run(published, [tier, JSON.stringify(keys)]), (rows) =>
        rows.map((row) => ({ key: Rows.text(row[0]), recording: Rows.text(row[1]) }))
      ),
    publishedCount: (tier) => Effect.map(run(publishedCount, [tier]), ([row]) => Rows.integer(row?.[0])),
    publish: Effect.fnUntraced(function* (now, tier, entries) {
      const batch = JSON.stringify(entries.map(({ key, recording }) => [key, recording]))
      yield* run(publish, [tier, batch, now])
      yield* run(dropRefusalsOfRecordings, [tier, batch])
    }),
    forget: Effect.fnUntraced(function* (tier, keys) {
      const batch = JSON.stringify(keys)
      yield* run(forget, [tier, batch])
      yield* run(dropRefusalsOfKeys, [tier, batch])
    }),
    isRefused: (tier, { kind, recording, stage }) =>
      Effect.map(run(findRefusal, [tier, recording, stage, kind]), (rows) => rows.length > 0),
    refuse: (tier, { key, kind, recording, refusal, refusedAt, stage }) =>
      Effect.map(
        run(insertRefusal, [tier, recording, stage, kind, key, refusal, refusedAt]),
        (rows) => rows.length > 0
      ),
    refusals: (tier, limit) =>
      Effect.map(run(listRefusals, [tier, limit]), (rows) =>
        rows.map((row) => ({
          key: Rows.text(row[0]),
          recording: Rows.text(row[1]),
          stage: Rows.text(row[2]),
          kind: Rows.text(row[3]),
          refusal: Rows.text(row[4]),
          refusedAt: Rows.integer(row[5])
        }))
      ),
    isBackfilled: (tier) => Effect.map(run(findBackfilled, [tier]), (rows) => rows.length > 0),
    setBackfilled: (now, tier) => Effect.asVoid(run(setBackfilled, [tier, now]))
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// tables
// ---------------------------------------------------------------------------------------------------------------------

/**
 * They do not refer to the tables of the cache, which a rebuild replaces: what is published stays published, and a row
 * whose entry has gone is overwritten when the key has an entry again.
 */
const migrationsSqlite: MigrationSet = {
  name: "cache_publication",
  migrations: {
    "1_initial": [
      `CREATE TABLE strata_cache_published (
        tier TEXT NOT NULL CHECK (tier <> ''),
        key TEXT NOT NULL CHECK (length(key) = 64),
        recording TEXT NOT NULL CHECK (length(recording) = 32),
        published_at INTEGER NOT NULL,
        PRIMARY KEY (tier, key)
      ) WITHOUT ROWID`,

      `CREATE TABLE strata_cache_refusal (
        id INTEGER PRIMARY KEY,
        tier TEXT NOT NULL CHECK (tier <> ''),
        recording TEXT NOT NULL CHECK (length(recording) = 32),
        stage TEXT NOT NULL CHECK (stage IN ('local', 'artifact', 'probe', 'entry')),
        kind TEXT NOT NULL CHECK (kind <> ''),
        key TEXT NOT NULL CHECK (length(key) = 64),
        refusal TEXT NOT NULL CHECK (json_valid(refusal)),
        refused_at INTEGER NOT NULL,
        UNIQUE (tier, recording, stage, kind)
      )`,
      `CREATE INDEX strata_cache_refusal_key ON strata_cache_refusal (tier, key)`,

      `CREATE TABLE strata_cache_backfill (
        tier TEXT NOT NULL PRIMARY KEY CHECK (tier <> ''),
        backfilled_at INTEGER NOT NULL
      ) WITHOUT ROWID`
    ]
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// statements
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: tier, keys as a JSON array. */
const published = `
SELECT p.key, p.recording
FROM json_each(?2) AS j
CROSS JOIN strata_cache_published AS p ON p.tier = ?1 AND p.key = j.value`

const publishedCount = `SELECT count(*) FROM strata_cache_published WHERE tier = ?1`

/** Parameters: tier, `[[key, recording], …]` as JSON, time. */
const publish = `
INSERT INTO strata_cache_published (tier, key, recording, published_at)
SELECT ?1, value ->> 0, value ->> 1, ?3 FROM json_each(?2) WHERE true
ON CONFLICT (tier, key) DO UPDATE SET recording = excluded.recording, published_at = excluded.published_at`

/** Parameters: tier, `[[key, recording], …]` as JSON. */
const dropRefusalsOfRecordings = `
DELETE FROM strata_cache_refusal WHERE tier = ?1 AND recording IN (SELECT value ->> 1 FROM json_each(?2))`

/** Parameters: tier, keys as a JSON array. */
const forget = `
DELETE FROM strata_cache_published WHERE tier = ?1 AND key IN (SELECT value FROM json_each(?2))`

/** Parameters: tier, keys as a JSON array. */
const dropRefusalsOfKeys = `
DELETE FROM strata_cache_refusal WHERE tier = ?1 AND key IN (SELECT value FROM json_each(?2))`

/** Parameters: tier, recording, stage, kind. */
const findRefusal = `
SELECT 1 FROM strata_cache_refusal WHERE tier = ?1 AND recording = ?2 AND stage = ?3 AND kind = ?4`

/** Parameters: tier, recording, stage, kind, key, refusal, time. */
const insertRefusal = `
INSERT INTO strata_cache_refusal (tier, recording, stage, kind, key, refusal, refused_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (tier, recording, stage, kind) DO NOTHING
RETURNING id`

/** Parameters: tier, limit. */
const listRefusals = `
SELECT key, recording, stage, kind, refusal, refused_at FROM strata_cache_refusal
WHERE tier = ?1 ORDER BY id DESC LIMIT ?2`

const findBackfilled = `SELECT 1 FROM strata_cache_backfill WHERE tier = ?1`

/** Parameters: tier, time. */
const setBackfilled = `
INSERT INTO strata_cache_backfill (tier, backfilled_at) VALUES (?1, ?2) ON CONFLICT (tier) DO NOTHING`
