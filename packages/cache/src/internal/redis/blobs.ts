import * as Effect from "effect/Effect"
import type { Blob } from "../../CacheEntry.ts"
import type { CacheError } from "../../CacheError.ts"
import { distinct } from "../blobs.ts"
import type { Connection } from "./connection.ts"
import * as Reply from "./reply.ts"
import type { Settings } from "./settings.ts"

/** How many commands are on their way at a time. */
const concurrency = 64

export const keyOf = ({ prefix }: Settings, { digest }: Pick<Blob, "digest">): string => `${prefix}blob:${digest}`

/** Those of the blobs that are not there in their size, in order, without repetition. */
export const missing = (
  connection: Connection,
  settings: Settings,
  blobs: ReadonlyArray<Blob>
): Effect.Effect<ReadonlyArray<Blob>, CacheError> =>
  Effect.filter(distinct(blobs), (blob) => Effect.map(isThere(connection, settings, blob), (there) => !there), {
    concurrency
  })

export const isThere = (connection: Connection, settings: Settings, blob: Blob): Effect.Effect<boolean, CacheError> => {
  const key = keyOf(settings, blob)
  const hasSize = connection.send(Reply.count, ["STRLEN", key]).pipe(
    Effect.map((size) => size === blob.size),
    // Something else than a blob, which a put writes over.
    Effect.catchReason("CacheError", "Invalid", () => Effect.succeed(false))
  )
  // What is not there has the same length as what is empty.
  return blob.size > 0
    ? hasSize
    : Effect.flatMap(connection.send(Reply.count, ["EXISTS", key]), (there) =>
        there === 1 ? hasSize : Effect.succeed(false)
      )
}

/** Sees to it that blobs stay for as long as what is put now. */
export const prolong = (
  connection: Connection,
  settings: Settings,
  blobs: ReadonlyArray<Blob>
): Effect.Effect<void, CacheError> => {
  const { ttlMs } = settings
  if (ttlMs === undefined) return Effect.void
  return Effect.forEach(
    distinct(blobs),
    (blob) => connection.send(Reply.count, ["PEXPIRE", keyOf(settings, blob), `${ttlMs}`, "GT"]),
    { concurrency, discard: true }
  )
}
