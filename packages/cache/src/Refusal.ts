/**
 * A publication that did not happen, and why, in a form that can be journaled and shown: no credentials, no results.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { outlook, type CacheError, type CacheErrorReason, type Outlook } from "./CacheError.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * At what point a publication stopped: reading the entry and its blobs here, sending a blob, looking whether blobs are
 * there, or sending the entry.
 *
 * @since 0.1.0
 * @category models
 */
export const Stage = Schema.Literals(["local", "artifact", "probe", "entry"])

/**
 * @since 0.1.0
 * @category models
 */
export type Stage = typeof Stage.Type

/**
 * A refusal. `kind` is the tag of the reason of the `CacheError`.
 *
 * @since 0.1.0
 * @category models
 */
export const Refusal = Schema.Struct({
  stage: Stage,
  kind: Schema.String,
  detail: Schema.String,
  status: Schema.optional(Schema.Int),
  /** Bytes. */
  size: Schema.optional(Schema.Finite),
  /** Bytes. */
  limit: Schema.optional(Schema.Finite),
  outlook: Schema.Literals(["away", "never", "later"])
})

/**
 * @since 0.1.0
 * @category models
 */
export type Refusal = Omit<typeof Refusal.Type, "outlook"> & { readonly outlook: Outlook }

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The refusal that a failure at a stage means.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromError = (stage: Stage, error: CacheError): Refusal => ({
  stage,
  kind: error.reason._tag,
  detail: error.message,
  ...facts(error.reason),
  outlook: outlook(error)
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const facts = (reason: CacheErrorReason): Pick<Refusal, "status" | "size" | "limit"> => ({
  ...("status" in reason && reason.status !== undefined ? { status: reason.status } : {}),
  ...("size" in reason ? { size: reason.size } : {}),
  ...("limit" in reason && reason.limit !== undefined ? { limit: reason.limit } : {})
})
