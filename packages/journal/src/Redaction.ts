/**
 * What never gets into the journal. Payloads pass through one point on their way in, where two things happen: what is
 * `Redacted` in a typed payload is replaced by a marker, whatever the rules say, and the rules of the {@link Redactor}
 * replace what else is secret, by type of event and place in the payload.
 *
 * Checkpoint states are not redacted, as folds see redacted payloads only; nor are stream names and identities, which
 * must not be made of secrets.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import * as Rules from "./internal/redactionRules.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A place in payloads that is not to be kept.
 *
 * @since 0.1.0
 * @category models
 */
export interface Rule {
  /** The type of event. Default: every type. */
  readonly type?: string | undefined
  /**
   * The keys that lead to the place, numbers of list items among them: `"*"` is any one key, and `"**"` any number of
   * keys, none too, so that `["**", "password"]` is a password anywhere.
   */
  readonly path: ReadonlyArray<string>
  /** What is kept in its place. Default: {@link marker}. Must decode by the Schema of the event. */
  readonly replacement?: Schema.Json | undefined
}

/**
 * What stands for a value that was not kept.
 *
 * @since 0.1.0
 * @category models
 */
export const marker = "[redacted]"

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Takes what is secret out of payloads. A journal uses the one that is in context when it is made. Default: leaves
 * payloads as they are, without what is `Redacted`.
 *
 * @since 0.1.0
 * @category references
 */
export const Redactor: Context.Reference<{
  readonly redact: (type: string, payload: Schema.Json) => Schema.Json
}> = Context.Reference("@strata/journal/Redactor", { defaultValue: () => make([]) })

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A redactor that follows rules. Of several that match a place, the first one counts.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (rules: ReadonlyArray<Rule>): typeof Redactor.Service => Rules.make(rules, marker)

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A redactor that follows rules, for the layers of the journal.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (rules: ReadonlyArray<Rule>): Layer.Layer<never> => Layer.succeed(Redactor, make(rules))
