/**
 * Drives several tiers with the same random operations. After every step all of them have to give the same answer and
 * show the same journal, and what they show has to be what a model without compaction and without a database says.
 *
 * @since 0.1.0
 */
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { Checkpoints } from "../Checkpoint.ts"
import { Compaction } from "../Compaction.ts"
import * as Event from "../Event.ts"
import * as Fold from "../Fold.ts"
import type { Entry } from "../Journal.ts"
import { Journal } from "../Journal.ts"
import { BelowFloor, BelowGlobalFloor, JournalError } from "../JournalError.ts"
import type { JournalStorage } from "../JournalStorage.ts"
import { Rewind } from "../Rewind.ts"
import type { StreamName } from "../StreamName.ts"
import * as Harness from "./harness.ts"
import * as Model from "./model.ts"
import * as Operations from "./operations.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Where numbers that were drawn are not given back by a rollback, a tier provides this too: what it gives before an
 * operation is run after one that was rolled back, so that all tiers go on with the same numbers.
 *
 * @since 0.1.0
 * @category services
 */
export class Counters extends Context.Service<Counters, Effect.Effect<Effect.Effect<void, SqlError>, SqlError>>()(
  "@strata/journal/testing/Counters"
) {}

/**
 * A tier to drive, over an empty store.
 *
 * @since 0.1.0
 * @category models
 */
export interface Tier<E> {
  readonly name: string
  readonly layer: Layer.Layer<JournalStorage | DurableWriter, E>
}

/**
 * Tiers, or a tier and the model, disagreed.
 *
 * @since 0.1.0
 * @category errors
 */
