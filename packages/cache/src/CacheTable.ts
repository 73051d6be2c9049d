/**
 * The tables of the local step cache as what the journal adds up to. Every change of them is an event in the write that
 * makes it, so they can be made again from the journal, with results joined by their digests, and can be checked
 * against it.
 *
 * Register {@link layerFold} in every process that compacts, or compaction loses what the tables are made of.
 *
 * @since 0.1.0
 */
import { sha256 } from "@strata/durable/Digest"
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Fold from "@strata/journal/Fold"
import * as Folds from "@strata/journal/Folds"
import { CheckpointMissing, JournalError } from "@strata/journal/JournalError"
import { JournalStorage } from "@strata/journal/JournalStorage"
import * as Projections from "@strata/journal/Projections"
import type { StreamName } from "@strata/journal/StreamName"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import * as CacheEvents from "./CacheEvents.ts"
import * as TableEvents from "./internal/tableEvents.ts"
import {
  type Restoring,
  type StagedEvent,
  type Staging,
  StepCacheStorage,
  type UnjoinedResult
} from "./StepCacheStorage.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category models
 */
export interface TableOptions {
  /** The stream in which the cache journals. Default `CacheEvents.stream`. */
  readonly stream?: StreamName | undefined
}

/**
 * What was found when the tables were compared with the journal: lists of keys, and of digests. All are empty when the
 * tables are what the journal adds up to.
 *
 * @since 0.1.0
 * @category models
 */
