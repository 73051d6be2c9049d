import type { Digest } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { ArtifactStore } from "../../ArtifactStore.ts"
import type { Blob } from "../../CacheEntry.ts"
import { CacheError, ReadOnly, Unsupported } from "../../CacheError.ts"
import * as Blobs from "./blobs.ts"
import type { Client } from "./client.ts"
import type { Settings } from "./settings.ts"
import { spool } from "./spool.ts"

type Service = ArtifactStore["Service"]

interface Dependencies {
  readonly client: Client
  readonly settings: Settings
  readonly suspects: Suspects
}

export const make = (client: Client, settings: Settings): Service => {
  const dependencies: Dependencies = { client, settings, suspects: makeSuspects() }
  return {
    name: settings.tier,
    add: add(dependencies),
    put: put(dependencies),
    get: get(dependencies),
    missing: missing(dependencies),
    remove: () => unsupported(settings, "remove blobs"),
    list: Stream.fromEffect(unsupported(settings, "list blobs"))
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// operations
// ---------------------------------------------------------------------------------------------------------------------

const add = (dependencies: Dependencies): Service["add"] => {
  const { settings } = dependencies
  const send = put(dependencies)
  return Effect.fn("HttpCache.add")(function* (content) {
    yield* Effect.annotateCurrentSpan({ tier: settings.tier })
    yield* checkWritable(settings)
    const spooled = yield* spool(settings.tier, content, settings.maxBlobBytes)
    yield* send(spooled.blob, spooled.content)
    return spooled.blob
  }, Effect.scoped)
}

const put = ({ client, settings, suspects }: Dependencies): Service["put"] =>
  Effect.fn("HttpCache.putBlob")(function* (blob, content) {
    yield* Effect.annotateCurrentSpan({ tier: settings.tier, digest: blob.digest, size: blob.size })
    yield* checkWritable(settings)
    yield* Blobs.checkSize(settings.tier, blob.size, settings.maxBlobBytes)
    if (!suspects.has(blob.digest) && (yield* Blobs.missing(client, [blob])).length === 0) return
    yield* Blobs.upload(client, blob, content)
    suspects.delete(blob.digest)
  })

const get =
  ({ client, settings, suspects }: Dependencies): Service["get"] =>
  (blob) =>
    Stream.fromEffectDrain(Blobs.checkSize(settings.tier, blob.size, settings.maxBlobBytes)).pipe(
      Stream.concat(Blobs.download(client, blob)),
      Stream.tapError((error) =>
        Effect.sync(() => {
          if (error.reason._tag === "ArtifactCorrupt") suspects.add(blob.digest)
        })
      ),
      Stream.withSpan("HttpCache.getBlob", {
        attributes: { tier: settings.tier, digest: blob.digest, size: blob.size }
      })
    )

const missing = ({ client, settings, suspects }: Dependencies): Service["missing"] =>
  Effect.fn("HttpCache.missing")(function* (blobs) {
    yield* Effect.annotateCurrentSpan({ tier: settings.tier, blobs: blobs.length })
    const distinct = distinctOf(blobs)
    const asked = distinct.filter(({ digest }) => !suspects.has(digest))
    const lacking = new Set(yield* Blobs.missing(client, asked))
    return distinct.filter((blob) => suspects.has(blob.digest) || lacking.has(blob))
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

/** Nothing but blobs, each once, in order. */
const distinctOf = (blobs: ReadonlyArray<Blob>): ReadonlyArray<Blob> =>
  Array.from(new Map(blobs.map(({ digest, size }) => [`${digest} ${size}`, { digest, size }])).values())

const checkWritable = ({ readOnly, tier }: Settings): Effect.Effect<void, CacheError> =>
  readOnly ? Effect.fail(new CacheError({ reason: new ReadOnly({ tier }) })) : Effect.void

const unsupported = ({ tier }: Settings, operation: string): Effect.Effect<never, CacheError> =>
  Effect.fail(new CacheError({ reason: new Unsupported({ tier, operation }) }))
