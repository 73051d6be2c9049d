/**
 * Random operations on a changelog and a queue, as data: drawn once, and then run against every tier.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { Change } from "../Changelog.ts"
import { FollowerName, Path, Scope } from "../Path.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * One step. Claims are named by their place in the list of all claims that the run was given so far.
 *
 * @since 0.1.0
 * @category models
 */
export type Operation =
  | { readonly _tag: "record"; readonly changes: ReadonlyArray<Change> }
  | { readonly _tag: "register"; readonly follower: FollowerName; readonly scope: Scope; readonly prefix: string }
  | { readonly _tag: "unregister"; readonly follower: FollowerName; readonly scope: Scope }
  | {
      readonly _tag: "enqueue"
      readonly follower: FollowerName
      readonly scope: Scope
      readonly paths: ReadonlyArray<Path>
    }
  | {
      readonly _tag: "claim"
      readonly follower: FollowerName
      readonly scope: Scope
      readonly limit: number
      readonly lease: number | undefined
    }
  | { readonly _tag: "ack"; readonly claims: ReadonlyArray<number> }
  | {
      readonly _tag: "fail"
      readonly claims: ReadonlyArray<number>
      readonly kind: "retry" | "dead"
      readonly delay: number | undefined
    }
  | { readonly _tag: "release"; readonly claims: ReadonlyArray<number>; readonly delay: number | undefined }
  | { readonly _tag: "renew"; readonly claims: ReadonlyArray<number>; readonly lease: number | undefined }
  | {
      readonly _tag: "revive"
      readonly follower: FollowerName | undefined
      readonly scope: Scope | undefined
      readonly prefix: string | undefined
      readonly path: Path | undefined
    }
  | { readonly _tag: "markServed"; readonly follower: FollowerName; readonly scope: Scope }
  | {
      readonly _tag: "prune"
      readonly before: { readonly time: number } | { readonly seq: number }
      readonly scope: Scope | undefined
      readonly prefix: string
      readonly limit: number
    }
  | { readonly _tag: "newEpoch" }
  | { readonly _tag: "wait"; readonly millis: number }
  /** Steps in one write, which then fails or not. */
  | { readonly _tag: "write"; readonly steps: ReadonlyArray<Operation>; readonly rollback: boolean }

/**
 * What the next operation is drawn with.
 *
 * @since 0.1.0
 * @category models
 */
export interface Situation {
  /** How many claims there are to answer. */
  readonly claims: number
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Sequence number recorded last. */
  readonly seq: number
}

// ---------------------------------------------------------------------------------------------------------------------
// names
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Few enough to meet each other often.
 *
 * @since 0.1.0
 * @category names
 */
export const followers = ["search", "thumbnails", "😀"].map((name) => FollowerName.make(name))

/**
 * @since 0.1.0
 * @category names
 */
export const scopes = ["one", "two"].map((name) => Scope.make(name))

/**
 * Paths and prefixes that wildcards, case folding, normalization and UTF-16 order get wrong.
 *
 * @since 0.1.0
 * @category names
 */
export const paths = [
  "a",
  "a/b",
  "a_b/",
  "a_b/1",
  "a_b/😀.md",
  "aXb/1",
  "A_B/1",
  "a_b2/1",
  "a%b/1",
  "d/1",
  "d0",
  "é",
  "e\u0301",
  "\ud7ff",
  "\ue000",
  "\ufffd",
  "\ufffd/1",
  "😀",
  "😀/1",
  "\u{10ffff}"
].map((path) => Path.make(path))

/**
 * @since 0.1.0
 * @category names
 */
export const prefixes = ["", "", "a_b/", "a", "d/", "😀", "\ufffd", "a%"]

// ---------------------------------------------------------------------------------------------------------------------
// drawing
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The next operation.
 *
 * @since 0.1.0
 * @category drawing
 */
export const draw = (situation: Situation): Effect.Effect<Operation> =>
  Effect.map(Random.Random, (random) => drawWith(dice(random), situation, true))

interface Dice {
  readonly below: (limit: number) => number
  readonly pick: <A>(items: ReadonlyArray<A>) => A
  readonly chance: (probability: number) => boolean
  readonly maybe: <A>(probability: number, item: () => A) => A | undefined
  readonly list: <A>(length: number, item: () => A) => ReadonlyArray<A>
}

