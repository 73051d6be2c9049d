import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import type { Blob } from "../../CacheEntry.ts"
import type { CacheError } from "../../CacheError.ts"
import { distinct } from "../blobs.ts"
import type { Database } from "./database.ts"

/** Those of the blobs that are not there in their size, in order, each once. */
export const missing = (
  { run, statements }: Database,
  blobs: ReadonlyArray<Blob>
): Effect.Effect<ReadonlyArray<Blob>, CacheError> =>
  Effect.suspend(() => {
    const wanted = distinct(blobs)
    return Effect.map(
      Rows.inChunks(wanted, 1000, (chunk) =>
        chunk.length === 0 ? Effect.succeed([]) : run(statements.present, [JSON.stringify(chunk)])
      ),
      (rows) => {
        const there = new Set(rows.map((row) => nameOf(Rows.text(row[0]), Rows.integer(row[1]))))
        return wanted.filter(({ digest, size }) => !there.has(nameOf(digest, size)))
      }
    )
  })

const nameOf = (digest: string, size: number): string => `${digest} ${size}`
