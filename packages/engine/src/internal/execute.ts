import { type Artifact, type CacheEntry, Recording } from "@strata/cache/CacheEntry"
import type { CacheError } from "@strata/cache/CacheError"
import type { MissReason } from "@strata/cache/Lookup"
import { type PutOutcome, StepCache } from "@strata/cache/StepCache"
import type { StepKey } from "@strata/cache/StepKey"
import { DurableWriter, insideTransaction } from "@strata/durable/DurableWriter"
import { Journal } from "@strata/journal/Journal"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import type { Outcome, RunOptions, Services } from "../Action.ts"
import { ActionError, Conflict, InsideWrite, Recursive, SuccessInvalid } from "../ActionError.ts"
import * as ActionEvents from "../ActionEvents.ts"
import * as Artifacts from "../Artifacts.ts"
import * as Metrics from "../Metrics.ts"
import { Recorder } from "../Recorder.ts"
import type { Definition, Encoded, Keyed } from "./definition.ts"
import { issuePaths } from "./issuePaths.ts"
import * as SingleFlight from "./singleFlight.ts"

/** Looks up, else runs and commits; see `Action`. */
export const execute = <I, A, E, R>(definition: Definition<I, A, E, R>) => {
  const lookupOrRun = makeLookupOrRun(definition)
  const runUncached = makeRunUncached(definition)
  const { name } = definition.options
  return Effect.fnUntraced(function* (
    input: I,
    options: RunOptions
  ): Effect.fn.Return<Outcome<A>, E | ActionError, Exclude<R, Artifacts.Artifacts> | Services> {
    if (yield* insideTransaction) return yield* definition.fail(new InsideWrite({}))
    const keyed = yield* definition.keyed(input)
    const { key } = keyed
    yield* Effect.annotateCurrentSpan("key", key)
    if (options.bypass === true) return yield* runUncached(keyed)
    return yield* SingleFlight.run({
      flights: SingleFlight.of(yield* StepCache),
      key,
      fresh: options.refresh === true,
      effect: lookupOrRun(keyed, options.refresh === true),
      onJoin: Metrics.joined(name),
      recursive: () => definition.fail(new Recursive({}))
    })
  })
}

// ---------------------------------------------------------------------------------------------------------------------
// decisions
// ---------------------------------------------------------------------------------------------------------------------

const makeLookupOrRun = <I, A, E, R>(definition: Definition<I, A, E, R>) => {
  const lookup = makeLookup(definition)
  const runBody = makeRunBody(definition)
  const settle = makeSettle(definition)
  const { cacheable, name } = definition.options
  return (
    keyed: Keyed<I>,
    refresh: boolean
  ): Effect.Effect<Outcome<A>, E | ActionError, Exclude<R, Artifacts.Artifacts> | Services> =>
    Effect.gen(function* () {
      const found = refresh ? Option.none() : yield* lookup(keyed.key)
      if (Option.isSome(found)) return found.value
      const ran = yield* runBody(keyed)
      if (cacheable !== undefined && !cacheable(ran.value))
        return yield* leaveUncached(definition, ran, "not-cacheable")
      return yield* settle(ran, refresh)
    }).pipe(
      Effect.tap((outcome) => Metrics.decided(name, outcome.decision)),
      Effect.tapError((error) =>
        Metrics.decided(name, error instanceof ActionError && error.reason._tag === "Conflict" ? "conflict" : "failed")
      )
    )
}

const makeRunUncached = <I, A, E, R>(definition: Definition<I, A, E, R>) => {
  const runBody = makeRunBody(definition)
  const { name } = definition.options
  return (keyed: Keyed<I>): Effect.Effect<Outcome<A>, E | ActionError, Exclude<R, Artifacts.Artifacts> | Services> =>
    Effect.flatMap(runBody(keyed), (ran) => leaveUncached(definition, ran, "bypass")).pipe(
      Effect.tap(() => Metrics.decided(name, "uncached")),
      Effect.tapError(() => Metrics.decided(name, "failed"))
    )
}

// ---------------------------------------------------------------------------------------------------------------------
// looking up
// ---------------------------------------------------------------------------------------------------------------------

const makeLookup = <I, A, E, R>(definition: Definition<I, A, E, R>) => {
  const { name, whenCacheFails } = definition.options
  return Effect.fnUntraced(
    function* (key: StepKey): Effect.fn.Return<Option.Option<Outcome<A>>, CacheError, StepCache> {
      const cache = yield* StepCache
      const found = yield* cache.get(key)
      if (found._tag === "Miss") {
        yield* Metrics.missed(name, found.reason._tag)
        return Option.none()
      }
      const value = yield* decodeEntry(definition, found.entry)
      if (Option.isNone(value)) return Option.none()
      return Option.some(served(found.entry, value.value, found.tier === cache.name ? "local-hit" : "shared-hit"))
    },
    (effect): Effect.Effect<Option.Option<Outcome<A>>, ActionError, StepCache> =>
      whenCacheFails === "serve"
        ? Effect.catch(effect, (error) =>
            Effect.as(
              Effect.andThen(Metrics.missed(name, "Unavailable"), warn(name, "The cache cannot be read", error)),
              Option.none()
            )
          )
        : Effect.mapError(effect, definition.cacheFailed("lookup"))
  )
}

