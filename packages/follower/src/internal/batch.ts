import type { Answer, Claim, DirtyQueueError } from "@strata/dirty-queue/DirtyQueue"
import type { FollowerName, Path, Scope } from "@strata/dirty-queue/Path"
import { afterCommit, type DurableWriter } from "@strata/durable/DurableWriter"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type { SqlError } from "effect/sql/SqlError"
import type { FollowerOptions } from "../Follower.ts"
import type * as IndexWriter from "../IndexWriter.ts"
import type { ProcessingError } from "../ProcessingError.ts"
import * as Tick from "../Tick.ts"
import { derive, type Derived } from "./derive.ts"
import type { Pause } from "./pause.ts"

/** Claims up to `limit` ready paths of a scope and settles each of them. */
export type Run = (scope: Scope, limit: number) => Effect.Effect<Tick.Tick, SqlError | DirtyQueueError>

interface Options<A> extends FollowerOptions<A> {
  readonly name: FollowerName
  readonly durable: DurableWriter["Service"]
  readonly pause: Pause
}

type Failed<A> = Extract<Derived<A>, { readonly _tag: "Failed" }>
type Settled<A> = Exclude<Derived<A>, Failed<A>>

export const make = <A>(options: Options<A>): Run => {
  const work = processClaims(options)
  const { queue } = options
  return (scope, limit) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(queue.claim({ follower: options.name, scope, limit, lease: options.lease }), (claims) =>
        claims.length === 0
          ? Effect.succeed(Tick.empty)
          : restore(keepLease(options, claims, work(scope, claims))).pipe(
              // What was settled already answers `Lost`, so everything can be given back.
              Effect.onExit((exit) =>
                Exit.isSuccess(exit) ? Effect.void : Effect.ignore(queue.release(claims), { log: true })
              )
            )
      )
    )
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Renews the lease while `work` goes on. A renewal that fails leaves the row to the guards of its settlement. */
const keepLease = <A, B, E, R>(
  options: Options<A>,
  claims: ReadonlyArray<Claim>,
  work: Effect.Effect<B, E, R>
): Effect.Effect<B, E, R> => {
  const third = Duration.toMillis(Duration.fromInputUnsafe(options.lease ?? "30 seconds")) / 3
  const renewals = Effect.ignore(options.queue.renew(claims, { lease: options.lease }), { log: true }).pipe(
    Effect.delay(third),
    Effect.repeat(Schedule.forever),
    Effect.andThen(Effect.never)
  )
  return Effect.raceFirst(work, renewals)
}

/** Settles claims in portions: what is derived is kept in memory until its portion is committed. */
const processClaims = <A>(options: Options<A>) => {
  const fail = settleFailures(options)
  const apply = applyDerived(options, fail)
  const takePortion = portions(options)
  return Effect.fnUntraced(function* (scope: Scope, claims: ReadonlyArray<Claim>) {
    const held = yield* Effect.result(
      Effect.all([heldDigests(options, scope, claims), heldWeights(options, scope, claims)])
    )
    if (Result.isFailure(held)) {
      // The index could not be asked, so nothing can be said about any of these paths.
      return held.failure._tag === "ProcessingError"
        ? yield* fail(claims.map(failedWith<A>(held.failure)))
        : yield* held.failure
    }
    const [digests, weights] = held.success
    let tick = Tick.empty
    let left: Left<A> = { claims, derived: [] }
    while (left.claims.length + left.derived.length > 0) {
      const [portion, rest] = yield* takePortion(left, digests, weights)
      left = rest
      tick = Tick.add(tick, yield* fail(portion.filter(isFailed)))
      tick = Tick.add(tick, yield* apply(scope, portion.filter(isSettled)))
    }
    return tick
  })
}

/** What is not settled yet: the first of it derived, as it did not fit into the portion before. */
interface Left<A> {
  readonly derived: ReadonlyArray<Derived<A>>
  readonly claims: ReadonlyArray<Claim>
}

