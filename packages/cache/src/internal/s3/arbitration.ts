import * as Effect from "effect/Effect"
import { Buffer } from "node:buffer"
import { CacheError, Unsupported } from "../../CacheError.ts"
import type { Client } from "./client.ts"
import * as Conditional from "./conditional.ts"

/** Whether the server heeds conditions: found out once, before anything relies on it. */
export interface Arbitration {
  /** Fails with `Unsupported` when it does not, and as any call when it does not answer. */
  readonly ensure: Effect.Effect<void, CacheError>
}

export const make = (client: Client): Arbitration => {
  let isProven = false
  const prove = Effect.tap(probe(client), () => Effect.sync(() => void (isProven = true)))
  return { ensure: Effect.suspend(() => (isProven ? Effect.void : prove)) }
}

/** One object, which all clients of a tier put, and which stays. */
const key = "probe"

/** Of nothing that was ever put. */
const noTag = '"00000000000000000000000000000000"'

const probe = Effect.fnUntraced(function* (client: Client): Effect.fn.Return<void, CacheError> {
  const isUnmet = Effect.flatMap((outcome: Conditional.Settled) =>
    outcome._tag === "Unknown" ? Effect.fail(outcome.error) : Effect.succeed(outcome._tag === "Unmet")
  )
  const heedsAbsence = isUnmet(Conditional.create(client, key, body))
  // The first client finds nothing there.
  if (!(yield* heedsAbsence) && !(yield* heedsAbsence)) return yield* unsupported(client, "If-None-Match")
  if (!(yield* isUnmet(Conditional.replace(client, key, body, noTag)))) return yield* unsupported(client, "If-Match")
})

const body = Buffer.from("strata\n")

const unsupported = ({ tier }: Client, header: string) =>
  Effect.fail(
    new CacheError({
      reason: new Unsupported({ tier, operation: `tell who was first: it does not heed ${header} when it is put to` })
    })
  )
