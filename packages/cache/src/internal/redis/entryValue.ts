import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type { CacheEntry } from "../../CacheEntry.ts"
import type { MissReason } from "../../Lookup.ts"
import * as EntryMessage from "../http/entryMessage.ts"

/**
 * The value of an entry: its recording, at a fixed place where a script finds it, and the message by which entries go
 * over HTTP, with the result in it.
 */

/** How many bytes the recording takes. */
const fenceBytes = 32

/** Fails when the metadata of the entry is none. */
export const encode = (entry: CacheEntry, result: Uint8Array): Result.Result<Buffer, Schema.SchemaError> =>
  Result.map(EntryMessage.encode(entry, result, result.length), (message) =>
    Buffer.concat([Buffer.from(entry.metadata.recording, "latin1"), message])
  )

export const decode = (key: CacheEntry["key"], value: Buffer): Result.Result<CacheEntry, MissReason> =>
  Result.gen(function* () {
    const received = yield* EntryMessage.decode(key, value.subarray(fenceBytes))
    if (received.entry.metadata.recording !== value.toString("latin1", 0, fenceBytes)) {
      return yield* Result.fail(EntryMessage.undecodable("it has two recordings"))
    }
    if (received.inlined === undefined) return yield* Result.fail(EntryMessage.undecodable("it has no result"))
    return yield* EntryMessage.complete(received, received.inlined)
  })