const dice = (random: { readonly nextDoubleUnsafe: () => number }): Dice => {
  const below = (limit: number) => Math.floor(random.nextDoubleUnsafe() * limit)
  const chance = (probability: number) => random.nextDoubleUnsafe() < probability
  return {
    below,
    chance,
    pick: (items) => items[below(items.length)]!,
    maybe: (probability, item) => (chance(probability) ? item() : undefined),
    list: (length, item) => Array.from({ length }, item)
  }
}

const drawWith = (dice: Dice, situation: Situation, outer: boolean): Operation => {
  const draws = weighted(dice, situation, outer)
  let rest = dice.below(draws.reduce((sum, [weight]) => sum + weight, 0))
  for (const [weight, operation] of draws) {
    if (rest < weight) return operation()
    rest -= weight
  }
  return { _tag: "wait", millis: 1 }
}

const weighted = (
  dice: Dice,
  situation: Situation,
  outer: boolean
): ReadonlyArray<readonly [weight: number, operation: () => Operation]> => {
  const target = () => ({ follower: dice.pick(followers), scope: dice.pick(scopes) })
  const answers = situation.claims > 0 ? 1 : 0
  /** Mostly late claims, which are mostly still good, and sometimes the same one twice. */
  const some = () =>
    dice.list(1 + dice.below(4), () =>
      dice.chance(0.8) ? Math.max(situation.claims - 1 - dice.below(12), 0) : dice.below(situation.claims)
    )
  return [
    [22, () => ({ _tag: "record", changes: dice.list(1 + dice.below(6), () => drawChange(dice)) })],
    [6, () => ({ _tag: "enqueue", ...target(), paths: dice.list(1 + dice.below(6), () => dice.pick(paths)) })],
    [
      20,
      () => ({
        _tag: "claim",
        ...target(),
        limit: dice.below(7),
        lease: dice.maybe(0.4, () => 1 + dice.below(2000))
      })
    ],
    [12 * answers, () => ({ _tag: "ack", claims: some() })],
    [
      12 * answers,
      () => ({
        _tag: "fail",
        claims: some(),
        kind: dice.chance(0.3) ? "dead" : "retry",
        delay: dice.maybe(0.3, () => dice.below(3000))
      })
    ],
    [6 * answers, () => ({ _tag: "release", claims: some(), delay: dice.maybe(0.3, () => dice.below(1000)) })],
    [5 * answers, () => ({ _tag: "renew", claims: some(), lease: dice.maybe(0.5, () => 1 + dice.below(3000)) })],
    [
      8,
      () => ({
        _tag: "revive",
        follower: dice.maybe(0.5, () => dice.pick(followers)),
        scope: dice.maybe(0.5, () => dice.pick(scopes)),
        prefix: dice.maybe(0.3, () => dice.pick(prefixes)),
        path: dice.maybe(0.2, () => dice.pick(paths))
      })
    ],
    [4, () => ({ _tag: "register", ...target(), prefix: dice.pick(prefixes) })],
    [1, () => ({ _tag: "unregister", ...target() })],
    [3, () => ({ _tag: "markServed", ...target() })],
    [
      2,
      () => ({
        _tag: "prune",
        before: dice.chance(0.5) ? { time: situation.now - dice.below(5000) } : { seq: situation.seq - dice.below(10) },
        scope: dice.maybe(0.5, () => dice.pick(scopes)),
        prefix: dice.pick(prefixes),
        limit: 1 + dice.below(20)
      })
    ],
    [outer ? 14 : 0, () => ({ _tag: "wait", millis: dice.chance(0.8) ? dice.below(400) : dice.below(40_000) })],
    [
      outer ? 8 : 0,
      () => ({
        _tag: "write",
        steps: dice.list(1 + dice.below(4), () => drawWith(dice, situation, false)),
        rollback: dice.chance(0.6)
      })
    ],
    [outer && dice.chance(0.02) ? 10 : 0, () => ({ _tag: "newEpoch" })]
  ]
}

const drawChange = (dice: Dice): Change => {
  const target = { scope: dice.pick(scopes), path: dice.pick(paths) }
  const mtime = dice.maybe(0.5, () => dice.below(1_000_000))
  return dice.chance(0.3)
    ? { op: "delete", ...target, mtime }
    : { op: "put", ...target, cid: dice.maybe(0.5, () => `cid-${dice.below(10)}`), mtime }
}
