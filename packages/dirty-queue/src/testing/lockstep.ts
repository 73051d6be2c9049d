/**
 * Drives several tiers with the same random operations, and compares every answer and everything that can be read
 * after every step. A new tier joins by being passed along.
 *
 * @since 0.1.0
 */
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import * as Struct from "effect/Struct"
import * as TestClock from "effect/testing/TestClock"
import * as Clock from "effect/Clock"
import type { Changelog } from "../Changelog.ts"
import type { ChangelogError } from "../ChangelogError.ts"
import { type Claim, DirtyQueue, type DirtyQueueError, type DirtyQueueOptions } from "../DirtyQueue.ts"
import { Recorder, recorder } from "./fixture.ts"
import * as Operations from "./operations.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What a tier with transactions provides.
 *
 * @since 0.1.0
 * @category models
 */
export type Services = Changelog | DirtyQueue | DurableWriter

/**
 * What a tier without transactions provides.
 *
 * @since 0.1.0
 * @category models
 */
export type Unjoined = Recorder | DirtyQueue

/**
 * Where numbers that were drawn are not given back by a rollback, a tier provides this too: what it gives before a write
 * that is rolled back is run after it, so that all tiers go on with the same numbers.
 *
 * @since 0.1.0
 * @category services
 */
export class Counters extends Context.Service<Counters, Effect.Effect<Effect.Effect<void, SqlError>, SqlError>>()(
  "@strata/dirty-queue/testing/Counters"
) {}

/**
 * A tier to drive, over an empty store, with {@link options}.
 *
 * @since 0.1.0
 * @category models
 */
export interface Tier<E> {
  readonly name: string
  readonly layer: Layer.Layer<Services, E>
}

/**
 * A tier without transactions. It does the steps of a write one after the other, as nobody else is there, and leaves out
 * those of a write that the first tier takes back, which it cannot.
 *
 * @since 0.1.0
 * @category models
 */
export interface UnjoinedTier<E> {
  readonly name: string
  readonly unjoined: Layer.Layer<Unjoined, E>
}

/**
 * Tiers disagreed.
 *
 * @since 0.1.0
 * @category errors
 */