export class Mismatch extends Schema.TaggedError<Mismatch>("@strata/journal/testing/Mismatch")("Mismatch", {
  seed: Schema.Union([Schema.String, Schema.Finite]),
  step: Schema.Int,
  operation: Schema.Unknown,
  what: Schema.String,
  values: Schema.Record(Schema.String, Schema.Unknown)
}) {
  override get message(): string {
    const values = Object.entries(this.values).map(([name, value]) => `${name}: ${JSON.stringify(value, null, 1)}`)
    return `Seed ${this.seed}, step ${this.step}: ${this.what} differs after ${JSON.stringify(this.operation)}\n${values.join("\n")}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// driver
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Runs `operations` random steps under TestClock, and gives how often each kind of answer came. The same seed draws the
 * same steps.
 *
 * @since 0.1.0
 * @category driver
 */
export const run = Effect.fnUntraced(function* <E>(config: {
  readonly tiers: ReadonlyArray<Tier<E>>
  readonly seed: string | number
  readonly operations: number
}): Effect.fn.Return<ReadonlyMap<string, number>, E | SqlError | JournalError | Mismatch, Scope.Scope> {
  const drivers = yield* Effect.forEach(config.tiers, ({ layer, name }) =>
    Effect.gen(function* () {
      const tier = yield* Layer.build(layer)
      const services = Harness.services({ folds: [Harness.Story, Harness.Ledger], pageSize: 3 })
      const context = yield* Layer.build(Layer.provide(services, Layer.succeedContext(tier)))
      const counters = Option.getOrElse(Context.getOption(tier, Counters), () => Effect.succeed(Effect.void))
      return { name, context, counters } satisfies Driver
    })
  )
  return yield* Random.withSeed(drive(drivers, config.seed, config.operations), config.seed)
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

interface Driver {
  readonly name: string
  readonly context: Context.Context<Harness.Services>
  readonly counters: Counters["Service"]
}

type Failure = SqlError | JournalError

const drive = Effect.fnUntraced(function* (drivers: ReadonlyArray<Driver>, seed: string | number, operations: number) {
  const seen = new Map<string, number>()
  const model = Model.make()
  for (let step = 0; step < operations; step++) {
    const operation = yield* Operations.draw
    const agree = agreement(seed, step, operation)
    yield* TestClock.adjust(1)

    const answers = yield* onEach(drivers, (driver) => execute(driver, model, operation))
    yield* agree("the answer", answers)
    const answer = answers[0]![1]
    seen.set(`${operation._tag}:${answer.kind}`, (seen.get(`${operation._tag}:${answer.kind}`) ?? 0) + 1)

    yield* Effect.provideContext(synchronize(model, operation, answer), drivers[0]!.context)
    const shown = yield* onEach(drivers, (driver) => Effect.provideContext(observe(model), driver.context))
    yield* agree("the journal", shown)
    const { expected, found } = shown[0]![1]
    yield* agree("what the model says", Object.entries({ model: expected, tiers: found }))
  }
  return seen
})

const onEach = <A, E>(drivers: ReadonlyArray<Driver>, f: (driver: Driver) => Effect.Effect<A, E>) =>
  Effect.forEach(drivers, (driver) => Effect.map(f(driver), (value) => [driver.name, value] as const))

const agreement =
  (seed: string | number, step: number, operation: Operations.Operation) =>
  (what: string, values: ReadonlyArray<readonly [name: string, value: unknown]>) =>
    new Set(values.map(([, value]) => JSON.stringify(value))).size === 1
      ? Effect.void
      : Effect.fail(new Mismatch({ seed, step, operation, what, values: Object.fromEntries(values) }))

// ---------------------------------------------------------------------------------------------------------------------
// operations
// ---------------------------------------------------------------------------------------------------------------------

/** What became of an operation: `ok`, `rolled back`, or why it was refused. */
interface Answer {
  readonly kind: string
  readonly value: unknown
}

const execute = (driver: Driver, model: Model.Model, operation: Operations.Operation): Effect.Effect<Answer, Failure> =>
  Effect.gen(function* () {
    const giveBack = yield* driver.counters
    const answer = yield* answerOf(perform(model, operation))
    if (answer.kind !== "ok") yield* giveBack
    return answer
  }).pipe(Effect.provideContext(driver.context))

const answerOf = <A, R>(effect: Effect.Effect<A, Failure | RolledBack, R>): Effect.Effect<Answer, SqlError, R> =>
  Effect.flatMap(Effect.result(effect), (result) => {
    if (Result.isSuccess(result)) return Effect.succeed({ kind: "ok", value: result.success })
    const failure = result.failure
    if (failure instanceof JournalError) return Effect.succeed({ kind: failure.reason._tag, value: failure.reason })
    if (failure._tag === "RolledBack") return Effect.succeed({ kind: "rolled back", value: failure.value })
    return Effect.fail(failure)
  })

interface RolledBack {
  readonly _tag: "RolledBack"
  readonly value: unknown
}

/** In one write, which fails in the end: nothing may be left of what it did. */
const rolledBack = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  DurableWriter.use((writer) =>
    writer.write(Effect.flatMap(effect, (value) => Effect.fail<RolledBack>({ _tag: "RolledBack", value })))
  )

const perform = (
  model: Model.Model,
  operation: Operations.Operation
): Effect.Effect<unknown, Failure | RolledBack, Harness.Services> => {
  switch (operation._tag) {
    case "append": {
      const all = Effect.forEach(operation.parts, ({ events, stream }) =>
        Harness.append(stream, ...events.map(toEvent))
      )
      return operation.rollback ? rolledBack(all) : DurableWriter.use((writer) => writer.write(all))
    }
    case "checkpoint": {
      const seq = Model.seqAt(model, operation.stream, operation.back)
      return Checkpoints.use((checkpoints) => checkpoints.take({ stream: operation.stream, seq }))
    }
    case "compact": {
      const seq = Model.seqAt(model, operation.stream, operation.back)
      const compact = Compaction.use((compaction) => compaction.compact({ stream: operation.stream, seq }))
      return operation.crash ? rolledBack(compact) : compact
    }
    case "rewind": {
      const after = Model.seqAt(model, operation.stream, operation.back)
      const rewind = Rewind.use((service) => service.rewind({ stream: operation.stream, after }))
      return operation.crash ? rolledBack(rewind) : rewind
    }
    case "follow":
      return operation.stream === undefined ? followAll(model) : follow(model, operation.stream)
    case "fold": {
      const upTo = Model.seqAt(model, operation.stream, operation.back)
      return Fold.run(Harness.Story, { stream: operation.stream, upTo })
    }
  }
}

const toEvent = ({ identity, kind, value }: Operations.DrawnEvent): Event.NewEvent => {
  switch (kind) {
    case "counted":
      return Harness.Counted.make({ amount: value }, { identity })
    case "named":
      return Harness.Named.make({ name: `name-${value}` }, { identity })
    case "note":
      return Event.json("note", { value, name: "ignored" }, { identity })
  }
}

/** Everything that a follower has not seen, which the model knows the number of. */
const follow = (model: Model.Model, stream: StreamName) =>
  Journal.use((journal) =>
    journal
      .follow({ stream, after: model.followed.get(stream) ?? 0 })
      .pipe(Stream.take(Model.pending(model, stream).length), Stream.map(identify), Stream.runCollect)
  )

const followAll = (model: Model.Model) =>
  Journal.use((journal) =>
    journal
      .followAll({ after: model.followedAll })
      .pipe(Stream.take(Model.pendingAll(model).length), Stream.map(identify), Stream.runCollect)
  )

const identify = ({ payload, seq, stream, type }: Entry) => ({ stream, seq, type, payload })

// ---------------------------------------------------------------------------------------------------------------------
// model
// ---------------------------------------------------------------------------------------------------------------------

/** Tells the model what the operation has done. */
const synchronize = Effect.fnUntraced(function* (model: Model.Model, operation: Operations.Operation, answer: Answer) {
  const journal = yield* Journal
  if (operation._tag === "follow") return advance(model, operation.stream, answer)
  if (answer.kind !== "ok") return
  if (operation._tag === "rewind") {
    Model.rewind(model, operation.stream, Model.seqAt(model, operation.stream, operation.back))
  }
  Model.add(model, yield* journal.readAll({ after: model.last, compacted: "skip" }))
})

/** A follower that was overtaken by a compaction resumes where it is told to. */
const advance = (model: Model.Model, stream: StreamName | undefined, { value }: Answer): void => {
  if (stream === undefined) {
    model.followedAll =
      value instanceof BelowGlobalFloor ? value.resumeAt : (Model.pendingAll(model).at(-1) ?? model.followedAll)
  } else if (value instanceof BelowFloor) {
    model.followed.set(stream, value.resumeAt - 1)
  } else {
    const last = Model.pending(model, stream).at(-1)
    if (last !== undefined) model.followed.set(stream, last.seq)
  }
}

/** What can be seen of the journal, and what the model expects of a part of it. */
const observe = Effect.fnUntraced(function* (model: Model.Model) {
  const journal = yield* Journal
  const streams = yield* Effect.forEach(Operations.streams, (stream) =>
    Effect.gen(function* () {
      const floor = yield* journal.floor(stream)
      return {
        floor,
        entries: yield* journal.read({ stream, after: Math.max(floor - 1, 0), limit: 100_000 }),
        checkpoints: yield* Checkpoints.use((checkpoints) => checkpoints.list(stream)),
        archived: yield* Rewind.use((rewind) => rewind.archived({ stream, limit: 30 })),
        state: (yield* Fold.run(Harness.Story, { stream })).state
      }
    })
  )
  const all = yield* journal.readAll({ compacted: "skip", limit: 100_000 })
  const ledger = yield* Fold.runAll(Harness.Ledger)
  return {
    streams,
    all,
    names: yield* journal.streams(),
    ledger,
    found: {
      states: streams.map(({ state }) => state),
      ledger: ledger.state,
      entries: streams.map(({ entries }) => entries.map(identify)),
      all: all.map(identify)
    },
    expected: {
      states: yield* Effect.forEach(Operations.streams, (stream) =>
        Model.fold(Harness.Story, Model.entriesOf(model, stream))
      ),
      ledger: yield* Model.fold(Harness.Ledger, model.entries),
      entries: Operations.streams.map((stream, i) =>
        Model.entriesOf(model, stream)
          .filter(({ seq }) => seq >= streams[i]!.floor)
          .map(identify)
      ),
      all: model.entries
        .filter(({ seq, stream }) => seq >= streams[Operations.streams.indexOf(stream)]!.floor)
        .map(identify)
    }
  }
})
