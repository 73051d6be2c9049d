/**
 * The stream of the journal in which a run tells what happened to it.
 *
 * @since 0.1.0
 */
import { StreamName } from "@strata/journal/StreamName"

/**
 * What the names of the streams of runs begin with.
 *
 * @since 0.1.0
 * @category models
 */
export const prefix = "run/"

/**
 * The stream of a run.
 *
 * @since 0.1.0
 * @category constructors
 */
export const of = (executionId: string): StreamName => StreamName.make(prefix + executionId)

/**
 * The execution id of the run that a stream is of; `undefined` for the stream of something else.
 *
 * @since 0.1.0
 * @category accessors
 */
export const executionId = (stream: StreamName): string | undefined =>
  stream.startsWith(prefix) ? stream.slice(prefix.length) : undefined
