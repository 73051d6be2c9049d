/**
 * Measures one way of doing something against others. The contenders of a case
 * run in turn, in an order that is reversed in every second round, so that what
 * the machine does beside (other load, heat, a filling disk) falls on all of
 * them alike. One round of warm-up is discarded.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * One run, with its set-up: gives the value that was measured, or many of them to a case that has a `quantile`. Its scope
 * is closed, and its files removed, after it.
 */
export type Run = Effect.Effect<number | ReadonlyArray<number>, unknown, Scope.Scope>

/** What is measured against what. */
export interface Contenders {
  readonly ours: Run
  readonly rivals: Readonly<Record<string, Run>>
}

/** A case: ours and its rivals, measured in one unit. */
export interface Case {
  readonly name: string
  /** One line on what is measured and under which settings, the same for all contenders. */
  readonly about: string
  readonly unit: string
  readonly better: "higher" | "lower"
  /** Set-up that all runs of the case share, for as long as the case is measured. */
  readonly contenders: Effect.Effect<Contenders, unknown, Scope.Scope>
  /** For a case whose set-up takes long: no more rounds than these. */
  readonly maxRounds?: number
  /** For a case that says little in a few rounds: no fewer than these. */
  readonly minRounds?: number
  /**
   * What is compared, from 0 to 1, as 0.99 for the p99: that of the values of all rounds, pooled. Without it, the median
   * of the rounds.
   */
  readonly quantile?: number
}

export interface Bench {
  readonly name: string
  readonly cases: ReadonlyArray<Case>
}

/** Median of the values of all rounds, or their quantile, with the least and greatest of the rounds. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** Ours against one rival. A `ratio` above 1 means that ours is better, whatever the unit. */
export interface Figure {
  readonly bench: string
  readonly case: string
  readonly about: string
  readonly unit: string
  readonly rival: string
  readonly runs: number
  readonly ours: Spread
  readonly theirs: Spread
  readonly ratio: number
}

/** A rival that cannot run on this machine, as one that is not installed. */
export class Unavailable extends Schema.TaggedError<Unavailable>("@strata/bench/Unavailable")("Unavailable", {
  what: Schema.String,
  cause: Schema.Defect()
}) {}

/** A rival that was left out, and why. */
export interface Skipped {
  readonly bench: string
  readonly case: string
  readonly rival: string
  readonly reason: string
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Measures a case over `rounds` rounds. A rival that is unavailable is skipped; any other failure ends the bench.
 *
 * In the scope of the caller is kept what the runs of the case share.
 */
export const measure = Effect.fnUntraced(function* (bench: string, self: Case, rounds: number) {
  const { ours, rivals } = yield* self.contenders
  const mine: Contender = { name: "ours", run: ours, values: [] }
  yield* once(ours)
  const { available, skipped } = yield* warmUp(bench, self.name, rivals)
  const contenders = [mine, ...available]
  const runs = Math.max(Math.min(rounds, self.maxRounds ?? rounds), self.minRounds ?? 1)
  for (let round = 0; round < runs; round++) {
    for (const { run, values } of round % 2 === 0 ? contenders : contenders.toReversed()) {
      values.push([yield* once(run)].flat())
    }
  }
  const figures = available.map((rival) => figure(bench, self, runs, mine, rival))
  return { figures, skipped }
})

/** Runs `effect` and gives the milliseconds it took. */
export const timed = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<number, E, R> =>
  Effect.gen(function* () {
    const start = yield* Clock.monotonicTimeNanos
    yield* effect
    return Number((yield* Clock.monotonicTimeNanos) - start) / 1e6
  })

/** A folder that is removed with the scope, on the disk of this repository: a temporary directory may be in memory. */
export const temporaryFolder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => {
    const parent = fileURLToPath(new URL("../../node_modules/.cache/strata-bench/", import.meta.url))
    mkdirSync(parent, { recursive: true })
    return mkdtempSync(join(parent, "run-"))
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** Loads a rival's package, or fails with {@link Unavailable}. */
export const load = <A>(what: string, module: () => Promise<A>): Effect.Effect<A, Unavailable> =>
  Effect.tryPromise({ try: module, catch: (cause) => new Unavailable({ what, cause }) })

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

interface Contender {
  readonly name: string
  readonly run: Run
  /** By round. */
  readonly values: Array<ReadonlyArray<number>>
}

const once = (run: Run): Effect.Effect<number | ReadonlyArray<number>, unknown> => Effect.scoped(run)

const warmUp = Effect.fnUntraced(function* (bench: string, name: string, rivals: Contenders["rivals"]) {
  const available: Array<Contender> = []
  const skipped: Array<Skipped> = []
  for (const [rival, run] of Object.entries(rivals)) {
    const result = yield* Effect.result(once(run))
    if (Result.isSuccess(result)) {
      available.push({ name: rival, run, values: [] })
    } else if (result.failure instanceof Unavailable) {
      skipped.push({ bench, case: name, rival, reason: reason(result.failure) })
    } else {
      return yield* Effect.fail(result.failure)
    }
  }
  return { available, skipped }
})

const figure = (bench: string, self: Case, runs: number, mine: Contender, rival: Contender): Figure => {
  const ours = spread(mine.values, self.quantile)
  const theirs = spread(rival.values, self.quantile)
  return {
    bench,
    case: self.name,
    about: self.about,
    unit: self.unit,
    rival: rival.name,
    runs,
    ours,
    theirs,
    ratio: self.better === "higher" ? ours.median / theirs.median : theirs.median / ours.median
  }
}

const spread = (rounds: ReadonlyArray<ReadonlyArray<number>>, quantile = 0.5): Spread => {
  const of = quantileOf(quantile)
  const each = rounds.map(of)
  return { median: of(rounds.flat()), min: Math.min(...each), max: Math.max(...each) }
}

/** Between two values, where the quantile falls between them. */
const quantileOf =
  (quantile: number) =>
  (values: ReadonlyArray<number>): number => {
    const sorted = values.toSorted((a, b) => a - b)
    const at = (sorted.length - 1) * quantile
    const [below, above] = [sorted[Math.floor(at)]!, sorted[Math.ceil(at)]!]
    return below + (above - below) * (at - Math.floor(at))
  }

const reason = (error: Unavailable): string =>
  `${error.what}: ${Cause.pretty(Cause.fail(error.cause)).split("\n", 1)[0]}`