/** Takes the next portion, at least one path and then as many as fit, and tells what is left. */
const portions = <A>(options: Options<A>) => {
  const concurrency = options.concurrency ?? 8
  const { maxWeight, weigh } = options
  const isBounded = weigh !== undefined && maxWeight !== undefined
  const limit = isBounded ? maxWeight : Infinity
  const width = isBounded ? concurrency : Infinity
  const weightOf = (item: Derived<A>, held: ReadonlyMap<Path, number>): number => {
    if (weigh === undefined || item._tag === "Unchanged" || item._tag === "Failed") return 0
    return (held.get(item.claim.path) ?? 0) + (item._tag === "Upsert" ? weigh(item.value) : 0)
  }
  return Effect.fnUntraced(function* (
    left: Left<A>,
    digests: ReadonlyMap<Path, string> | undefined,
    weights: ReadonlyMap<Path, number>
  ): Effect.fn.Return<readonly [portion: ReadonlyArray<Derived<A>>, left: Left<A>]> {
    const one = derive(options.reader, digests)
    const portion: Array<Derived<A>> = []
    let { claims, derived } = left
    let taken = 0
    let weight = 0
    while (taken < derived.length || claims.length > 0) {
      if (taken === derived.length) {
        derived = yield* Effect.forEach(claims.slice(0, width), one, { concurrency })
        claims = claims.slice(width)
        taken = 0
      }
      const item = derived[taken]!
      weight += weightOf(item, weights)
      if (weight > limit && portion.length > 0) break
      portion.push(item)
      taken++
    }
    return [portion, { claims, derived: derived.slice(taken) }]
  })
}

const heldDigests = <A>(options: Options<A>, scope: Scope, claims: ReadonlyArray<Claim>) =>
  options.writer.digests === undefined
    ? Effect.succeed(undefined)
    : options.writer.digests(
        scope,
        claims.map((claim) => claim.path)
      )

const heldWeights = <A>(options: Options<A>, scope: Scope, claims: ReadonlyArray<Claim>) =>
  options.writer.weights === undefined || options.maxWeight === undefined
    ? Effect.succeed(new Map<Path, number>())
    : options.writer.weights(
        scope,
        claims.map((claim) => claim.path)
      )

/**
 * Brings the index to what was derived and acknowledges it. When the index refuses a batch, halves of it are tried, so
 * that one path which cannot be indexed fails alone.
 */
const applyDerived = <A>(
  options: Options<A>,
  fail: (failed: ReadonlyArray<Failed<A>>) => Effect.Effect<Tick.Tick, SqlError>
) => {
  const commit =
    options.writer.mode === "transactional"
      ? commitTransactional(options, options.writer)
      : commitIdempotent(options, options.writer)
  const apply = (
    scope: Scope,
    derived: ReadonlyArray<Settled<A>>
  ): Effect.Effect<Tick.Tick, SqlError | DirtyQueueError> => {
    if (derived.length === 0) return Effect.succeed(Tick.empty)
    return commit(scope, derived).pipe(
      Effect.tap(options.pause.end),
      Effect.map((answers) => count(derived, answers)),
      Effect.catchTag("ProcessingError", (error) => {
        if (error.reason._tag === "Busy" || derived.length === 1) {
          return fail(derived.map(({ claim }) => failedWith<A>(error)(claim)))
        }
        const middle = derived.length >> 1
        return Effect.zipWith(apply(scope, derived.slice(0, middle)), apply(scope, derived.slice(middle)), Tick.add)
      })
    )
  }
  return apply
}

/**
 * Index, digests and acknowledgement in one write. The acknowledgement comes first, as it tells which claims have
 * passed to another worker, whose newer content must not be overwritten.
 */
const commitTransactional = <A>(options: Options<A>, writer: IndexWriter.Transactional<A>) => {
  const { durable, queue } = options
  return (scope: Scope, derived: ReadonlyArray<Settled<A>>) =>
    durable.write(
      Effect.gen(function* () {
        const answers = yield* queue.ack(derived.map(({ claim }) => claim))
        const batch = toBatch(
          options.name,
          scope,
          derived.filter((_, i) => answers[i] !== "Lost")
        )
        if (batch.upserts.length + batch.removals.length > 0) {
          yield* writer.write(batch)
          yield* afterCommit(invalidate(options.name, scope))
        }
        return answers
      })
    )
}

