/**
 * Activities whose results are shared. An activity that is annotated with {@link Cached} has its result in the step cache
 * too, see `Action`: another run that gets to the same activity with the same input, on this machine or, with a shared
 * tier, on another one, takes the result from there, and does not run it.
 *
 * ```ts
 * const render = (page: string) =>
 *   Activity.make({ name: "render", success: Schema.String, execute: slowly(page) }).annotate(ActivityCache.Cached, {
 *     version: "1",
 *     input: page
 *   })
 * ```
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Schema from "effect/Schema"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What the result of an activity depends on, beside its name, and the environment and pepper of `StepKeys`.
 *
 * @since 0.1.0
 * @category models
 */
export interface CachedOptions {
  /** To be changed with the activity, whenever it gives another result for the same input. */
  readonly version: string
  /** Part of the key, and stored nowhere. */
  readonly input: Schema.Json
  /** Whether the same input can give several results; then the first one is served to all. Default `false`. */
  readonly nondeterministic?: boolean | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// annotations
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Has an activity's success in the step cache. The engine takes the `StepCache` that is in context where its layer is
 * built; without one such an activity dies with `NoStepCache`.
 *
 * @since 0.1.0
 * @category annotations
 */
export const Cached: Context.Reference<CachedOptions | undefined> = Context.Reference<CachedOptions | undefined>(
  "@strata/engine/ActivityCache/Cached",
  { defaultValue: () => undefined }
)
