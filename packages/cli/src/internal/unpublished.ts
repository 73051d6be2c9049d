import { Publication } from "@strata/cache/Publication"
import { StepKey } from "@strata/cache/StepKey"
import { DirtyQueue } from "@strata/dirty-queue/DirtyQueue"
import { sha256 } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as RemoteTier from "../RemoteTier.ts"
import type { Unpublished } from "../Results.ts"
import type { SharedTier } from "../SharedTier.ts"

/** Sends what can be sent to the shared cache, and tells what is left; a tier that is away is not waited for. */
export const left = Effect.fnUntraced(function* (shared: SharedTier | undefined) {
  const publication = yield* Publication
  if (shared === undefined || (yield* publication.drain()) === 0) return {}
  const { breaker, dead, failing, pending, refusals, tier } = yield* publication.status
  if (tier === undefined || pending + dead === 0) return {}
  // A tier that failed when it was asked is left alone since, so that nothing was sent which it could have refused.
  const failure = breaker === undefined || breaker._tag === "Closed" ? Option.none() : yield* failureOf(shared, tier)
  const last = Option.map(Option.fromUndefinedOr(refusals[0]), ({ refusal }) => `${refusal.detail} (${refusal.kind})`)
  const reason = Option.getOrUndefined(Option.orElse(failure, () => last))
  const unpublished: Unpublished = { tier, pending, failing, dead, ...(reason === undefined ? {} : { reason }) }
  return { unpublished }
})

/** What waits for each shared cache that was named before, without asking it. */
export const waiting = Effect.gen(function* () {
  const { followers } = yield* DirtyQueue.use(({ stats }) => stats())
  return followers.flatMap(({ dead, failing, follower, rows }): ReadonlyArray<Unpublished> =>
    follower.startsWith(publication) && rows > 0
      ? [{ tier: follower.slice(publication.length), pending: rows - dead, failing, dead }]
      : []
  )
})

/** What followers that publish are called, before the name of their tier. */
const publication = "publication@"

/** How the tier fails now. */
const failureOf = (shared: SharedTier, tier: string): Effect.Effect<Option.Option<string>> =>
  RemoteTier.make(shared).pipe(
    Effect.flatMap(({ steps }) => steps),
    Effect.flatMap((steps) => steps.get(askedKey)),
    Effect.as(Option.none<string>()),
    Effect.catch((error) => Effect.succeedSome(`${error.message} (${error.reason._tag})`)),
    Effect.scoped,
    Effect.timeoutOrElse({
      duration: patience,
      orElse: () => Effect.succeedSome(`${tier} does not answer`)
    })
  )

const patience = "500 millis"

const askedKey = StepKey.make(sha256("strata-probe"))
