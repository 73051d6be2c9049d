import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import { CacheError, ReadOnly } from "../../CacheError.ts"
import type { Database } from "./database.ts"

/** What may stay. */
export interface Limits {
  readonly maxAgeMs: number
  readonly maxEntries: number
  readonly maxBytes: number
  readonly graceMs: number
}

/** What went. */
export interface Pruned {
  readonly entries: number
  readonly resultBytes: number
  readonly blobs: number
  readonly blobBytes: number
}

export const prune = Effect.fn("PostgresCache.prune")(function* (
  database: Database,
  limits: Limits
): Effect.fn.Return<Pruned, CacheError> {
  const { readOnly, tier } = database.settings
  yield* Effect.annotateCurrentSpan({ tier })
  if (readOnly) return yield* new CacheError({ reason: new ReadOnly({ tier }) })
  const entries = yield* pruneEntries(database, limits)
  return { ...entries, ...(yield* pruneBlobs(database, limits)) }
})

const atOnce = 500

const pruneEntries = Effect.fnUntraced(function* (
  { run, statements }: Database,
  { maxAgeMs, maxBytes, maxEntries }: Limits
) {
  const beyond = yield* run(statements.beyond, [maxAgeMs, maxEntries, maxBytes])
  const found = beyond.map((row) => ({ id: Rows.integer(row[0]), used_at: Rows.integer(row[1]) }))
  const deleted = yield* Rows.inChunks(found, atOnce, (chunk) =>
    chunk.length === 0 ? Effect.succeed([]) : run(statements.deleteEntries, [JSON.stringify(chunk)])
  )
  return { entries: deleted.length, resultBytes: deleted.reduce((sum, row) => sum + Rows.integer(row[0]), 0) }
})

const pruneBlobs = Effect.fnUntraced(function* ({ statements, transaction }: Database, { graceMs }: Limits) {
  let blobs = 0
  let blobBytes = 0
  for (let after: string | undefined = ""; after !== undefined;) {
    const from: string = after
    after = yield* transaction(
      Effect.fnUntraced(function* (run) {
        const locked = (yield* run(statements.lockBlobs, [from, graceMs, atOnce])).map((row) => Rows.text(row[0]))
        if (locked.length === 0) return undefined
        for (const [size, had] of yield* run(statements.deleteBlobs, [JSON.stringify(locked)])) {
          if (had !== true) continue
          blobs++
          blobBytes += Rows.integer(size)
        }
        return locked.at(-1)
      })
    )
  }
  return { blobs, blobBytes }
})
