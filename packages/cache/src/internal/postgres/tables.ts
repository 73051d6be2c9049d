import type { MigrationSet } from "@strata/durable/Migrations"
import type { Settings } from "./settings.ts"

/** The tables of the tier, as statements name them. */
export interface Tables {
  /** Quoted, if there is one. */
  readonly schema: string | undefined
  readonly entry: string
  readonly blob: string
  readonly artifact: string
}

export const make = ({ prefix, schema }: Pick<Settings, "prefix" | "schema">): Tables => {
  const within = schema === undefined ? "" : `${quote(schema)}.`
  return {
    schema: schema === undefined ? undefined : quote(schema),
    entry: `${within}strata_${prefix}_entry`,
    blob: `${within}strata_${prefix}_blob`,
    artifact: `${within}strata_${prefix}_artifact`
  }
}

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`

/**
 * - What is stored under a digest has that digest: the database refuses anything else.
 * - An entry is inserted once and never changed, but for the time of its use. Its id tells it from one that comes later
 *   under its key.
 * - A blob without content was taken out, or was found corrupt. It is still referred to, and is sent again by the next
 *   put.
 * - Which entries refer to which blobs is kept beside the entries, so that no blob of an entry can be deleted. Blobs may
 *   be elsewhere: then there is nothing here.
 * - Text is compared by its bytes. Times are those of the database.
 */
export const migrations = ({ prefix }: Pick<Settings, "prefix">): MigrationSet => {
  const { artifact, blob, entry } = make({ prefix, schema: undefined })
  return {
    name: prefix,
    migrations: {
      "1_initial": [
        `CREATE TABLE ${entry} (
          key TEXT COLLATE "C" PRIMARY KEY CHECK (length(key) = 64),
          id BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
          recording TEXT COLLATE "C" NOT NULL CHECK (length(recording) = 32),
          digest TEXT COLLATE "C" NOT NULL CHECK (length(digest) = 64),
          result TEXT COLLATE "C" NOT NULL CHECK (digest = encode(sha256(convert_to(result, 'UTF8')), 'hex')),
          note TEXT COLLATE "C" NOT NULL CHECK (note::JSON IS NOT NULL),
          put_at BIGINT NOT NULL,
          used_at BIGINT NOT NULL
        )`,
        `CREATE INDEX ON ${entry} (used_at, key)`,

        `CREATE TABLE ${blob} (
          digest TEXT COLLATE "C" PRIMARY KEY CHECK (length(digest) = 64),
          size BIGINT NOT NULL CHECK (size >= 0),
          content BYTEA CHECK (digest = encode(sha256(content), 'hex')),
          touched_at BIGINT NOT NULL,
          CHECK (octet_length(content) = size)
        )`,
        // Artifacts are mostly compressed already.
        `ALTER TABLE ${blob} ALTER COLUMN content SET STORAGE EXTERNAL`,

        `CREATE TABLE ${artifact} (
          digest TEXT COLLATE "C" NOT NULL REFERENCES ${blob} (digest),
          entry BIGINT NOT NULL REFERENCES ${entry} (id) ON DELETE CASCADE,
          PRIMARY KEY (digest, entry)
        )`,
        `CREATE INDEX ON ${artifact} (entry)`
      ]
    }
  }
}
