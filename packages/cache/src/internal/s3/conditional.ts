import { sha256 } from "@strata/durable/Digest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { CacheError, Unexpected } from "../../CacheError.ts"
import type { Client, Outcome } from "./client.ts"

/** Objects that are put only when something holds, which the server decides in one step. */

/** What has to hold, as a header. */
export type Condition = Readonly<Record<string, string>>

/** Nothing is there. */
export const isAbsent: Condition = { "if-none-match": "*" }

/** What is there is what had this tag. */
export const isStill = (tag: string): Condition => ({ "if-match": tag })

export type Settled = Exclude<Outcome, { readonly _tag: "Busy" }>

/** While others put the same key a server may say so instead of deciding; it is then asked again. */
export const put = (
  client: Client,
  key: string,
  body: Uint8Array,
  condition: Condition
): Effect.Effect<Settled, CacheError> => {
  const upload = { digest: sha256(body), size: body.length, content: Stream.make(body) }
  const request = client.request({ method: "PUT", key, headers: condition, upload })
  return Effect.scoped(request).pipe(
    Effect.repeat({ schedule: pauses, while: ({ _tag }) => _tag === "Busy" }),
    Effect.filterOrFail(isSettled, () => new CacheError({ reason: new Unexpected({ ...busy, tier: client.tier }) }))
  )
}

const isSettled = (outcome: Outcome): outcome is Settled => outcome._tag !== "Busy"

const busy = { detail: "the key is busy all the time", status: 409 }

/** About five seconds in all. */
const pauses = Schedule.exponential("20 millis").pipe(
  Schedule.jittered,
  Schedule.modifyDelay(({ duration }) => Effect.succeed(Duration.min(duration, Duration.seconds(1)))),
  Schedule.upTo({ times: 10 })
)
