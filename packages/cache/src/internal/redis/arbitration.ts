import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import { CacheError, Unsupported } from "../../CacheError.ts"
import type { Connection } from "./connection.ts"
import * as Reply from "./reply.ts"
import type { Settings } from "./settings.ts"

/** Whether the server can tell who was first: found out once, before anything relies on it. */
export interface Arbitration {
  /** Fails with `Unsupported` when it cannot, and as any call when it does not answer. */
  readonly ensure: Effect.Effect<void, CacheError>
}

export const make = (connection: Connection, settings: Settings): Arbitration => {
  let isProven = false
  const prove = Effect.tap(probe(connection, settings), () => Effect.sync(() => void (isProven = true)))
  return { ensure: Effect.suspend(() => (isProven ? Effect.void : prove)) }
}

/** The first of two values stays, and the second one is told which. */
const probe = Effect.fnUntraced(function* (
  { attempt, tier }: Connection,
  { prefix }: Settings
): Effect.fn.Return<void, CacheError> {
  const key = `${prefix}probe:${yield* Random.nextInt}:${yield* Random.nextInt}`
  const set = (value: string) => attempt(answerOf, ["SET", key, value, "NX", "GET", "PX", "10000"])
  const [first, second] = yield* Effect.all([set("first"), set("second")], { concurrency: 2 })
  if (first === "nothing" && second === "first") return
  const operation = "tell who was first: SET with NX and GET takes Redis 7 or newer, or Valkey"
  return yield* new CacheError({ reason: new Unsupported({ tier, operation }) })
})

const answerOf: Reply.Expected<string> = (reply) =>
  Option.map(Reply.bytesOrNothing(reply), (answer) => answer?.toString() ?? "nothing")
