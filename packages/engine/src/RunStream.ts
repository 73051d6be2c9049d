/**
 * The stream of the journal in which a run tells what happened to it.
 *
 * @since 0.1.0
 */
import * as Text from "@strata/durable/Text"
import { StreamName } from "@strata/journal/StreamName"

/**
 * What the names of the streams of runs begin with.
 *
 * @since 0.1.0
 * @category models
 */
export const prefix = "run/"

/**
 * The stream of a run. Throws what `StreamName.make` does for an execution id that no store keeps unchanged.
 *
 * @since 0.1.0
 * @category constructors
 */
export const of = (executionId: string): StreamName => {
  const name = prefix + executionId
  // All that its Schema asks for, at a tenth of the cost: every change of a run names its stream.
  return Text.isStorable(name) ? (name as StreamName) : StreamName.make(name)
}

/**
 * The execution id of the run that a stream is of; `undefined` for the stream of something else.
 *
 * @since 0.1.0
 * @category accessors
 */
export const executionId = (stream: StreamName): string | undefined =>
  stream.startsWith(prefix) ? stream.slice(prefix.length) : undefined