/** A result that is not of the Schema is of no use to anybody who runs this version of the action. */
const decodeEntry = Effect.fnUntraced(function* <I, A, E, R>(
  { decode, options }: Definition<I, A, E, R>,
  entry: CacheEntry
): Effect.fn.Return<Option.Option<A>, CacheError, StepCache> {
  const decoded = yield* Effect.result(decode(entry.result))
  if (decoded._tag === "Success") return Option.some(decoded.success)
  const paths = issuePaths(decoded.failure)
  const reason: MissReason = {
    _tag: "Undecodable",
    detail: `not of the Schema of ${options.name} ${options.version}${paths.length === 0 ? "" : ` at ${paths.join(", ")}`}`
  }
  const cache = yield* StepCache
  yield* cache.quarantine(entry.key, { recording: entry.metadata.recording, reason })
  yield* Metrics.missed(options.name, reason._tag)
  return Option.none()
})

const served = <A>(entry: CacheEntry, value: A, decision: Metrics.Decision): Outcome<A> => ({
  value,
  artifacts: entry.artifacts,
  key: entry.key,
  decision,
  recording: entry.metadata.recording
})

// ---------------------------------------------------------------------------------------------------------------------
// running
// ---------------------------------------------------------------------------------------------------------------------

/** A body that has succeeded, with its result as it is stored. */
interface Ran<A> {
  readonly key: StepKey
  /** What a later run will decode from the cache. */
  readonly value: A
  readonly encoded: Encoded
  readonly artifacts: ReadonlyArray<Artifact>
  readonly recording: Recording
  readonly durationMs: number
}

const makeRunBody = <I, A, E, R>(definition: Definition<I, A, E, R>) => {
  const { name, run } = definition.options
  return Effect.fnUntraced(function* ({
    input: decoded,
    key
  }: Keyed<I>): Effect.fn.Return<Ran<A>, E | ActionError, Exclude<R, Artifacts.Artifacts> | Services> {
    const input = yield* decoded
    const artifacts = Artifacts.collect(name)
    const start = yield* Clock.currentTimeMillis
    const exit = yield* Effect.suspend(() => run(input)).pipe(
      Effect.provideService(Artifacts.Artifacts, artifacts.service),
      Effect.flatMap(definition.encode),
      Effect.flatMap((encoded) => Effect.map(decodeOwn(definition, encoded), (value) => ({ encoded, value }))),
      Effect.exit
    )
    const durationMs = (yield* Clock.currentTimeMillis) - start
    yield* Metrics.bodyRan(name, durationMs)
    if (Exit.isFailure(exit)) return yield* journalFailure(definition, key, exit.cause, durationMs)
    return { key, ...exit.value, artifacts: artifacts.all(), recording: yield* newRecording, durationMs }
  })
}

/** So that the first run gives what all others will give, and nothing is cached that can never be served. */
const decodeOwn = <I, A, E, R>({ decode, fail }: Definition<I, A, E, R>, { result }: Encoded) =>
  Effect.mapError(decode(result), (error) => fail(new SuccessInvalid({ paths: issuePaths(error) })))

const newRecording: Effect.Effect<Recording> = Effect.map(Effect.all([word(), word(), word(), word()]), (words) =>
  Recording.make(words.join(""))
)

function word() {
  return Effect.map(Random.next, (random) =>
    Math.floor(random * 2 ** 32)
      .toString(16)
      .padStart(8, "0")
  )
}

// ---------------------------------------------------------------------------------------------------------------------
// committing
// ---------------------------------------------------------------------------------------------------------------------

const makeSettle = <I, A, E, R>(definition: Definition<I, A, E, R>) => {
  const { name, nondeterministic, whenCacheFails } = definition.options
  return Effect.fnUntraced(
    function* (ran: Ran<A>, refresh: boolean) {
      const entry = yield* toEntry(definition, ran)
      const outcome = yield* refresh ? replace(entry) : put(entry)
      switch (outcome._tag) {
        case "Inserted":
        case "Unarbitrated":
          return served(entry, ran.value, "ran")
        case "ExistingSame":
          return served(outcome.entry, ran.value, "ran")
        case "Conflict":
          return nondeterministic === true
            ? yield* keep(definition, outcome.entry, ran, entry)
            : yield* definition.fail(conflict(outcome.entry, entry))
      }
    },
    (effect, ran) =>
      Effect.catch(effect, (error) => {
        if (error instanceof ActionError) return Effect.fail(error)
        return whenCacheFails === "serve"
          ? Effect.as(warn(name, "The outcome of an action was not committed", error), outcomeOf(ran, "unrecorded"))
          : Effect.fail(definition.cacheFailed("commit")(error))
      })
  )
}

