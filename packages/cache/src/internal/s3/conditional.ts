import { sha256 } from "@strata/durable/Digest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { CacheError, Unexpected } from "../../CacheError.ts"
import type { Client, Outcome } from "./client.ts"

/** Objects that are put only when something holds, which the server decides in one step. */

export type Settled =
  | Exclude<Outcome, { readonly _tag: "Busy" }>
  /** The server failed, and may have put it before: some that are overtaken while they decide say no more. */
  | { readonly _tag: "Unknown"; readonly error: CacheError }

/** Puts what has no object yet. */
export const create = (client: Client, key: string, body: Uint8Array): Effect.Effect<Settled, CacheError> =>
  put(client, key, body, { "if-none-match": "*" })

/**
 * Puts in the place of the object that had this tag. Servers differ in whether a tag of a condition has quotes; what one
 * of them refuses can be asked for in the other form.
 */
export const replace = (
  client: Client,
  key: string,
  body: Uint8Array,
  tag: string
): Effect.Effect<Settled, CacheError> =>
  Effect.flatMap(put(client, key, body, { "if-match": tag }), (outcome) => {
    const bare = tag.replaceAll('"', "")
    return outcome._tag !== "Unmet" || outcome.repeated || bare === tag
      ? Effect.succeed(outcome)
      : put(client, key, body, { "if-match": bare })
  })

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** While others put the same key a server may say so instead of deciding; it is then asked again. */
const put = (
  client: Client,
  key: string,
  body: Uint8Array,
  condition: Readonly<Record<string, string>>
): Effect.Effect<Settled, CacheError> => {
  const upload = { digest: sha256(body), size: body.length, content: Stream.make(body) }
  const request = client.request({ method: "PUT", key, headers: condition, upload })
  return Effect.scoped(request).pipe(
    Effect.repeat({ schedule: pauses, while: ({ _tag }) => _tag === "Busy" }),
    Effect.filterOrFail(isDecided, () => new CacheError({ reason: new Unexpected({ ...busy, tier: client.tier }) })),
    Effect.catchIf(isUnknown, (error) => Effect.succeed<Settled>({ _tag: "Unknown", error }))
  )
}

const isDecided = (outcome: Outcome): outcome is Exclude<Outcome, { readonly _tag: "Busy" }> => outcome._tag !== "Busy"

const isUnknown = ({ reason }: CacheError): boolean => reason._tag === "Unexpected" && reason.status === 500

const busy = { detail: "the key is busy all the time", status: 409 }

/** About five seconds in all. */
const pauses = Schedule.exponential("20 millis").pipe(
  Schedule.jittered,
  Schedule.modifyDelay(({ duration }) => Effect.succeed(Duration.min(duration, Duration.seconds(1)))),
  Schedule.upTo({ times: 10 })
)
