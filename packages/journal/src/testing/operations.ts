/**
 * Random operations on a journal, as data: drawn once, and then run against every tier.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { StreamName } from "../StreamName.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * An event to be appended: an amount, a name, or a note that no fold knows.
 *
 * @since 0.1.0
 * @category models
 */
export interface DrawnEvent {
  readonly kind: "counted" | "named" | "note"
  readonly value: number
  readonly identity: string | undefined
}

/**
 * One step. A place in a stream is named by its distance from the last entry, in entries.
 *
 * @since 0.1.0
 * @category models
 */
export type Operation =
  | {
      readonly _tag: "append"
      readonly parts: ReadonlyArray<{ readonly stream: StreamName; readonly events: ReadonlyArray<DrawnEvent> }>
      readonly rollback: boolean
    }
  | { readonly _tag: "checkpoint"; readonly stream: StreamName; readonly back: number }
  | { readonly _tag: "compact"; readonly stream: StreamName; readonly back: number; readonly crash: boolean }
  | { readonly _tag: "rewind"; readonly stream: StreamName; readonly back: number; readonly crash: boolean }
  | { readonly _tag: "follow"; readonly stream: StreamName | undefined }
  | { readonly _tag: "fold"; readonly stream: StreamName; readonly back: number }

// ---------------------------------------------------------------------------------------------------------------------
// drawing
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Names in an order that UTF-16 gets wrong.
 *
 * @since 0.1.0
 * @category names
 */
export const streams = ["run/1", "run/😀", "run/\ufffd"].map((name) => StreamName.make(name))

/**
 * The next operation.
 *
 * @since 0.1.0
 * @category drawing
 */
export const draw: Effect.Effect<Operation> = Effect.map(Random.Random, (random) => {
  const below = (limit: number) => Math.floor(random.nextDoubleUnsafe() * limit)
  const chance = (probability: number) => random.nextDoubleUnsafe() < probability
  const pick = <A>(items: ReadonlyArray<A>): A => items[below(items.length)]!
  const list = <A>(length: number, item: () => A): ReadonlyArray<A> => Array.from({ length }, item)

  const event = (): DrawnEvent => ({
    kind: pick(["counted", "counted", "named", "note"] as const),
    value: below(4),
    identity: chance(0.2) ? `identity-${below(12)}` : undefined
  })
  const stream = pick(streams)
  const draws: ReadonlyArray<readonly [weight: number, operation: () => Operation]> = [
    [
      50,
      () => ({
        _tag: "append",
        parts: list(1 + below(2), () => ({ stream: pick(streams), events: list(1 + below(5), event) })),
        rollback: chance(0.15)
      })
    ],
    [6, () => ({ _tag: "checkpoint", stream, back: below(12) - 1 })],
    [6, () => ({ _tag: "compact", stream, back: below(14) - 1, crash: chance(0.3) })],
    [10, () => ({ _tag: "rewind", stream, back: below(8), crash: chance(0.2) })],
    [12, () => ({ _tag: "follow", stream: chance(0.4) ? undefined : stream })],
    [10, () => ({ _tag: "fold", stream, back: below(10) - 1 })]
  ]
  let rest = below(draws.reduce((sum, [weight]) => sum + weight, 0))
  for (const [weight, operation] of draws) {
    if (rest < weight) return operation()
    rest -= weight
  }
  return { _tag: "fold", stream, back: 0 }
})
