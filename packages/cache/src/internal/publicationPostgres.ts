import type { MigrationSet } from "@strata/durable/Migrations"
import * as Migrations from "@strata/durable/Migrations"
import * as Rows from "@strata/durable/Rows"
import * as Text from "@strata/durable/Text"
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
  yield* Migrations.run(migrationsPostgres)
  const run = yield* Rows.run
  return {
    published: (tier, keys) =>
      Effect.map(run(published, [tier, JSON.stringify(keys)]), (rows) =>
        rows.map((row) => ({ key: Rows.text(row[0]), recording: Rows.text(row[1]) }))
      ),
    publishedCount: (tier) => Effect.map(run(publishedCount, [tier]), ([row]) => Rows.integer(row?.[0])),
    publish: Effect.fnUntraced(function* (now, tier, entries) {
      // In the order of bytes, so that two that publish the same do not wait for each other; of a key the last counts.
      const latest = Array.from(new Map(entries.map(({ key, recording }) => [key, recording])))
      const inOrder = Text.sortedBy(latest, ([key]) => key)
      yield* run(publish, [tier, JSON.stringify(inOrder), now])
      yield* run(dropRefusalsOfRecordings, [tier, JSON.stringify(entries.map(({ recording }) => recording))])
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
const migrationsPostgres: MigrationSet = {
  name: "cache_publication",
  migrations: {
    "1_initial": [
      `CREATE TABLE strata_cache_published (
        tier TEXT COLLATE "C" NOT NULL CHECK (tier <> ''),
        key TEXT COLLATE "C" NOT NULL CHECK (length(key) = 64),
        recording TEXT COLLATE "C" NOT NULL CHECK (length(recording) = 32),
        published_at BIGINT NOT NULL,
        PRIMARY KEY (tier, key)
      )`,

      `CREATE TABLE strata_cache_refusal (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        tier TEXT COLLATE "C" NOT NULL CHECK (tier <> ''),
        recording TEXT COLLATE "C" NOT NULL CHECK (length(recording) = 32),
        stage TEXT COLLATE "C" NOT NULL CHECK (stage IN ('local', 'artifact', 'probe', 'entry')),
        kind TEXT COLLATE "C" NOT NULL CHECK (kind <> ''),
        key TEXT COLLATE "C" NOT NULL CHECK (length(key) = 64),
        refusal TEXT COLLATE "C" NOT NULL CHECK (refusal::JSON IS NOT NULL),
        refused_at BIGINT NOT NULL,
        UNIQUE (tier, recording, stage, kind)
      )`,
      `CREATE INDEX strata_cache_refusal_key ON strata_cache_refusal (tier, key)`,

      `CREATE TABLE strata_cache_backfill (
        tier TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (tier <> ''),
        backfilled_at BIGINT NOT NULL
      )`
    ]
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// statements
// ---------------------------------------------------------------------------------------------------------------------

const given = (parameter: string): string => `(SELECT json_array_elements_text(${parameter}::JSON) COLLATE "C")`

/** Parameters: tier, keys as a JSON array. */
const published = `
SELECT key, recording FROM strata_cache_published WHERE tier = $1 AND key IN ${given("$2")}`

const publishedCount = `SELECT count(*) FROM strata_cache_published WHERE tier = $1`

/** Parameters: tier, `[[key, recording], …]` as JSON, time. */
const publish = `
INSERT INTO strata_cache_published (tier, key, recording, published_at)
SELECT $1, p ->> 0, p ->> 1, $3::BIGINT
FROM json_array_elements($2::JSON) WITH ORDINALITY AS given (p, place)
ORDER BY place
ON CONFLICT (tier, key) DO UPDATE SET recording = excluded.recording, published_at = excluded.published_at`

/** Parameters: tier, recordings as a JSON array. */
const dropRefusalsOfRecordings = `DELETE FROM strata_cache_refusal WHERE tier = $1 AND recording IN ${given("$2")}`

/** Parameters: tier, keys as a JSON array. */
const forget = `DELETE FROM strata_cache_published WHERE tier = $1 AND key IN ${given("$2")}`

/** Parameters: tier, keys as a JSON array. */
const dropRefusalsOfKeys = `DELETE FROM strata_cache_refusal WHERE tier = $1 AND key IN ${given("$2")}`

/** Parameters: tier, recording, stage, kind. */
const findRefusal = `
SELECT 1 FROM strata_cache_refusal WHERE tier = $1 AND recording = $2 AND stage = $3 AND kind = $4`

/** Parameters: tier, recording, stage, kind, key, refusal, time. */
const insertRefusal = `
INSERT INTO strata_cache_refusal (tier, recording, stage, kind, key, refusal, refused_at)
VALUES ($1, $2, $3, $4, $5, $6, $7::BIGINT)
ON CONFLICT (tier, recording, stage, kind) DO NOTHING
RETURNING id`

/** Parameters: tier, limit. */
const listRefusals = `
SELECT key, recording, stage, kind, refusal, refused_at FROM strata_cache_refusal
WHERE tier = $1 ORDER BY id DESC LIMIT $2::BIGINT`

const findBackfilled = `SELECT 1 FROM strata_cache_backfill WHERE tier = $1`

/** Parameters: tier, time. */
const setBackfilled = `
INSERT INTO strata_cache_backfill (tier, backfilled_at) VALUES ($1, $2::BIGINT) ON CONFLICT (tier) DO NOTHING`
