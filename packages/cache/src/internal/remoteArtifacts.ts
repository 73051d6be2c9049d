import type { Digest } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { ArtifactStore } from "../ArtifactStore.ts"
import type { Blob } from "../CacheEntry.ts"
import { CacheError, Unsupported } from "../CacheError.ts"
import { checkSize, distinct } from "./blobs.ts"
import { spool } from "./spool.ts"
import { checkWritable } from "./refusing.ts"

type Service = ArtifactStore["Service"]

/** A server that has blobs, in the words of its protocol. */
export interface Remote {
  /** Sends a blob, whether or not it is there. */
  readonly upload: <E, R>(
    blob: Blob,
    content: Stream.Stream<Uint8Array, E, R>
  ) => Effect.Effect<void, CacheError | E, R>
  /** Content that ends only when it is that of the blob. */
  readonly download: (blob: Blob) => Stream.Stream<Uint8Array, CacheError>
  /** Those of the blobs, each of which is given once, that are not there in their size. */
  readonly missing: (blobs: ReadonlyArray<Blob>) => Effect.Effect<ReadonlyArray<Blob>, CacheError>
  /** Fails with `Unsupported` where it cannot. */
  readonly remove: (digest: Digest) => Effect.Effect<boolean, CacheError>
}

interface Settings {
  readonly tier: string
  readonly readOnly: boolean
  readonly maxBlobBytes: number
}

interface Dependencies {
  /** Begins the names of spans. */
  readonly module: string
  readonly remote: Remote
  readonly settings: Settings
  readonly suspects: Suspects
}

/** The store of a server to which content streams. */
export const make = (module: string, remote: Remote, settings: Settings): Service => {
  const dependencies: Dependencies = { module, remote, settings, suspects: makeSuspects() }
  const { tier } = settings
  return {
    name: tier,
    add: add(dependencies),
    put: put(dependencies),
    get: get(dependencies),
    missing: missing(dependencies),
    remove: remove(dependencies),
    list: Stream.fail(new CacheError({ reason: new Unsupported({ tier, operation: "list blobs" }) }))
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// operations
// ---------------------------------------------------------------------------------------------------------------------

const add = (dependencies: Dependencies): Service["add"] => {
  const { module, settings } = dependencies
  const send = put(dependencies)
  return Effect.fn(`${module}.add`)(function* (content) {
    yield* Effect.annotateCurrentSpan({ tier: settings.tier })
    yield* checkWritable(settings)
    const spooled = yield* spool(settings.tier, content, settings.maxBlobBytes)
    yield* send(spooled.blob, spooled.content)
    return spooled.blob
  }, Effect.scoped)
}

const put = ({ module, remote, settings, suspects }: Dependencies): Service["put"] =>
  Effect.fn(`${module}.putBlob`)(function* (blob, content) {
    yield* Effect.annotateCurrentSpan({ tier: settings.tier, digest: blob.digest, size: blob.size })
    yield* checkWritable(settings)
    yield* checkSize(boundsOf(settings), blob.size)
    if (!suspects.has(blob.digest) && (yield* remote.missing([blob])).length === 0) return
    yield* remote.upload(blob, content)
    suspects.delete(blob.digest)
  })

const get =
  ({ module, remote, settings, suspects }: Dependencies): Service["get"] =>
  (blob) =>
    Stream.fromEffectDrain(checkSize(boundsOf(settings), blob.size)).pipe(
      Stream.concat(remote.download(blob)),
      Stream.tapError((error) =>
        Effect.sync(() => {
          if (error.reason._tag === "ArtifactCorrupt") suspects.add(blob.digest)
        })
      ),
      Stream.withSpan(`${module}.getBlob`, {
        attributes: { tier: settings.tier, digest: blob.digest, size: blob.size }
      })
    )

const missing = ({ module, remote, settings, suspects }: Dependencies): Service["missing"] =>
  Effect.fn(`${module}.missing`)(function* (blobs) {
    yield* Effect.annotateCurrentSpan({ tier: settings.tier, blobs: blobs.length })
    const each = distinct(blobs)
    const asked = each.filter(({ digest }) => !suspects.has(digest))
    const lacking = new Set(yield* remote.missing(asked))
    return each.filter((blob) => suspects.has(blob.digest) || lacking.has(blob))
  })

const remove = ({ module, remote, settings }: Dependencies): Service["remove"] =>
  Effect.fn(`${module}.removeBlob`)(function* (digest) {
    yield* Effect.annotateCurrentSpan({ tier: settings.tier, digest })
    yield* checkWritable(settings)
    return yield* remote.remove(digest)
  })

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Blobs that came with wrong content in their right size: a HEAD says that they are there, which is of no use. */
type Suspects = Pick<Set<Digest>, "has" | "add" | "delete">

const mostSuspects = 10_000

const makeSuspects = (): Suspects => {
  const suspects = new Set<Digest>()
  return {
    has: (digest) => suspects.has(digest),
    delete: (digest) => suspects.delete(digest),
    add: (digest) => {
      const [oldest] = suspects
      if (oldest !== undefined && suspects.size >= mostSuspects) suspects.delete(oldest)
      return suspects.add(digest)
    }
  }
}

const boundsOf = ({ maxBlobBytes, tier }: Settings) => ({ tier, maxBytes: maxBlobBytes })
