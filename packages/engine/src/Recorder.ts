/**
 * Who records results.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import { hostname } from "node:os"

/**
 * The name of this machine or process in what it records, never empty. Default: the name of the host.
 *
 * @since 0.1.0
 * @category references
 */
export const Recorder: Context.Reference<string> = Context.Reference("@strata/engine/Recorder", {
  defaultValue: () => hostname() || "unknown"
})
