import { Digest, sha256 } from "@strata/durable/Digest"
import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { ArtifactStore, StoredBlob } from "../../ArtifactStore.ts"
import type { Blob } from "../../CacheEntry.ts"
import { ArtifactMissing, CacheError } from "../../CacheError.ts"
import { checkSize, collect } from "../blobs.ts"
import { checked } from "../checked.ts"
import * as Blobs from "./blobs.ts"
import type { Database } from "./database.ts"
import * as Parts from "./parts.ts"
import type { Settings } from "./settings.ts"
import { checkWritable } from "../refusing.ts"

type Service = ArtifactStore["Service"]

export const make = (database: Database): Service => ({
  name: database.settings.tier,
  add: add(database),
  put: put(database),
  get: get(database),
  missing: missing(database),
  remove: remove(database),
  list: list(database)
})

// ---------------------------------------------------------------------------------------------------------------------
// operations
// ---------------------------------------------------------------------------------------------------------------------

const add = (database: Database): Service["add"] => {
  const { settings } = database
  return Effect.fn("PostgresCache.add")(function* (content) {
    yield* Effect.annotateCurrentSpan({ tier: settings.tier })
    yield* checkWritable(settings)
    const bytes = yield* collect(boundsOf(settings), content)
    const blob = { digest: sha256(bytes), size: bytes.length }
    yield* upload(database, blob, bytes)
    return blob
  })
}

const put = (database: Database): Service["put"] => {
  const { settings } = database
  const bounds = boundsOf(settings)
  return Effect.fn("PostgresCache.putBlob")(function* (blob, content) {
    yield* Effect.annotateCurrentSpan({ tier: settings.tier, digest: blob.digest, size: blob.size })
    yield* checkWritable(settings)
    yield* checkSize(bounds, blob.size)
    if (yield* touch(database, blob)) return
    yield* upload(database, blob, yield* collect(bounds, checked(settings.tier, blob, content)))
  })
}

const get = (database: Database): Service["get"] => {
  const { settings } = database
  const bounds = boundsOf(settings)
  return (blob) =>
    Stream.fromEffectDrain(checkSize(bounds, blob.size)).pipe(
      Stream.concat(checked(settings.tier, blob, download(database, blob))),
      Stream.tapError(({ reason }) => (reason._tag === "ArtifactCorrupt" ? discard(database, blob) : Effect.void)),
      Stream.withSpan("PostgresCache.getBlob", {
        attributes: { tier: settings.tier, digest: blob.digest, size: blob.size }
      })
    )
}

const missing = (database: Database): Service["missing"] =>
  Effect.fn("PostgresCache.missing")(function* (blobs) {
    yield* Effect.annotateCurrentSpan({ tier: database.settings.tier, blobs: blobs.length })
    return yield* Blobs.missing(database, blobs)
  })

const remove = (database: Database): Service["remove"] =>
  Effect.fn("PostgresCache.remove")(function* (digest) {
    yield* Effect.annotateCurrentSpan({ tier: database.settings.tier, digest })
    yield* checkWritable(database.settings)
    return (yield* database.run(database.statements.removeBlob, [digest])).length > 0
  })

/** By pages, so that memory stays bounded. */
const list = ({ run, statements }: Database): Service["list"] =>
  Stream.paginate("", (after) =>
    Effect.map(run(statements.listBlobs, [after, pageSize]), (rows) => {
      const blobs = rows.map(toStoredBlob)
      const last = blobs.length === pageSize ? blobs.at(-1) : undefined
      return [blobs, last === undefined ? Option.none<string>() : Option.some<string>(last.digest)] as const
    })
  )

const pageSize = 1000

// ---------------------------------------------------------------------------------------------------------------------
// content
// ---------------------------------------------------------------------------------------------------------------------

/** Tells whether the blob is there, and keeps it from being pruned. Corrupt content that this finds is taken out. */
const touch = Effect.fnUntraced(function* (
  database: Database,
  { digest, size }: Blob
): Effect.fn.Return<boolean, CacheError> {
  const { attempt, run, statements } = database
  const [found] = yield* run(statements.findBlob, [digest, size, touchGrainMs])
  if (found === undefined) return false
  if (found[0] !== true || (yield* attempt(statements.touchBlob, [digest])) !== undefined) return true
  yield* run(statements.emptyBlob, [digest])
  return false
})

/** How old the time of the last put may get before another put writes it anew. */
const touchGrainMs = 3_600_000

const upload = ({ run, statements }: Database, blob: Blob, content: Uint8Array): Effect.Effect<void, CacheError> =>
  Effect.asVoid(run(statements.putBlob, [blob.digest, content], content.length))

const download = (database: Database, { digest, size }: Blob): Stream.Stream<Uint8Array, CacheError> =>
  Parts.parts(database, database.statements.readBlob, [digest, size], size).pipe(
    Stream.catchTag("Gone", () =>
      Stream.fail(new CacheError({ reason: new ArtifactMissing({ tier: database.settings.tier, digests: [digest] }) }))
    )
  )

/** What was read wrong may be wrong there: then it is missing from now on, and sent again by the next put. */
const discard = ({ run, settings, statements }: Database, { digest }: Blob): Effect.Effect<void> =>
  settings.readOnly ? Effect.void : Effect.ignore(run(statements.emptyBlob, [digest]))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const toStoredBlob = (row: Rows.Values): StoredBlob => ({
  digest: Digest.make(Rows.text(row[0])),
  size: Rows.integer(row[1]),
  touchedAt: Rows.integer(row[2])
})

const boundsOf = ({ maxBlobBytes, tier }: Settings) => ({ tier, maxBytes: maxBlobBytes })
