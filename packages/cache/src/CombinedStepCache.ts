/**
 * The local step cache with the shared one behind it, under the same tag: whoever asks for `StepCache` need not know
 * that there are two. A local hit makes no request. What only the shared tier has is brought here with its artifacts,
 * and recorded. Everything else is local: entries reach the shared tier by `Publication`, after their commit.
 *
 * @since 0.1.0
 */
import { insideTransaction } from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { ArtifactSync } from "./ArtifactSync.ts"
import type { CacheEntry } from "./CacheEntry.ts"
import type { CacheError } from "./CacheError.ts"
import { CacheSync } from "./CacheSync.ts"
import * as Lookup from "./Lookup.ts"
import type { Refusal } from "./Refusal.ts"
import { type PutOutcome, StepCache } from "./StepCache.ts"

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Combines a local step cache with the `CacheSync` and `ArtifactSync` in context; without a `CacheSync` that has a
 * tier it is the local one.
 *
 * - `get` looks here, then there. Inside of a write it only looks here, since nothing that holds the database may wait
 *   for a network. An entry from there is served when its artifacts are here and it is recorded here, or when the other
 *   one that was recorded here meanwhile is: that one is then what is served.
 * - `put`, `evict` and `quarantine` are those of the local tier. What is evicted here can come back from there.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (local: StepCache["Service"]): Effect.fn.Return<StepCache["Service"]> {
  const shared = yield* Effect.serviceOption(CacheSync)
  if (Option.isNone(shared) || shared.value.tier === undefined) return local
  const artifacts = Option.getOrElse(yield* Effect.serviceOption(ArtifactSync), () => fetchNothing)
  const take = bringHere(local, artifacts, shared.value.tier)

  const get: StepCache["Service"]["get"] = Effect.fn("StepCache.get")(function* (key, options) {
    const here = yield* local.get(key, options)
    if (here._tag === "Hit" || here.reason._tag === "Fenced" || (yield* insideTransaction)) return here
    const there = yield* shared.value.lookup(key)
    if (there._tag === "Miss") return here.reason._tag === "Absent" ? there : here
    const wanted = options?.recording
    const taken =
      wanted === undefined || wanted === there.entry.metadata.recording ? yield* take(there.entry) : Lookup.fenced
    return taken._tag === "Hit" && wanted !== undefined && taken.entry.metadata.recording !== wanted
      ? Lookup.fenced
      : taken
  })

  return { ...local, get }
})

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Puts the combined step cache into the place of the local one that is in context. `Publication` needs the local one.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<StepCache, never, StepCache> = Layer.effect(StepCache, StepCache.use(make))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** The local tier finds out itself when an entry's artifacts are not here. */
const fetchNothing: Pick<ArtifactSync["Service"], "fetch"> = { fetch: () => Effect.succeedNone }

/** Fetches the artifacts of an entry of the shared tier, and records it here: gives what is to be served. */
const bringHere = (local: StepCache["Service"], artifacts: Pick<ArtifactSync["Service"], "fetch">, tier: string) =>
  Effect.fnUntraced(function* (entry: CacheEntry) {
    const refusal = yield* artifacts.fetch(entry.artifacts)
    if (Option.isSome(refusal)) return notFetched(entry, refusal.value)
    return yield* local.put(entry, { from: tier }).pipe(
      Effect.map((outcome) => winner(outcome, entry, local.name, tier)),
      Effect.catchTag("CacheError", (error) => notRecorded(entry, error, tier))
    )
  })

const winner = (outcome: PutOutcome, entry: CacheEntry, here: string, there: string): Lookup.Lookup =>
  outcome._tag === "ExistingSame" || outcome._tag === "Conflict"
    ? Lookup.hit(outcome.entry, here)
    : Lookup.hit(entry, there)

const notFetched = (entry: CacheEntry, refusal: Refusal): Lookup.Lookup =>
  refusal.outlook === "away" ? Lookup.miss({ _tag: "Unavailable", error: refusal.kind }) : withoutArtifacts(entry)

const withoutArtifacts = (entry: CacheEntry): Lookup.Lookup =>
  Lookup.miss({ _tag: "ArtifactMissing", digests: entry.artifacts.map((artifact) => artifact.digest) })

/** That the local database fails does not make a verified entry worse: it is served, and fetched again next time. */
const notRecorded = (entry: CacheEntry, error: CacheError, tier: string): Effect.Effect<Lookup.Lookup> => {
  switch (error.reason._tag) {
    case "ArtifactMissing":
      return Effect.succeed(withoutArtifacts(entry))
    case "Invalid":
      return Effect.succeed(Lookup.miss({ _tag: "Undecodable", detail: error.reason.detail }))
    default:
      return Effect.as(
        Effect.logWarning("An entry of the shared cache was not recorded here", error).pipe(
          Effect.annotateLogs({ key: entry.key, tier })
        ),
        Lookup.hit(entry, tier)
      )
  }
}