/**
 * The index first, the acknowledgement after it: a crash in between repeats the batch with the same keys. The lease is
 * made sure of before the write, so that a worker which lost it does not write behind the back of the one that has it.
 */
const commitIdempotent = <A>(options: Options<A>, writer: IndexWriter.Idempotent<A>) => {
  const { queue } = options
  return Effect.fnUntraced(function* (scope: Scope, derived: ReadonlyArray<Settled<A>>) {
    const claims = derived.map(({ claim }) => claim)
    const leases = yield* queue.renew(claims, { lease: options.lease })
    const held = derived.filter((_, i) => leases[i] === "Done")
    const batch = toBatch(options.name, scope, held)
    if (batch.upserts.length + batch.removals.length > 0) {
      yield* writer.write(batch)
      yield* invalidate(options.name, scope)
    }
    return yield* queue.ack(claims)
  })
}

/** Retries, sets aside or gives back the paths that failed, by the reason of each. */
const settleFailures = <A>(options: Options<A>) => {
  const { pause, queue } = options
  return Effect.fnUntraced(function* (failed: ReadonlyArray<Failed<A>>) {
    const busy = failed.filter(({ error }) => error.reason._tag === "Busy")
    const faulty = failed.filter(({ error }) => error.reason._tag !== "Busy")
    if (busy.length > 0) {
      const delay = yield* pause.begin
      yield* Effect.logWarning("A follower pauses", busy[0]!.error).pipe(
        Effect.annotateLogs({ follower: options.name, pauseMs: delay })
      )
      yield* queue.release(
        busy.map(({ claim }) => claim),
        { delay }
      )
    }
    if (faulty.length > 0) {
      yield* queue.fail(
        faulty.map(({ claim, error }) => ({
          claim,
          error: error.message,
          kind: error.reason._tag === "Poison" ? "dead" : "retry"
        }))
      )
    }
    return { ...Tick.empty, scanned: failed.length, failed: faulty.length }
  })
}

const isFailed = <A>(derived: Derived<A>): derived is Failed<A> => derived._tag === "Failed"

const isSettled = <A>(derived: Derived<A>): derived is Settled<A> => derived._tag !== "Failed"

const failedWith =
  <A>(error: ProcessingError) =>
  (claim: Claim): Derived<A> & Failed<A> => ({ _tag: "Failed", claim, error })

const toBatch = <A>(follower: FollowerName, scope: Scope, derived: ReadonlyArray<Settled<A>>): IndexWriter.Batch<A> => {
  const upserts: Array<IndexWriter.Upsert<A>> = []
  const removals: Array<IndexWriter.Removal> = []
  for (const item of derived) {
    if (item._tag === "Unchanged") continue
    const { path, version } = item.claim
    const idempotencyKey = `${follower}/${scope}/${path}@${version}`
    if (item._tag === "Removal") {
      removals.push({ path, idempotencyKey })
    } else {
      upserts.push({ path, digest: item.digest, value: item.value, idempotencyKey })
    }
  }
  return { scope, upserts, removals }
}

const count = <A>(derived: ReadonlyArray<Settled<A>>, answers: ReadonlyArray<Answer>): Tick.Tick => {
  let processed = 0
  let noop = 0
  derived.forEach((item, i) => {
    // What was lost is another worker's to count.
    if (answers[i] === "Lost") return
    if (item._tag === "Upsert") processed++
    else noop++
  })
  return { ...Tick.empty, scanned: derived.length, processed, noop, advanced: processed + noop > 0 }
}

/** Tells reactive queries in this process that the index of a scope has changed. */
const invalidate = (follower: FollowerName, scope: Scope): Effect.Effect<void> =>
  Effect.flatMap(
    Effect.serviceOption(Reactivity.Reactivity),
    Option.match({
      onNone: () => Effect.void,
      onSome: (reactivity) => reactivity.invalidate({ [follower]: [scope] })
    })
  )