export interface Verification {
  /** Keys of which the journal tells what the tables lack, or have otherwise. */
  readonly missing: ReadonlyArray<string>
  /** Keys of which the tables have what the journal does not tell. */
  readonly unexplained: ReadonlyArray<string>
  /** Keys whose results are not there. */
  readonly unjoined: ReadonlyArray<string>
  /** Digests of results that are stored as something else. */
  readonly corrupt: ReadonlyArray<string>
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Rows of which the results are not there.
 *
 * @since 0.1.0
 * @category reasons
 */
export class FoldIncomplete extends Schema.TaggedError<FoldIncomplete>("@strata/cache/CacheTableError/FoldIncomplete")(
  "FoldIncomplete",
  { references: Schema.Array(Schema.Struct({ key: Schema.String, digest: Schema.String })) }
) {
  override get message(): string {
    return `${this.references.length} results are missing, the first is that of key ${this.references[0]?.key ?? ""}`
  }
}

/**
 * The tables were not rebuilt; nothing was changed.
 *
 * @since 0.1.0
 * @category errors
 */
export class CacheTableError extends Schema.TaggedError<CacheTableError>("@strata/cache/CacheTableError")(
  "CacheTableError",
  { reason: FoldIncomplete }
) {
  override get message(): string {
    return this.reason.message
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// fold
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The state of the fold.
 *
 * @since 0.1.0
 * @category folds
 */
export interface TableState {
  /** Rows of the ledger by id. */
  readonly ledger: { [id: string]: typeof CacheEvents.Recorded.schema.Type }
  /** Ids of the ledger by key. */
  readonly heads: { [key: string]: number }
}

const State: Schema.Codec<TableState, unknown> = Schema.Struct({
  ledger: Schema.Record(Schema.String, CacheEvents.Recorded.schema),
  heads: Schema.Record(Schema.String, Schema.Int)
})

/**
 * What the tables are made of, for checkpoints. A rebuild does not run it, as it holds all of the tables in memory.
 *
 * @since 0.1.0
 * @category folds
 */
export const fold: Fold.Fold<TableState, "stream"> = Fold.make({
  key: "cache-table",
  scope: "stream",
  events: TableEvents.events,
  state: State,
  initial: (): TableState => ({ ledger: {}, heads: {} }),
  reduce: (state, event) => {
    switch (event.type) {
      case "cache-recorded":
        state.ledger[event.payload.ledger] = event.payload
        state.heads[event.payload.key] = event.payload.ledger
        break
      case "cache-quarantined":
      case "cache-evicted":
        delete state.heads[event.payload.key]
        break
      case "cache-collected":
        for (const { key } of event.payload.entries) delete state.heads[key]
        for (const id of event.payload.ledger) delete state.ledger[id]
    }
    return state
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// rebuilding
// ---------------------------------------------------------------------------------------------------------------------

type Services = StepCacheStorage | JournalStorage | DurableWriter

/**
 * Makes ledger and heads what the journal adds up to, and gives the number of entries. All of it is one write, so that
 * nobody sees less than the whole; it goes through the journal by pages, so that memory stays bounded. Fails with
 * `FoldIncomplete`, which has all results that are missing, and has then changed nothing.
 *
 * Rows come back as they were. When an entry was used is not journaled: it counts as used now.
 *
 * @since 0.1.0
 * @category rebuilding
 */
export const rebuild = Effect.fn("CacheTable.rebuild")(function* (
  options?: TableOptions
): Effect.fn.Return<{ readonly entries: number }, SqlError | JournalError | CacheTableError, Services> {
  const storage = yield* StepCacheStorage
  const writer = yield* DurableWriter
  const stream = options?.stream ?? CacheEvents.stream
  return yield* writer.write(storage.withRestoring((restoring) => restore(stream, restoring)))
})

/**
 * Compares the tables with what the journal adds up to, and every result with its digest. Changes nothing. Other writers
 * wait only for the comparison itself.
 *
 * @since 0.1.0
 * @category rebuilding
 */
export const verify = Effect.fn("CacheTable.verify")(function* (
  options?: TableOptions
): Effect.fn.Return<Verification, SqlError | JournalError, Services> {
  const storage = yield* StepCacheStorage
  const stream = options?.stream ?? CacheEvents.stream
  let compared: Omit<Verification, "corrupt"> | undefined
  while (compared === undefined) compared = yield* storage.withStaging((staging) => compare(stream, staging))
  return { ...compared, corrupt: yield* corruptResults }
})

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Registers the fold, so that compaction keeps what the tables are made of.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerFold: Layer.Layer<never, JournalError, Folds.Folds> = Folds.register(fold)

/**
 * Makes the tables follow when the cache's stream is rewound: they are rebuilt in the write of the rewind, and what the
 * entries that are left do not explain is gone. The rewind is refused when a result that it would bring back is missing.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerProjection = (
  options?: TableOptions
): Layer.Layer<never, JournalError, Projections.Projections | Services> =>
  Layer.unwrap(
    Effect.map(Effect.context<Services>(), (services) =>
      Projections.register({
        name: "cache-table",
        rewind: ({ stream }) =>
          stream === (options?.stream ?? CacheEvents.stream)
            ? Effect.provideContext(rebuild(options), services)
            : Effect.void
      })
    )
  )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const pageSize = 5000

/** Restores everything; no entry of the journal can come or go meanwhile. */
const restore = Effect.fnUntraced(function* (stream: StreamName, { heads, rows }: Restoring) {
  const unjoined = new Map<number, UnjoinedResult>()
  const add = Effect.fnUntraced(function* ({ collected, events }: TableEvents.Effects) {
    for (const { digest, key, ledger } of yield* rows(events, collected)) unjoined.set(ledger, { key, digest })
    for (const ledger of collected) unjoined.delete(ledger)
  })
  const { events, position } = yield* begin(stream)
  yield* add({ events, collected: [] })
  for (let at: Position | undefined = position; at !== undefined && !at.complete;) {
    at = yield* readNext(stream, at, add)
  }
  if (unjoined.size === 0) return { entries: yield* heads(yield* Clock.currentTimeMillis) }
  return yield* new CacheTableError({ reason: new FoldIncomplete({ references: Array.from(unjoined.values()) }) })
})

/** Stages everything, and compares it in a write that nothing can come between; nothing if entries were rewound meanwhile. */
const compare = Effect.fnUntraced(function* (stream: StreamName, staging: Staging) {
  const writer = yield* DurableWriter
  const add = ({ collected, events }: TableEvents.Effects) => staging.stage(events, collected)
  const { events, position } = yield* begin(stream)
  yield* staging.stage(events, [])
  let at: Position | undefined = position
  while (at !== undefined && !at.complete) at = yield* readNext(stream, at, add)
  if (at === undefined) return undefined
  const last = at
  return yield* writer.write(
    Effect.gen(function* () {
      let at: Position | undefined = { ...last, complete: false }
      while (at !== undefined && !at.complete) at = yield* readNext(stream, at, add)
      if (at === undefined) return undefined
      const unjoined = yield* staging.unjoined
      return { ...(yield* staging.differences), unjoined: Array.from(new Set(unjoined.map(({ key }) => key))) }
    })
  )
})

/** How far the journal is read, and in which generation of it: while that stays, so do the entries. */
interface Position {
  readonly seq: number
  /** The last row of the ledger. */
  readonly ledger: number
  readonly generation: number
  readonly complete: boolean
}

const types = TableEvents.events.map(({ type }) => type)

/** Begins with the state at the floor, if there is one. */
const begin = Effect.fnUntraced(function* (stream: StreamName) {
  const journal = yield* JournalStorage
  const end = Number.MAX_SAFE_INTEGER
  const { floor, generation } = yield* journal.read({ stream, after: end, upTo: end, types, limit: 1 })
  const position: Position = { seq: floor, ledger: 0, generation, complete: false }
  if (floor === 0) return { position, events: [] }
  const found = (yield* journal.states(stream, floor)).find((state) => state.fold === fold.key)
  if (found === undefined) {
    return yield* new JournalError({ reason: new CheckpointMissing({ fold: fold.key, stream, floor }) })
  }
  const accumulator = yield* Effect.fromResult(fold.begin(JSON.parse(found.state)))
  const state = accumulator.state()
  const ledger = Object.keys(state.ledger).reduce((last, id) => Math.max(last, Number(id)), 0)
  return { position: { ...position, ledger }, events: stateEvents(state) }
})

/** Reads a page; nothing when entries that were read are no longer what the journal has. */
const readNext = Effect.fnUntraced(function* <E, R>(
  stream: StreamName,
  { generation, ledger, seq }: Position,
  add: (effects: TableEvents.Effects) => Effect.Effect<void, E, R>
): Effect.fn.Return<Position | undefined, SqlError | JournalError | E, JournalStorage | R> {
  const journal = yield* JournalStorage
  const page = yield* journal.read({ stream, after: seq, upTo: Number.MAX_SAFE_INTEGER, types, limit: pageSize })
  if (page.generation !== generation || page.floor > seq + 1) return undefined
  const effects: TableEvents.Collecting = { events: [], collected: [], ledger }
  for (const entry of page.entries) {
    const error = TableEvents.add(effects, entry)
    if (error !== undefined) return yield* error
  }
  yield* add(effects)
  return { seq: page.through, ledger: effects.ledger, generation, complete: page.complete }
})

/** Rows in the order of their ids; then a key that lost its entry loses it again. */
const stateEvents = ({ heads, ledger }: TableState): ReadonlyArray<StagedEvent> => {
  const rows = Object.values(ledger).toSorted((a, b) => a.ledger - b.ledger)
  const gone = new Set(rows.map(({ key }) => key).filter((key) => heads[key] === undefined))
  return [...rows.map(TableEvents.recorded), ...Array.from(gone, (key) => ({ key, ledger: null }) as const)]
}

const corruptResults = Effect.gen(function* () {
  const storage = yield* StepCacheStorage
  const corrupt: Array<string> = []
  let after = 0
  while (true) {
    const page = yield* storage.results(after, 500)
    for (const { digest, value } of page) if (sha256(value) !== digest) corrupt.push(digest)
    if (page.length < 500) return corrupt
    after = page.at(-1)!.id
  }
})
