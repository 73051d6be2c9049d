import { Digest } from "@strata/durable/Digest"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import type { FoldedClock, FoldedDeferred, State } from "../DeferredClockFold.ts"
import * as StateEvents from "../StateEvents.ts"

/*
 * What is in a checkpoint. One run may have tens of thousands of deferreds, so they are tuples, which are half as long as
 * structs.
 */

const Name = Schema.NonEmptyString

/** Name, deferred, deadline, scheduled at, completed at with the outcome. */
const ClockTuple = Schema.Tuple([
  Name,
  Name,
  Schema.Int,
  Schema.Int,
  Schema.NullOr(Schema.Tuple([Schema.Int, StateEvents.ClockOutcome]))
])

/** Name, digest of the exit and of the metadata, completed at, consumed at. */
const DeferredTuple = Schema.Tuple([Name, Digest, Schema.NullOr(Digest), Schema.Int, Schema.NullOr(Schema.Int)])

const Encoded = Schema.Struct({ clocks: Schema.Array(ClockTuple), deferreds: Schema.Array(DeferredTuple) })

const isState = (value: unknown): value is State =>
  typeof value === "object" &&
  value !== null &&
  "clocks" in value &&
  value.clocks instanceof Map &&
  "deferreds" in value &&
  value.deferreds instanceof Map

export const Codec: Schema.Codec<State, unknown> = Encoded.pipe(
  Schema.decodeTo(
    Schema.declare<State>(isState),
    SchemaTransformation.transform<State, typeof Encoded.Type>({
      decode: ({ clocks, deferreds }) => ({
        clocks: new Map(clocks.map(([name, ...clock]) => [name, toClock(clock)])),
        deferreds: new Map(deferreds.map(([name, ...deferred]) => [name, toDeferred(deferred)]))
      }),
      encode: ({ clocks, deferreds }) => ({
        clocks: Array.from(clocks, ([name, clock]) => [name, ...fromClock(clock)] as const),
        deferreds: Array.from(deferreds, ([name, deferred]) => [name, ...fromDeferred(deferred)] as const)
      })
    })
  )
)

type Rest<Tuple> = Tuple extends readonly [string, ...infer Values] ? Readonly<Values> : never
type ClockValues = Rest<typeof ClockTuple.Type>
type DeferredValues = Rest<typeof DeferredTuple.Type>

const toClock = ([deferred, deadline, scheduledAt, completion]: ClockValues): FoldedClock => ({
  deferred,
  deadline,
  scheduledAt,
  completedAt: completion === null ? null : completion[0],
  outcome: completion === null ? null : completion[1]
})

const fromClock = ({ completedAt, deadline, deferred, outcome, scheduledAt }: FoldedClock): ClockValues => [
  deferred,
  deadline,
  scheduledAt,
  completedAt === null || outcome === null ? null : [completedAt, outcome]
]

const toDeferred = ([exit, metadata, completedAt, consumedAt]: DeferredValues): FoldedDeferred => ({
  exit,
  metadata,
  completedAt,
  consumedAt
})

const fromDeferred = ({ completedAt, consumedAt, exit, metadata }: FoldedDeferred): DeferredValues => [
  exit,
  metadata,
  completedAt,
  consumedAt
]
