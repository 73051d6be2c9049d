import { sha256 } from "@strata/durable/Digest"
import type { DurableWriter } from "@strata/durable/DurableWriter"
import type { Journal } from "@strata/journal/Journal"
import type { StreamName } from "@strata/journal/StreamName"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { CacheEntry } from "../CacheEntry.ts"
import { CacheError, Invalid, ReadOnly, StorageFailed } from "../CacheError.ts"
import * as CacheEvents from "../CacheEvents.ts"
import * as Lookup from "../Lookup.ts"
import * as Refusal from "../Refusal.ts"
import type { Signing } from "../Signing.ts"
import type { StepCache } from "../StepCache.ts"
import { StepKey } from "../StepKey.ts"
import { contradiction } from "./storedEntry.ts"

export interface Options {
  readonly remote: StepCache["Service"]
  /** The name of the tier with the namespace. */
  readonly tier: string
  readonly namespace: string | undefined
  readonly signing: Signing | undefined
  readonly readOnly: boolean
  readonly stream: StreamName
  readonly writer: DurableWriter["Service"]
  readonly journal: Journal["Service"]
  readonly guard: <A>(call: Effect.Effect<A, CacheError>) => Effect.Effect<A, CacheError>
}

// ---------------------------------------------------------------------------------------------------------------------
// lookup
// ---------------------------------------------------------------------------------------------------------------------

export const lookup = (options: Options) => {
  const toOurs = verified(options)
  return Effect.fn("CacheSync.lookup")(
    function* (key: StepKey) {
      yield* Effect.annotateCurrentSpan({ tier: options.tier, key })
      const found = yield* options.guard(options.remote.get(sharedKey(options, key)))
      return found._tag === "Miss" ? found : toOurs(key, found.entry)
    },
    Effect.catchTag("CacheError", (error) =>
      Effect.succeed(Lookup.miss({ _tag: "Unavailable", error: error.reason._tag }))
    )
  )
}

/**
 * The key in the tier. A digest of both names leaves no way in which one namespace reaches the entries of another, and
 * fits every tier.
 */
const sharedKey = ({ namespace }: Options, key: StepKey): StepKey =>
  namespace === undefined ? key : StepKey.make(sha256(JSON.stringify([namespace, key])))

/** What the tier gave, under its own key, once it is sure that it is what the tier should have given. */
const verified =
  (options: Options) =>
  (key: StepKey, entry: CacheEntry): Lookup.Lookup => {
    if (entry.key !== sharedKey(options, key)) return Lookup.miss({ _tag: "WrongKey" })
    if (sha256(entry.result) !== entry.digest) return Lookup.miss({ _tag: "DigestMismatch" })
    const detail = contradiction(entry)
    if (detail !== undefined) return Lookup.miss({ _tag: "Undecodable", detail })
    if (!isTrusted(options, key, entry)) return Lookup.miss({ _tag: "BadSignature" })
    return Lookup.hit({ ...entry, key }, options.tier)
  }

const isTrusted = ({ namespace, signing }: Options, key: StepKey, { artifacts, digest, signature }: CacheEntry) =>
  signing === undefined || signing.verify({ namespace, key, digest, artifacts }, signature)

// ---------------------------------------------------------------------------------------------------------------------
// publication
// ---------------------------------------------------------------------------------------------------------------------

export const publishEntry = (options: Options) => {
  const publish = options.readOnly ? refuseWrites(options) : offer(options)
  return Effect.fn("CacheSync.publishEntry")(
    function* (entry: CacheEntry) {
      yield* Effect.annotateCurrentSpan({ tier: options.tier, key: entry.key })
      yield* publish(entry)
      return Option.none<Refusal.Refusal>()
    },
    Effect.catchTag("CacheError", (error) =>
      Effect.succeedSome(Refusal.fromError(error.reason._tag === "StorageFailed" ? "local" : "entry", error))
    )
  )
}

const refuseWrites =
  ({ tier }: Options) =>
  (_entry: CacheEntry): Effect.Effect<void, CacheError> =>
    Effect.fail(new CacheError({ reason: new ReadOnly({ tier }) }))

/**
 * Looks first: a tier where the last writer wins would give up an entry that other machines have read already. What is
 * there but cannot be served is written over, where the tier lets it.
 */
const offer = (options: Options) => {
  const { guard, remote } = options
  const settle = settleExisting(options)
  return Effect.fnUntraced(function* (entry: CacheEntry) {
    const key = sharedKey(options, entry.key)
    const found = yield* guard(remote.get(key))
    if (found._tag === "Hit" && verified(options)(entry.key, found.entry)._tag === "Hit") {
      return yield* settle(entry, found.entry)
    }
    const outcome = yield* guard(remote.put(signed(options, { ...entry, key }, entry.key)))
    if (outcome._tag === "ExistingSame" || outcome._tag === "Conflict") {
      return yield* settle(entry, outcome.entry)
    }
  })
}

const signed = ({ namespace, signing }: Options, entry: CacheEntry, key: StepKey): CacheEntry =>
  signing?.sign === undefined
    ? entry
    : { ...entry, signature: signing.sign({ namespace, key, digest: entry.digest, artifacts: entry.artifacts }) }

/** Another entry is in the tier, and stays there. */
const settleExisting = (options: Options) => {
  const journalConflict = appendConflict(options)
  return (ours: CacheEntry, theirs: CacheEntry): Effect.Effect<void, CacheError> => {
    if (verified(options)(ours.key, theirs)._tag === "Miss") {
      const detail = "it holds an entry that cannot be served, and keeps it"
      return Effect.fail(new CacheError({ reason: new Invalid({ tier: options.tier, detail }) }))
    }
    return theirs.digest === ours.digest ? Effect.void : journalConflict(ours, theirs)
  }
}

/** Named by the two recordings, so that publishing again does not tell it again. */
const appendConflict =
  ({ journal, stream, tier, writer }: Options) =>
  (ours: CacheEntry, theirs: CacheEntry): Effect.Effect<void, CacheError> => {
    const kept = theirs.metadata.recording
    const { recording } = ours.metadata
    const event = CacheEvents.Conflicted.make(
      { key: ours.key, kept, keptDigest: theirs.digest, recording, digest: ours.digest, tier },
      { identity: `cache-conflict:${tier}:${kept}:${recording}` }
    )
    return writer.write(journal.append(stream, [event])).pipe(
      Effect.mapError((cause) => new CacheError({ reason: new StorageFailed({ tier: "local", cause }) })),
      Effect.asVoid
    )
  }
