import { sha256 } from "@strata/durable/Digest"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ArtifactStore } from "../ArtifactStore.ts"
import type { ArtifactSync } from "../ArtifactSync.ts"
import type { Blob } from "../CacheEntry.ts"
import { ArtifactCorrupt, ArtifactMissing, CacheError } from "../CacheError.ts"
import * as Refusal from "../Refusal.ts"
import type { TierGuard } from "../TierGuard.ts"
import type { Transfer } from "./transfer.ts"

type Service = ArtifactSync["Service"]
type Store = ArtifactStore["Service"]

export interface Options {
  readonly here: Store
  readonly there: Store
  readonly guard: TierGuard
  readonly transfer: Transfer
}

/** A blob that nobody has, to find out whether the tier answers. */
export const probed: Blob = { digest: sha256("strata-probe"), size: 12 }

// ---------------------------------------------------------------------------------------------------------------------
// operations
// ---------------------------------------------------------------------------------------------------------------------

export const fetch = (options: Options): Service["fetch"] => {
  const { here, there } = options
  const move = moveTo(options, here, there)
  return Effect.fn("ArtifactSync.fetch")(
    function* (blobs) {
      yield* Effect.annotateCurrentSpan({ tier: there.name, blobs: blobs.length })
      const lacking = yield* at("local", here.missing(blobs))
      yield* Effect.forEach(lacking, move, { concurrency: options.transfer.concurrency, discard: true })
      return Option.none<Refusal.Refusal>()
    },
    Effect.catch((refusal) => Effect.succeedSome(refusal))
  )
}

export const publish = (options: Options): Service["publish"] => {
  const { guard, here, there } = options
  const move = moveTo(options, there, here)
  const lackingOf = (blobs: ReadonlyArray<Blob>) => at("probe", guard.run(there.missing(blobs)))
  return Effect.fn("ArtifactSync.publish")(
    function* (blobs) {
      if (blobs.length === 0) return Option.none()
      yield* Effect.annotateCurrentSpan({ tier: there.name, blobs: blobs.length })
      const lacking = yield* lackingOf(blobs)
      if (lacking.length === 0) return Option.none()
      yield* Effect.forEach(lacking, move, { concurrency: options.transfer.concurrency, discard: true })
      // All of them: one that was there at first may have been taken away while the others were sent.
      const lost = yield* lackingOf(blobs)
      return Arr.isReadonlyArrayNonEmpty(lost) ? Option.some(notKept(there.name, lost)) : Option.none()
    },
    Effect.catch((refusal) => Effect.succeedSome(refusal))
  )
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const at = <A>(stage: Refusal.Stage, effect: Effect.Effect<A, CacheError>): Effect.Effect<A, Refusal.Refusal> =>
  Effect.mapError(effect, (error) => Refusal.fromError(stage, error))

const moveTo = ({ guard, here, there, transfer }: Options, to: Store, from: Store) => {
  const moveBlob = (blob: Blob): Effect.Effect<void, Refusal.Refusal> => {
    const deadline = guard.deadlineMs + transfer.extraMs(blob)
    return Effect.flatMap(
      at("artifact", guard.run(apart(here.name, moveContent(blob, to, from)), { deadline })),
      Option.match({
        onNone: () => Effect.void,
        onSome: (error) => Effect.fail(Refusal.fromError("local", error))
      })
    ).pipe(transfer.run(blob))
  }
  return Effect.fn("ArtifactSync.move")(function* (blob: Blob) {
    yield* Effect.annotateCurrentSpan({ tier: there.name, digest: blob.digest, size: blob.size })
    yield* moveBlob(blob)
  })
}

/** Content that the receiver finds corrupt is the sender's. */
const moveContent = (blob: Blob, to: Store, from: Store): Effect.Effect<void, CacheError> =>
  Effect.mapError(to.put(blob, from.get(blob)), (error) =>
    error.reason._tag === "ArtifactCorrupt" && error.reason.tier === to.name
      ? new CacheError({ reason: new ArtifactCorrupt({ tier: from.name, digest: blob.digest }) })
      : error
  )

/** A failure of the local store says nothing about the shared one, whose guard must not count it. */
const apart = (
  local: string,
  effect: Effect.Effect<void, CacheError>
): Effect.Effect<Option.Option<CacheError>, CacheError> =>
  Effect.as(effect, Option.none<CacheError>()).pipe(
    Effect.catchIf(
      (error) => error.reason.tier === local,
      (error) => Effect.succeedSome(error)
    )
  )

const notKept = (tier: string, lost: Arr.NonEmptyReadonlyArray<Blob>): Refusal.Refusal =>
  Refusal.fromError(
    "probe",
    new CacheError({ reason: new ArtifactMissing({ tier, digests: lost.map(({ digest }) => digest) }) })
  )
