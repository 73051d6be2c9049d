/**
 * What the suites of the journal have in common: how a tier is given to them, and the events and folds they work with.
 *
 * @since 0.1.0
 */
import { type DurableWriter, write } from "@strata/durable/DurableWriter"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Checkpoint from "../Checkpoint.ts"
import * as Compaction from "../Compaction.ts"
import * as Event from "../Event.ts"
import * as Fold from "../Fold.ts"
import * as Folds from "../Folds.ts"
import * as Journal from "../Journal.ts"
import { JournalError } from "../JournalError.ts"
import { JournalStorage } from "../JournalStorage.ts"
import * as Projections from "../Projections.ts"
import * as Redaction from "../Redaction.ts"
import * as Rewind from "../Rewind.ts"
import { StreamName } from "../StreamName.ts"

// ---------------------------------------------------------------------------------------------------------------------
// tiers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A tier to be tested.
 *
 * @since 0.1.0
 * @category models
 */
export interface Tier<E> {
  /** Over an empty store. */
  readonly layer: Layer.Layer<JournalStorage | DurableWriter, E>
  /** Two independent ones over one empty store; a tier without a store outside the process has none. */
  readonly twoConnections?:
    | (() => Effect.Effect<
        readonly [Context.Context<JournalStorage | DurableWriter>, Context.Context<JournalStorage | DurableWriter>],
        E,
        Scope.Scope
      >)
    | undefined
}

/**
 * What tests work with.
 *
 * @since 0.1.0
 * @category models
 */
export type Services =
  | Checkpoint.Checkpoints
  | Compaction.Compaction
  | DurableWriter
  | Folds.Folds
  | Journal.Journal
  | JournalStorage
  | Projections.Projections
  | Rewind.Rewind

/**
 * How the services are made.
 *
 * @since 0.1.0
 * @category models
 */
export interface ServiceOptions extends Journal.JournalOptions {
  readonly rules?: ReadonlyArray<Redaction.Rule> | undefined
  readonly folds?: ReadonlyArray<Fold.Any> | undefined
  /** Stands between the services and the storage. */
  readonly intercept?: ((storage: JournalStorage["Service"]) => JournalStorage["Service"]) | undefined
}

/**
 * All services of the journal over a tier's storage, with a registry of folds and one of projections.
 *
 * @since 0.1.0
 * @category layers
 */
export const services = (
  options: ServiceOptions = {}
): Layer.Layer<Services, JournalError, JournalStorage | DurableWriter> => {
  const storage = Layer.effect(
    JournalStorage,
    JournalStorage.useSync((storage) => options.intercept?.(storage) ?? storage)
  )
  const registries = Layer.mergeAll(Folds.layer, Projections.layer)
  return Layer.mergeAll(
    Checkpoint.layer,
    Compaction.layer,
    Rewind.layer,
    Folds.register(...(options.folds ?? []))
  ).pipe(
    Layer.provideMerge(Journal.layer(options)),
    Layer.provideMerge(Layer.mergeAll(registries, storage)),
    Layer.provide(Redaction.layer(options.rules ?? [])),
    Layer.provideMerge(Layer.effectContext(Effect.context<DurableWriter>()))
  )
}

// ---------------------------------------------------------------------------------------------------------------------
// events and folds
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category fixtures
 */
export const Counted = Event.make("counted", Schema.Struct({ amount: Schema.Int }))

/**
 * @since 0.1.0
 * @category fixtures
 */
export const Named = Event.make("named", Schema.Struct({ name: Schema.String }))

/**
 * A fold of one stream that shows what it has seen, and in which order.
 *
 * @since 0.1.0
 * @category fixtures
 */
export const Story = Fold.make({
  key: "story",
  scope: "stream",
  events: [Counted, Named],
  state: Schema.Struct({ total: Schema.Int, names: Schema.Array(Schema.String), mix: Schema.Int }),
  initial: () => ({ total: 0, names: [], mix: 7 }),
  reduce: (state, event) =>
    event.type === "counted"
      ? { ...state, total: state.total + event.payload.amount, mix: stir(state.mix, event.payload.amount) }
      : { ...state, names: [...state.names, event.payload.name].slice(-5), mix: stir(state.mix, 1) }
})

/**
 * A fold over all streams of which the state depends on their order.
 *
 * @since 0.1.0
 * @category fixtures
 */
export const Ledger = Fold.make({
  key: "ledger",
  scope: "global",
  events: [Counted],
  state: Schema.Struct({ entries: Schema.Int, mix: Schema.Int }),
  initial: () => ({ entries: 0, mix: 11 }),
  reduce: (state, event) => ({
    entries: state.entries + 1,
    mix: stir(state.mix, event.payload.amount + event.stream.length)
  })
})

/** Depends on the order in which amounts come. */
const stir = (mix: number, amount: number): number => (mix * 31 + amount + 1) % 1_000_003

/**
 * @since 0.1.0
 * @category fixtures
 */
export const stream = StreamName.make("run/1")

/**
 * @since 0.1.0
 * @category fixtures
 */
export const other = StreamName.make("run/2")

// ---------------------------------------------------------------------------------------------------------------------
// accessors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Appends in a write of its own.
 *
 * @since 0.1.0
 * @category accessors
 */
export const append = (name: StreamName, ...events: ReadonlyArray<Event.NewEvent>) =>
  write(Journal.Journal.use((journal) => journal.append(name, events)))

/**
 * Appends one amount after the other, all in one write.
 *
 * @since 0.1.0
 * @category accessors
 */
export const count = (name: StreamName, ...amounts: ReadonlyArray<number>) =>
  append(name, ...amounts.map((amount) => Counted.make({ amount })))

/**
 * The seqs of a stream that can be read.
 *
 * @since 0.1.0
 * @category accessors
 */
export const seqs = (name: StreamName, after?: number) =>
  Effect.map(
    Journal.Journal.use((journal) => journal.read({ stream: name, after })),
    (entries) => entries.map(({ seq }) => seq)
  )

/**
 * The reason for which an operation was refused.
 *
 * @since 0.1.0
 * @category accessors
 */
export const refusal = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<JournalError["reason"], A | E, R> =>
  Effect.flatMap(Effect.flip(effect), (error) =>
    error instanceof JournalError ? Effect.succeed(error.reason) : Effect.fail(error)
  )

/**
 * Lets something happen once in the middle of a read of many pages: between two of them, or behind the last one, when
 * what was read is not used yet.
 *
 * @since 0.1.0
 * @category accessors
 */
export const interruption = () => {
  let armed: { readonly effect: Effect.Effect<void>; readonly when: "between" | "behind" } | undefined
  const interrupt = (page: { readonly complete: boolean; readonly entries: ReadonlyArray<unknown> }) =>
    Effect.suspend(() => {
      const due = armed !== undefined && page.entries.length > 0 && page.complete === (armed.when === "behind")
      if (armed === undefined || !due) return Effect.void
      const { effect } = armed
      armed = undefined
      return effect
    })
  return {
    arm: <A, E, R>(when: "between" | "behind", effect: Effect.Effect<A, E, R>): Effect.Effect<void, never, R> =>
      Effect.contextWith((context: Context.Context<R>) =>
        Effect.sync(() => {
          armed = { when, effect: Effect.asVoid(Effect.orDie(Effect.provideContext(effect, context))) }
        })
      ),
    intercept: (storage: JournalStorage["Service"]): JournalStorage["Service"] => ({
      ...storage,
      read: (options) => Effect.tap(storage.read(options), interrupt),
      readAll: (options) => Effect.tap(storage.readAll(options), interrupt)
    })
  }
}
