/**
 * What can go wrong with an operation: it fails, is slow, hangs, or what it carries is cut off, altered or false. Faults
 * are plain values; `Faults` makes the operations of a service have them.
 *
 * The *content* of an operation is the stream of bytes, or the bytes, that it is given; without one, those that it gives.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * When a failure strikes, or a hang begins:
 *
 * - `before`: nothing of the operation is done.
 * - `after`: it is done, and only its answer is lost, as when a connection breaks behind a COMMIT.
 * - a number: when that many bytes of its content have passed; elements that are no bytes count as 1.
 *
 * @since 0.1.0
 * @category models
 */
export type Moment = "before" | "after" | number

/**
 * A fault of an operation that fails with `E` and answers with `A`.
 *
 * @since 0.1.0
 * @category models
 */
export type Fault<E, A> =
  | { readonly _tag: "Fail"; readonly error: E; readonly at: Moment }
  | { readonly _tag: "Die"; readonly defect: unknown }
  | { readonly _tag: "Hang"; readonly at: Moment }
  | { readonly _tag: "Delay"; readonly duration: Duration.Input }
  | { readonly _tag: "Truncate"; readonly length: number }
  | { readonly _tag: "Corrupt" }
  | { readonly _tag: "Answer"; alter(answer: A): A }

/**
 * A call of an operation. `nth` counts the calls of this operation, from 1.
 *
 * @since 0.1.0
 * @category models
 */
export interface Call {
  readonly operation: string
  readonly nth: number
}

/**
 * Which calls have a fault.
 *
 * @since 0.1.0
 * @category models
 */
export type When =
  | { readonly _tag: "Always" }
  | { readonly _tag: "Between"; readonly from: number; readonly to: number }
  | { readonly _tag: "Every"; readonly n: number }
  | { readonly _tag: "Chance"; readonly probability: number }

// ---------------------------------------------------------------------------------------------------------------------
// faults
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Fails, by default `before` anything is done.
 *
 * @since 0.1.0
 * @category faults
 */
export const fail = <E>(error: E, at: Moment = "before"): Fault<E, never> => ({ _tag: "Fail", error, at })

/**
 * Dies: the operation has a bug.
 *
 * @since 0.1.0
 * @category faults
 */
export const die = (defect: unknown): Fault<never, never> => ({ _tag: "Die", defect })

/**
 * Never ends, by default `before` anything is done. It can be interrupted.
 *
 * @since 0.1.0
 * @category faults
 */
export const hang = (at: Moment = "before"): Fault<never, never> => ({ _tag: "Hang", at })

/**
 * Begins later.
 *
 * @since 0.1.0
 * @category faults
 */
export const delay = (duration: Duration.Input): Fault<never, never> => ({ _tag: "Delay", duration })

/**
 * Content ends after `length` bytes, without an error.
 *
 * @since 0.1.0
 * @category faults
 */
export const truncate = (length: number): Fault<never, never> => ({ _tag: "Truncate", length })

/**
 * One bit of the content is flipped; its size stays. Empty content has none to flip, and stays too.
 *
 * @since 0.1.0
 * @category faults
 */
export const corrupt: Fault<never, never> = { _tag: "Corrupt" }

/**
 * The operation is done, and answers with something else.
 *
 * @since 0.1.0
 * @category faults
 */
export const answer = <A>(alter: (answer: A) => A): Fault<never, A> => ({ _tag: "Answer", alter })

// ---------------------------------------------------------------------------------------------------------------------
// schedules
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category schedules
 */
export const always: When = { _tag: "Always" }

/**
 * @since 0.1.0
 * @category schedules
 */
export const nth = (n: number): When => ({ _tag: "Between", from: n, to: n })

/**
 * @since 0.1.0
 * @category schedules
 */
export const first = (n: number): When => ({ _tag: "Between", from: 1, to: n })

/**
 * @since 0.1.0
 * @category schedules
 */
export const afterFirst = (n: number): When => ({ _tag: "Between", from: n + 1, to: Number.POSITIVE_INFINITY })

/**
 * @since 0.1.0
 * @category schedules
 */
export const every = (n: number): When => ({ _tag: "Every", n })

/**
 * By chance, from 0 to 1. The seed of `Faults` and the number of the call decide, so that a run can be repeated whatever
 * else goes on.
 *
 * @since 0.1.0
 * @category schedules
 */
export const chance = (probability: number): When => ({ _tag: "Chance", probability })