export class Mismatch extends Schema.TaggedError<Mismatch>("@strata/dirty-queue/testing/Mismatch")("Mismatch", {
  seed: Schema.Union([Schema.String, Schema.Finite]),
  step: Schema.Finite,
  operation: Schema.Unknown,
  what: Schema.Literals(["answer", "state"]),
  tiers: Schema.Record(Schema.String, Schema.Unknown)
}) {
  override get message(): string {
    return `Seed ${this.seed}, step ${this.step}: tiers differ in their ${this.what} after ${JSON.stringify(this.operation)}\n${Object.entries(
      this.tiers
    )
      .map(([name, value]) => `${name}: ${JSON.stringify(value, null, 1)}`)
      .join("\n")}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// driver
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Options of the queues: few attempts and short delays, so that rows get through all their states.
 *
 * @since 0.1.0
 * @category driver
 */
export const options: DirtyQueueOptions = {
  lease: "5 seconds",
  maxAttempts: 3,
  retryBase: "200 millis",
  retryCap: "1 second",
  minRetryInterval: "150 millis",
  backfillShare: 0.3
}

/**
 * Runs `operations` random steps under TestClock, and gives how often each kind of answer came. The same seed draws the
 * same steps. The first tier has transactions.
 *
 * @since 0.1.0
 * @category driver
 */
export const run = Effect.fnUntraced(function* <E>(config: {
  readonly tiers: readonly [Tier<E>, ...ReadonlyArray<Tier<E> | UnjoinedTier<E>>]
  readonly seed: string | number
  readonly operations: number
  /** After how many steps everything that can be read is compared; answers are after every one. Default 1. */
  readonly stateEvery?: number | undefined
}): Effect.fn.Return<ReadonlyMap<string, number>, E | SqlError | DirtyQueueError | Mismatch, Scope.Scope> {
  const drivers = yield* Effect.forEach(config.tiers, (tier) =>
    "unjoined" in tier
      ? Effect.map(Layer.build(tier.unjoined), (context) => toDriver(tier.name, context, undefined))
      : Effect.map(Layer.build(Layer.provideMerge(recorder, tier.layer)), (context) =>
          toDriver(tier.name, context, {
            writer: Context.get(context, DurableWriter),
            counters: Option.getOrElse(Context.getOption(context, Counters), () => Effect.succeed(Effect.void))
          })
        )
  )
  return yield* Random.withSeed(drive(drivers, config), config.seed)
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const drive = Effect.fnUntraced(function* (
  drivers: ReadonlyArray<Driver>,
  {
    operations,
    seed,
    stateEvery = 1
  }: { readonly seed: string | number; readonly operations: number; readonly stateEvery?: number | undefined }
) {
  const seen = new Map<string, number>()
  let seq = 0
  for (let step = 0; step < operations; step++) {
    const operation = yield* Operations.draw({
      claims: drivers[0]!.claims.length,
      now: yield* Clock.currentTimeMillis,
      seq
    })
    const compare = comparison(seed, step, operation)
    if (operation._tag === "wait") {
      yield* TestClock.adjust(operation.millis)
    }
    let first: Outcome | undefined
    const outcomes = yield* onEach(drivers, (driver) =>
      // Each tier draws the same retry delays.
      Effect.tap(Random.withSeed(execute(driver, operation, first), `${seed}/${step}`), (outcome) =>
        Effect.sync(() => (first ??= outcome))
      )
    )
    const answers = outcomes.map(([name, { answer }]) => [name, answer] as const)
    yield* compare("answer", answers)
    if ((step + 1) % stateEvery === 0 || step === operations - 1) {
      yield* compare("state", yield* onEach(drivers, (driver) => observe(driver, seq - 20)))
    }
    seq = (yield* drivers[0]!.changelog.read({ after: seq })).at(-1)?.seq ?? seq
    count(seen, operation, answers[0]?.[1])
  }
  return seen
})

const onEach = <A, E>(drivers: ReadonlyArray<Driver>, f: (driver: Driver) => Effect.Effect<A, E>) =>
  Effect.forEach(drivers, (driver) => Effect.map(f(driver), (value) => [driver.name, value] as const))

interface Driver {
  readonly name: string
  readonly queue: DirtyQueue["Service"]
  readonly changelog: Recorder["Service"]
  /** What it has of transactions. */
  readonly writes: Writes | undefined
  /** Every claim given out so far, in the same order on all tiers. */
  readonly claims: Array<Claim>
}

interface Writes {
  readonly writer: DurableWriter["Service"]
  readonly counters: Counters["Service"]
}

const toDriver = (name: string, context: Context.Context<Unjoined>, writes: Writes | undefined): Driver => ({
  name,
  queue: Context.get(context, DirtyQueue),
  changelog: Context.get(context, Recorder),
  writes,
  claims: []
})

interface Outcome {
  readonly answer: unknown
  /** Whether the write of the operation was taken back. */
  readonly rolledBack: boolean
}

const execute = (
  driver: Driver,
  operation: Operations.Operation,
  first: Outcome | undefined
): Effect.Effect<Outcome, SqlError> => {
  const { writes } = driver
  if (writes === undefined)
    return first?.rolledBack === true ? Effect.succeed(first) : done(answerOf(driver, operation))
  return operation._tag === "write"
    ? inOneWrite(driver, writes, operation)
    : done(writes.writer.write(answerOf(driver, operation)))
}

const done = Effect.map((answer: unknown): Outcome => ({ answer, rolledBack: false }))

/** Some tiers number their rows otherwise, in the same order. */
const withoutIds = (claims: ReadonlyArray<Claim>) => claims.map(Struct.omit(["id"]))

const answerOf = (driver: Driver, operation: Operations.Operation): Effect.Effect<unknown, SqlError> =>
  Effect.catchTag(perform(driver, operation), ["DirtyQueueError", "ChangelogError"], (error) =>
    Effect.succeed(error.reason._tag)
  )

const perform = (
  driver: Driver,
  operation: Operations.Operation
): Effect.Effect<unknown, SqlError | DirtyQueueError | ChangelogError> => {
  const { changelog, queue } = driver
  const claims = (indexes: ReadonlyArray<number>) => indexes.flatMap((index) => driver.claims[index] ?? [])
  switch (operation._tag) {
    case "record":
      return changelog.record(operation.changes)
    case "register":
      return queue.register(operation)
    case "unregister":
      return queue.unregister(operation)
    case "enqueue":
      return queue.enqueue(operation)
    case "claim":
      return Effect.map(queue.claim(operation), (claimed) => {
        driver.claims.push(...claimed)
        return withoutIds(claimed)
      })
    case "ack":
      return queue.ack(claims(operation.claims))
    case "fail":
      return queue.fail(
        claims(operation.claims).map((claim) => ({
          claim,
          error: `failed ${claim.path}`,
          kind: operation.kind,
          delay: operation.delay
        }))
      )
    case "release":
      return queue.release(claims(operation.claims), { delay: operation.delay })
    case "renew":
      return queue.renew(claims(operation.claims), { lease: operation.lease })
    case "revive":
      return queue.revive(operation)
    case "markServed":
      return queue.markServed(operation)
    case "prune":
      return changelog.prune(operation)
    case "newEpoch":
      return queue.newEpoch
    case "wait":
      return Effect.void
    case "write":
      return Effect.forEach(operation.steps, (step) => perform(driver, step))
  }
}

/** A write that is rolled back takes everything back, and the claims that it gave out are none. */
const inOneWrite = Effect.fnUntraced(function* (
  driver: Driver,
  { counters, writer }: Writes,
  operation: Extract<Operations.Operation, { readonly _tag: "write" }>
): Effect.fn.Return<Outcome, SqlError> {
  const before = driver.claims.length
  const giveBack = yield* counters
  const outcome = yield* writer
    .write(
      Effect.filterOrFail(
        perform(driver, operation),
        () => !operation.rollback,
        (answers) => ({ _tag: "RolledBack" as const, answers })
      )
    )
    .pipe(Effect.result)
  if (Result.isSuccess(outcome)) return { answer: outcome.success, rolledBack: false }
  driver.claims.length = before
  yield* giveBack
  if (outcome.failure._tag === "SqlError") return yield* outcome.failure
  const answer = outcome.failure._tag === "RolledBack" ? outcome.failure.answers : outcome.failure.reason._tag
  return { answer, rolledBack: true }
})

const observe = Effect.fnUntraced(function* (driver: Driver, after: number) {
  const { changelog, queue } = driver
  const version = yield* queue.currentVersion
  return {
    version,
    registrations: yield* queue.registrations(),
    entries: yield* changelog.read({ after, limit: 10_000 }),
    oldest: yield* changelog.read({ scope: Operations.scopes[0], limit: 5 }),
    rows: yield* queue.pending({ limit: 10_000 }),
    failing: yield* queue.failing({ limit: 3 }),
    dead: yield* queue.deadLetters({ scope: Operations.scopes[0], limit: 3 }),
    barrier: yield* queue.pending({ versionAtMost: version - 20, limit: 10_000 }),
    stats: yield* queue.stats(),
    ofScope: yield* queue.stats({ scope: Operations.scopes[1] }),
    nextReadyAt: Option.getOrUndefined(yield* queue.nextReadyAt({ follower: Operations.followers[0] })),
    readyScopes: yield* queue.readyScopes({ follower: Operations.followers[0]! })
  }
})

const comparison =
  (seed: string | number, step: number, operation: Operations.Operation) =>
  (what: "answer" | "state", tiers: ReadonlyArray<readonly [name: string, value: unknown]>) =>
    agree(tiers.map(([, value]) => value))
      ? Effect.void
      : Effect.fail(new Mismatch({ seed, step, operation, what, tiers: Object.fromEntries(differences(tiers)) }))

const agree = (values: ReadonlyArray<unknown>): boolean =>
  new Set(values.map((value) => JSON.stringify(value))).size === 1

/** Leaves out the parts of the state in which the tiers agree. */
const differences = (
  tiers: ReadonlyArray<readonly [name: string, value: unknown]>
): ReadonlyArray<readonly [name: string, value: unknown]> => {
  const states = tiers.map(([, value]) => value).filter(isRecord)
  return states.length < tiers.length
    ? tiers
    : tiers.map(([name], i) => [
        name,
        Object.fromEntries(Object.entries(states[i]!).filter(([part]) => !agree(states.map((state) => state[part]))))
      ])
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  Predicate.isObject(value) && !Array.isArray(value)

const count = (seen: Map<string, number>, operation: Operations.Operation, answer: unknown): void => {
  const kinds = Array.isArray(answer)
    ? answer.filter((item) => typeof item === "string")
    : [typeof answer === "string" ? answer : "ok"]
  for (const kind of kinds) {
    const key = `${operation._tag}:${kind}`
    seen.set(key, (seen.get(key) ?? 0) + 1)
  }
}
