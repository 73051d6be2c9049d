/**
 * What the suite of the history of runs works with.
 *
 * @since 0.1.0
 */
import { assert } from "@effect/vitest"
import { sha256 } from "@strata/durable/Digest"
import { write } from "@strata/durable/DurableWriter"
import * as Compaction from "@strata/journal/Compaction"
import * as Event from "@strata/journal/Event"
import * as Folds from "@strata/journal/Folds"
import { Journal } from "@strata/journal/Journal"
import * as Projections from "@strata/journal/Projections"
import * as Rewind from "@strata/journal/Rewind"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Activity from "effect/workflow/Activity"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import { ClockStorage } from "../ClockStorage.ts"
import * as DeferredClockFold from "../DeferredClockFold.ts"
import { DeferredStorage } from "../DeferredStorage.ts"
import * as FoldJoin from "../internal/foldJoin.ts"
import * as FoldRows from "../internal/foldRows.ts"
import * as RunEvents from "../RunEvents.ts"
import * as RunHistory from "../RunHistory.ts"
import * as RunStream from "../RunStream.ts"
import { RunStore } from "../RunStore.ts"
import * as Harness from "./workflowHarness.ts"

// ---------------------------------------------------------------------------------------------------------------------
// workflows
// ---------------------------------------------------------------------------------------------------------------------

/** A workflow of two activities, which tell how often they ran. */
export const counting = (tag: string) => {
  const Flow = Harness.define(tag)
  const counts = { one: 0, two: 0 }
  const step = (name: "one" | "two") =>
    Activity.make({ name, success: Schema.String, execute: Effect.sync(() => `${name} ${++counts[name]}`) })
  const layer = Flow.toLayer(() =>
    Effect.gen(function* () {
      return `${yield* step("one")}, ${yield* step("two")}`
    })
  )
  return { Flow, counts, layer }
}

/** A workflow that waits for a deferred, after an activity. */
export const waiting = (tag: string) => {
  const Flow = Harness.define(tag)
  const gate = Harness.gate("gate")
  const layer = Flow.toLayer(() =>
    Effect.andThen(Activity.make({ name: "before", execute: Effect.void }), DurableDeferred.await(gate))
  )
  return { Flow, gate, layer }
}

// ---------------------------------------------------------------------------------------------------------------------
// operations
// ---------------------------------------------------------------------------------------------------------------------

const registries = Layer.mergeAll(Folds.layer, Projections.layer)

const layer = Layer.fresh(
  Layer.mergeAll(RunHistory.layer, Compaction.layer, Rewind.layer).pipe(Layer.provide(registries))
)

const history = <A, E, R>(f: (service: RunHistory.RunHistory["Service"]) => Effect.Effect<A, E, R>) =>
  Effect.provide(RunHistory.RunHistory.use(f), layer)

export const rewind = (options: RunHistory.RewindOptions) => history((service) => service.rewind(options))

export const fork = (options: RunHistory.ForkOptions) => history((service) => service.fork(options))

export const resume = (executionId: string) => history((service) => service.resume(executionId))

export const cancel = (executionId: string) => history((service) => service.cancel(executionId))

/** Why an operation was refused. */
export const refusal = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), (error) =>
    error instanceof RunHistory.RunHistoryError ? error.reason : assert.fail(String(error))
  )

export const compact = (executionId: string, seq: number) =>
  Effect.provide(
    Compaction.Compaction.use((compaction) => compaction.compact({ stream: RunStream.of(executionId), seq })),
    layer
  )

/** Of its stream, as anybody can do it. */
export const rewindStream = (executionId: string, after: number) =>
  Effect.provide(
    Rewind.Rewind.use((service) => service.rewind({ stream: RunStream.of(executionId), after })),
    layer
  )

// ---------------------------------------------------------------------------------------------------------------------
// entries
// ---------------------------------------------------------------------------------------------------------------------

const digest = sha256("{}")

export const started = RunEvents.Started.make({ workflow: "w", digest })

export const outcome = { name: "late", attempt: 1, exit: "{}", digest }

export const note = Event.json("note", {})

export const noted = (executionId: string) =>
  write(Journal.use((journal) => journal.append(RunStream.of(executionId), [note])))

const entriesOf = (executionId: string) => Journal.use((journal) => journal.read({ stream: RunStream.of(executionId) }))

/** Of the first entry of a type. */
export const seqOf = (executionId: string, type: string) =>
  Effect.map(entriesOf(executionId), (entries) => {
    const entry = entries.find((entry) => entry.type === type)
    return entry === undefined ? assert.fail(`no ${type}`) : entry.seq
  })

/** Looks until there is an entry of a type. */
export const until = (executionId: string, type: string) =>
  passing(Harness.until(type, Harness.told(executionId), (types) => types.includes(type)))

/** Lets time pass until the effect has ended: processes look for work a little after they are told. */
export const passing = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.raceFirst(effect, Effect.forever(Effect.andThen(TestClock.adjust(20), Harness.moment)))

export const completed = (...parameters: Parameters<typeof Harness.completed<string, string>>) =>
  passing(Harness.completed(...parameters))

// ---------------------------------------------------------------------------------------------------------------------
// looks
// ---------------------------------------------------------------------------------------------------------------------

/** Everything that there is of a run. */
export const everything = Effect.fnUntraced(function* (executionId: string) {
  const store = yield* RunStore
  const clocks = yield* ClockStorage
  const deferreds = yield* DeferredStorage
  const [run] = yield* store.find([executionId])
  return {
    run,
    outcomes: byName(yield* store.outcomes(run?.id ?? 0)),
    clocks: byName(yield* clocks.ofRun(executionId)),
    deferreds: byName(yield* deferreds.ofRun(executionId)),
    told: yield* entriesOf(executionId)
  }
})

const byName = <A extends { readonly name: string }>(rows: ReadonlyArray<A>): ReadonlyArray<A> =>
  rows.toSorted((a, b) => (a.name < b.name ? -1 : 1))

const decode = Event.decoder(RunEvents.all)

/** Requires that the rows of a run are what its entries say. */
export const agrees = Effect.fnUntraced(function* (executionId: string) {
  const { clocks, deferreds, outcomes, run, told } = yield* everything(executionId)
  const state = yield* DeferredClockFold.capture(executionId)
  const folded = FoldRows.of(executionId, state)
  assert.deepStrictEqual(clocks, byName(folded.clocks))
  assert.deepStrictEqual(
    deferreds.map(({ completedAt, consumedAt, name }) => ({ executionId, name, completedAt, consumedAt })),
    [...byName(folded.stamps)]
  )
  assert.deepStrictEqual(FoldJoin.completions(executionId, state, deferreds), [])

  const completed: Array<unknown> = []
  let result: string | null = null
  let interrupted = "none"
  for (const entry of told) {
    const event = yield* decode(entry)
    if (event._tag === "None") continue
    const { payload, type } = event.value
    if (type === "activity-completed") completed.push([payload.name, payload.attempt, payload.digest])
    if (type === "run-completed") result = payload.digest
    if (type === "run-interrupted") interrupted = payload.mode
  }
  assert.sameDeepMembers(
    outcomes.map(({ attempt, digest, name }) => [name, attempt, digest]),
    completed
  )
  assert.strictEqual(run?.result == null ? null : sha256(run.result), result)
  assert.strictEqual(run?.interrupted, interrupted)
})
