/**
 * Who was first, when machines race: 36 and 45 on a shared tier, by clients that know nothing of each other.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { CacheEntry } from "../CacheEntry.ts"
import type { CacheError } from "../CacheError.ts"
import type { Arbitration, PutOutcome, StepCache } from "../StepCache.ts"
import type { StepKey } from "../StepKey.ts"
import * as Entries from "./entries.ts"

// ---------------------------------------------------------------------------------------------------------------------
// tiers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A tier to test.
 *
 * @since 0.1.0
 * @category models
 */
export interface ArbitrationTier<E> {
  /** That many clients of one empty tier, each with connections of its own. */
  readonly clients: (count: number) => Effect.Effect<ReadonlyArray<StepCache["Service"]>, E, Scope.Scope>
  readonly arbitration: Arbitration
  /** How often they race. Default 100. */
  readonly rounds?: number | undefined
  /** How many race. Default 16. */
  readonly racers?: number | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// suite
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Lets clients race for keys, on the live clock.
 *
 * @since 0.1.0
 * @category suites
 */
export const arbitrationSuite = <E>(name: string, tier: ArbitrationTier<E>): void => {
  const rounds = Arr.range(1, tier.rounds ?? 100)
  const racers = tier.racers ?? 16
  const exact = tier.arbitration === "exact"
  const eachRound = <R>(body: (clients: Clients, round: number) => Effect.Effect<void, CacheError, R>) =>
    Effect.gen(function* () {
      const clients = yield* tier.clients(racers)
      assert.strictEqual(clients.length, racers)
      for (const { arbitration } of clients) assert.strictEqual(arbitration, tier.arbitration)
      yield* Effect.forEach(rounds, (round) => body(clients, round), { discard: true })
    })

  describe(`arbitration (${name})`, () => {
    if (!exact) {
      return it.live(
        "never claims to know who was first",
        () =>
          eachRound((clients, round) =>
            Effect.gen(function* () {
              const key = Entries.keyOf(`round ${round}`)
              const raced = yield* race(clients, key, (racer) => ({ round, racer }))
              assert.deepStrictEqual(counts(raced), { Unarbitrated: racers })
              const [first, ...others] = yield* served(clients, key)
              assert.include(
                raced.map(({ entry }) => entry.result),
                first?.result
              )
              for (const other of others) assert.deepStrictEqual(other, first)
            })
          ),
        limitMs
      )
    }

    it.live(
      `of ${racers} different results under one key one is inserted, and conflicts with all others`,
      () =>
        eachRound((clients, round) =>
          Effect.gen(function* () {
            const key = Entries.keyOf(`round ${round}`)
            const raced = yield* race(clients, key, (racer) => ({ round, racer }))
            assert.deepStrictEqual(counts(raced), { Inserted: 1, Conflict: racers - 1 })
            yield* assertKept(clients, raced)
          })
        ),
      limitMs
    )

    it.live(
      `of ${racers} equal results under one key one is inserted, and its metadata stays`,
      () =>
        eachRound((clients, round) =>
          Effect.gen(function* () {
            const raced = yield* race(clients, Entries.keyOf(`round ${round}`), () => round)
            assert.deepStrictEqual(counts(raced), { Inserted: 1, ExistingSame: racers - 1 })
            yield* assertKept(clients, raced)
          })
        ),
      limitMs
    )
  })
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

type Clients = ReadonlyArray<StepCache["Service"]>

interface Raced {
  readonly entry: CacheEntry
  readonly outcome: PutOutcome
}

/** Servers of tests can be slow: a request of some takes several milliseconds. */
const limitMs = 300_000

/** All put at once. */
const race = Effect.fnUntraced(function* (
  clients: Clients,
  key: StepKey,
  resultOf: (racer: number) => Schema.Json
): Effect.fn.Return<ReadonlyArray<Raced>, CacheError> {
  const entries = yield* Effect.forEach(clients, (_, racer) =>
    Entries.entryOf(key, resultOf(racer), { by: `racer ${racer}` })
  )
  const start = yield* Latch.make(false)
  const puts = entries.map((entry, racer) =>
    start.whenOpen(Effect.map(clients[racer]!.put(entry), (outcome): Raced => ({ entry, outcome })))
  )
  const [raced] = yield* Effect.all([Effect.all(puts, { concurrency: "unbounded" }), start.open], {
    concurrency: "unbounded"
  })
  return raced
})

const counts = (raced: ReadonlyArray<Raced>): Readonly<Record<string, number>> =>
  raced.reduce<Record<string, number>>((sums, { outcome }) => {
    sums[outcome._tag] = (sums[outcome._tag] ?? 0) + 1
    return sums
  }, {})

/** Whoever lost was told the winner, and it is served to all. */
const assertKept = Effect.fnUntraced(function* (
  clients: Clients,
  raced: ReadonlyArray<Raced>
): Effect.fn.Return<void, CacheError> {
  const winner = raced.find(({ outcome }) => outcome._tag === "Inserted")!.entry
  for (const { outcome } of raced) {
    if (outcome._tag === "Conflict" || outcome._tag === "ExistingSame") assert.deepStrictEqual(outcome.entry, winner)
  }
  for (const entry of yield* served(clients, winner.key)) assert.deepStrictEqual(entry, winner)
})

const served = (clients: Clients, key: StepKey): Effect.Effect<ReadonlyArray<CacheEntry>, CacheError> =>
  Effect.forEach(
    clients,
    (client) =>
      Effect.map(client.get(key), (lookup) =>
        lookup._tag === "Hit" ? lookup.entry : assert.fail(`a miss: ${lookup.reason._tag}`)
      ),
    { concurrency: "unbounded" }
  )
