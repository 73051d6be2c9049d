/**
 * A slow step that runs once. An action has a name, a version and Schemas; what a run of it gives is kept under a key
 * made of those and of the input, in the step cache. Whoever runs it again with the same input, in this process, on this
 * machine or, with a shared tier, on another one, gets the result without the body being run.
 *
 * @since 0.1.0
 */
import type { Artifact, Recording } from "@strata/cache/CacheEntry"
import type { StepCache } from "@strata/cache/StepCache"
import type { StepKey } from "@strata/cache/StepKey"
import type { DurableWriter } from "@strata/durable/DurableWriter"
import type { Journal } from "@strata/journal/Journal"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { ActionError } from "./ActionError.ts"
import type { Artifacts } from "./Artifacts.ts"
import * as Definition from "./internal/definition.ts"
import { execute } from "./internal/execute.ts"
import type { Decision } from "./Metrics.ts"

export {
  /**
   * @since 0.1.0
   * @category errors
   */
  ActionError
} from "./ActionError.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What every run needs beside what the body needs. The step cache is a local one, or the local one combined with a
 * shared one, see `CombinedStepCache`.
 *
 * @since 0.1.0
 * @category models
 */
export type Services = StepCache | Journal | DurableWriter

/**
 * How an action is made. The Schemas must not be asynchronous.
 *
 * @since 0.1.0
 * @category models
 */
export interface ActionOptions<I, A, E, R> {
  readonly name: string
  /** To be changed with the body, whenever it gives another result for the same input. */
  readonly version: string
  /**
   * Its encoding is part of the key, including what is `Redacted` in it, see `StepKeys`. It is stored nowhere.
   *
   * The body gets what that encoding decodes to, so that inputs with one encoding are one input: `0` for `-0`, and for
   * `5n` in a union of `Schema.BigInt` and `Schema.String` whichever of them takes `"5"` first. An input whose encoding
   * does not decode is `InputInvalid`, before the body runs.
   */
  readonly input: Schema.Codec<I, unknown>
  /**
   * Results are stored, and shared, in its JSON form: what is `Redacted` in a result is stored as it is. A result that
   * it does not decode any more is a miss.
   */
  readonly success: Schema.Codec<A, unknown>
  /** Of the body's errors. Default: it has none but those of artifacts and of other actions. */
  readonly error?: Schema.Codec<E, unknown> | undefined
  /** The body. It runs outside of any write, and can store files with `Artifacts.add`. */
  readonly run: (input: I) => Effect.Effect<A, NoInfer<E> | ActionError, R>
  /**
   * What else the result depends on, such as the version of a tool; part of the key. It is asked for in every run, and
   * its errors are those of the run, without an entry in the journal.
   */
  readonly environment?: Effect.Effect<Schema.Json, NoInfer<E>, Exclude<R, Artifacts>> | undefined
  /**
   * Whether the same input can give several results. If so, the first one that was recorded is served to all; else
   * another result is a `Conflict`, which fails. Either way it is journaled. Default `false`.
   */
  readonly nondeterministic?: boolean | undefined
  /** Which results are kept. Others are journaled as `action-completed`. Default: all. */
  readonly cacheable?: ((value: A) => boolean) | undefined
  /**
   * What a run does when the local cache or the journal fails, as on a full disk. `fail`: it fails with `CacheFailed`,
   * before the body runs or, if that has run, without its result. `serve`: it runs the body, and gives its result,
   * with a warning in the log and the decision `unrecorded`. A shared tier that fails is just a miss. Default `fail`.
   */
  readonly whenCacheFails?: "fail" | "serve" | undefined
}

/**
 * How one run is done.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunOptions {
  /** Runs the body whatever the cache has, and leaves the cache as it is. Waits for no other run. Default `false`. */
  readonly bypass?: boolean | undefined
  /**
   * Runs the body whatever the cache has, and puts its result into the place of another one, here; a shared tier keeps
   * what it has. Default `false`.
   */
  readonly refresh?: boolean | undefined
}

/**
 * What a run gave.
 *
 * @since 0.1.0
 * @category models
 */
export interface Outcome<A> {
  readonly value: A
  /** In the byte order of their names; `ArtifactStore.get` gives their content. */
  readonly artifacts: ReadonlyArray<Artifact>
  readonly key: StepKey
  /** Where it came from. Those who waited for the same run get the decision of that run. */
  readonly decision: Decision
  /** Of the entry that was served or made, or of the entry in the journal. */
  readonly recording: Recording
}

/**
 * An action.
 *
 * @since 0.1.0
 * @category models
 */
export interface Action<in I, out A, out E = never, out R = never> {
  readonly name: string
  readonly version: string
  /** The key of an input, with the environment in context. */
  readonly key: (input: I) => Effect.Effect<StepKey, E | ActionError, R>
  /** See the function {@link run}. */
  readonly run: (input: I, options?: RunOptions) => Effect.Effect<A, E | ActionError, R | Services>
  /** See the function {@link result}. */
  readonly result: (input: I, options?: RunOptions) => Effect.Effect<Outcome<A>, E | ActionError, R | Services>
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Makes an action. Name and version must not be empty.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <I, A, E = never, R = never>(
  options: ActionOptions<I, A, E, R>
): Action<I, A, E, Exclude<R, Artifacts>> => {
  const definition = Definition.make(options)
  const result = traced(options, execute(definition))
  return {
    name: options.name,
    version: options.version,
    key: (input) => Effect.map(definition.keyed(input), ({ key }) => key),
    result,
    run: (input, runOptions) => Effect.map(result(input, runOptions), (outcome) => outcome.value)
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// running
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Runs an action: gives what the cache has for the input, else runs the body and commits its outcome.
 *
 * - In this process the body runs once at a time for a key: those who ask meanwhile wait, and get the same outcome. When
 *   the one that runs it is interrupted, one of those that wait starts anew.
 * - The result and the journal entry that explains it are there both, or neither. Publication to a shared tier comes
 *   after, and is not waited for.
 * - A body that fails is journaled, by the names and the digest of its error, and not cached: the next run tries again.
 *   The error is raised after that has been committed.
 * - Inside of a write it fails with `InsideWrite`.
 *
 * @since 0.1.0
 * @category running
 */
export const run = <I, A, E, R>(
  action: Action<I, A, E, R>,
  input: I,
  options?: RunOptions
): Effect.Effect<A, E | ActionError, R | Services> => action.run(input, options)

/**
 * As {@link run}, with the artifacts, the key and where the result came from.
 *
 * @since 0.1.0
 * @category running
 */
export const result = <I, A, E, R>(
  action: Action<I, A, E, R>,
  input: I,
  options?: RunOptions
): Effect.Effect<Outcome<A>, E | ActionError, R | Services> => action.result(input, options)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const traced = <I, A, E, R>(
  { name, version }: { readonly name: string; readonly version: string },
  execute: (input: I, options: RunOptions) => Effect.Effect<A, E, R>
) =>
  Effect.fn("Action.run", { attributes: { action: name, version } })(function* (input: I, options?: RunOptions) {
    return yield* execute(input, options ?? {})
  })