const toEntry = Effect.fnUntraced(function* <I, A, E, R>(
  { options }: Definition<I, A, E, R>,
  { artifacts, durationMs, encoded, key, recording }: Ran<A>
) {
  const entry: CacheEntry = {
    key,
    ...encoded,
    artifacts,
    metadata: {
      recording,
      recordedBy: yield* Recorder,
      recordedAt: yield* Clock.currentTimeMillis,
      action: options.name,
      version: options.version,
      durationMs
    }
  }
  return entry
})

/** Row and journal entry, in one write of the cache's. */
const put = (entry: CacheEntry) => StepCache.use((cache) => cache.put(entry))

/** Another result makes way in the same write, unless someone else has replaced it first. */
const replace = Effect.fnUntraced(function* (entry: CacheEntry) {
  const cache = yield* StepCache
  const writer = yield* DurableWriter
  return yield* writer.write(
    Effect.gen(function* () {
      const outcome = yield* cache.put(entry)
      if (outcome._tag !== "Conflict") return outcome
      yield* cache.evict(entry.key, { recording: outcome.entry.metadata.recording })
      return yield* cache.put(entry)
    })
  )
})

/** Serves the result that was first; should it be of no use, this one takes its place after all. */
const keep = Effect.fnUntraced(function* <I, A, E, R>(
  definition: Definition<I, A, E, R>,
  kept: CacheEntry,
  ran: Ran<A>,
  entry: CacheEntry
) {
  const value = yield* decodeEntry(definition, kept)
  if (Option.isSome(value)) return served(kept, value.value, "kept")
  const outcome: PutOutcome = yield* put(entry)
  return outcome._tag === "Conflict"
    ? yield* definition.fail(conflict(outcome.entry, entry))
    : served(entry, ran.value, "ran")
})

const conflict = (kept: CacheEntry, entry: CacheEntry): Conflict =>
  new Conflict({ kept: kept.metadata.recording, keptDigest: kept.digest, digest: entry.digest })

const outcomeOf = <A>({ artifacts, key, recording, value }: Ran<A>, decision: Metrics.Decision): Outcome<A> => ({
  value,
  artifacts,
  key,
  decision,
  recording
})

// ---------------------------------------------------------------------------------------------------------------------
// journaling
// ---------------------------------------------------------------------------------------------------------------------

const leaveUncached = Effect.fnUntraced(function* <I, A, E, R>(
  definition: Definition<I, A, E, R>,
  ran: Ran<A>,
  uncached: "bypass" | "not-cacheable"
): Effect.fn.Return<Outcome<A>, ActionError, Services> {
  const { name, version, whenCacheFails } = definition.options
  const { artifacts, durationMs, encoded, key, recording } = ran
  const { digest } = encoded
  const written = yield* Effect.result(
    journal(
      ActionEvents.Completed.make({ key, action: name, version, recording, uncached, digest, artifacts, durationMs })
    )
  )
  if (written._tag === "Success") return outcomeOf(ran, "uncached")
  if (whenCacheFails !== "serve") return yield* definition.cacheFailed("commit")(written.failure)
  yield* warn(name, "The outcome of an action was not journaled", written.failure)
  return outcomeOf(ran, "unrecorded")
})

/** Raises the failure of the body once it is journaled. If it cannot be, that is part of the cause, behind the body's. */
const journalFailure = Effect.fnUntraced(function* <I, A, E, R>(
  definition: Definition<I, A, E, R>,
  key: StepKey,
  cause: Cause.Cause<E | ActionError>,
  durationMs: number
): Effect.fn.Return<never, E | ActionError, Services> {
  if (Cause.hasInterruptsOnly(cause)) return yield* Effect.failCause(cause)
  const { name, version } = definition.options
  const kind = Cause.hasFails(cause) ? "failure" : "defect"
  const error = Cause.squash(cause)
  const digest = Option.getOrUndefined(yield* Effect.option(definition.digestOf(error)))
  const written = yield* Effect.result(
    journal(ActionEvents.Failed.make({ key, action: name, version, kind, error: nameOf(error), digest, durationMs }))
  )
  return yield* Effect.failCause(
    written._tag === "Success"
      ? cause
      : Cause.combine(cause, Cause.fail(definition.cacheFailed("commit")(written.failure)))
  )
})

const journal = (event: Parameters<Journal["Service"]["append"]>[1][number]) =>
  Effect.gen(function* () {
    const { append } = yield* Journal
    const writer = yield* DurableWriter
    return yield* writer.write(append(yield* ActionEvents.Stream, [event]))
  })

/** Names of kinds only: a message, or an error that is a plain value, can hold anything. */
const nameOf = (error: unknown): string => {
  if (typeof error !== "object" || error === null) return error === null ? "null" : typeof error
  if ("_tag" in error && typeof error._tag === "string") return error._tag
  return error instanceof Error ? error.name : "object"
}

const warn = (action: string, message: string, error: unknown): Effect.Effect<void> =>
  Effect.annotateLogs(Effect.logWarning(message, error), { action })
