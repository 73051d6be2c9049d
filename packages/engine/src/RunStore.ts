/**
 * Where runs of workflows are kept: what they were started with, how far they are, the outcomes of their activities, and
 * which process runs them. A backend in plain values; the engine knows the Schemas.
 *
 * A run has one owner at a time. Each time that a run is claimed its fence rises, and whatever changes the run names the
 * fence: what an earlier owner, or an earlier life of the same one, still wants to change is refused by the statement
 * itself.
 *
 * @since 0.1.0
 */
import type { DurableWriter, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Memory from "./internal/runMemory.ts"
import * as Sql from "./internal/runSql.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Whether a run has something to do, waits to be woken, or has its result.
 *
 * @since 0.1.0
 * @category models
 */
export type Status = "running" | "suspended" | "completed"

/**
 * Whether a run was asked to end.
 *
 * @since 0.1.0
 * @category models
 */
export type Interruption = "none" | "safe" | "unsafe"

/**
 * A run.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredRun {
  /** Never used again. */
  readonly id: number
  readonly executionId: string
  readonly workflow: string
  /** The execution id of the run that waits for it. */
  readonly parent: string | null
  /** JSON. */
  readonly payload: string
  readonly status: Status
  /** Suspended by a failure, or rewound: only an explicit wake makes it run again. */
  readonly held: boolean
  /** The cause of such a failure, JSON. */
  readonly cause: string | null
  /** JSON; there when it is completed. */
  readonly result: string | null
  readonly interrupted: Interruption
  /** Which process runs it; `null` also while it waits for one. */
  readonly owner: number | null
  readonly fence: number
  /** How often it was woken. */
  readonly wakes: number
  /** How many of those were explicit. */
  readonly calls: number
  /** Milliseconds since the epoch, as the two others. */
  readonly startedAt: number
  readonly updatedAt: number
  readonly settledAt: number | null
}

/**
 * A run that is to be started.
 *
 * @since 0.1.0
 * @category models
 */
export interface NewRun {
  readonly executionId: string
  readonly workflow: string
  readonly parent: string | null
  readonly payload: string
  /** Who runs it; `null` for whoever can. */
  readonly owner: number | null
}

/**
 * Names a run as its owner has claimed it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Claimed {
  readonly id: number
  readonly fence: number
}

/**
 * Names an attempt of an activity of a run.
 *
 * @since 0.1.0
 * @category models
 */
export interface Attempt {
  readonly name: string
  readonly attempt: number
}

/**
 * The outcome of an attempt of an activity.
 *
 * @since 0.1.0
 * @category models
 */
export interface ActivityOutcome extends Attempt {
  /** JSON. */
  readonly exit: string
  /** Of that text. */
  readonly digest: string
}

/**
 * How a run that suspends leaves off. `wakes` and `calls` are those that it has seen, when it began: it goes on running
 * when it was woken since.
 *
 * @since 0.1.0
 * @category models
 */
export interface Suspension extends Claimed {
  readonly wakes: number
  readonly calls: number
  readonly held: boolean
  readonly cause: string | null
}

/**
 * Wakes a run. An automatic wake leaves alone what is held.
 *
 * @since 0.1.0
 * @category models
 */
export interface Wake {
  readonly executionId: string
  readonly explicit: boolean
  /** Asks the run to end, too; never takes back a stronger one. */
  readonly interrupt?: Exclude<Interruption, "none"> | undefined
}

/**
 * Who wakes, and what it can run itself: a run that starts to run again and is of one of these workflows is claimed for
 * it at once.
 *
 * @since 0.1.0
 * @category models
 */
export interface Waker {
  readonly owner: number
  readonly workflows: ReadonlyArray<string>
}

/**
 * A run as its owner has to know it.
 *
 * @since 0.1.0
 * @category models
 */
export interface OwnedRun extends Claimed {
  readonly wakes: number
  readonly calls: number
  readonly interrupted: Interruption
}

/**
 * Where a completed run stands in the order in which runs settled.
 *
 * @since 0.1.0
 * @category models
 */
export interface SettledPosition {
  /** Milliseconds since the epoch. */
  readonly settledAt: number
  readonly id: number
}

/**
 * A completed run. It is `needed` while a run that has waited for it has not settled, as that asks for its result again
 * whenever it is replayed.
 *
 * @since 0.1.0
 * @category models
 */
export interface SettledRun extends SettledPosition {
  readonly executionId: string
  readonly needed: boolean
}

/**
 * A process that runs workflows.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredOwner {
  /** Never used again. */
  readonly id: number
  /** Where process ids are its own. */
  readonly host: string
  readonly pid: number
  /** Tells two processes that had the same process id, one after the other. */
  readonly process: string
  /** Milliseconds since the epoch. */
  readonly leaseUntil: number
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A backend.
 *
 * @since 0.1.0
 * @category services
 */
export class RunStore extends Context.Service<
  RunStore,
  {
    /** Starts those that there are not yet, and gives them. */
    readonly start: (
      now: number,
      runs: ReadonlyArray<NewRun>
    ) => Effect.Effect<ReadonlyArray<StoredRun>, SqlError, WriteTransaction>
    /**
     * Makes a further run one that waits for this one, which is kept for as long as this run is, and gives whether the
     * run is open: not completed.
     */
    readonly await: (executionId: string, parent: string) => Effect.Effect<boolean, SqlError, WriteTransaction>
    /** Keeps outcomes, each once. Gives the places in the list of those that were kept. */
    readonly record: (
      now: number,
      outcomes: ReadonlyArray<Claimed & ActivityOutcome>
    ) => Effect.Effect<ReadonlyArray<number>, SqlError, WriteTransaction>
    /** Suspends runs, and gives those that their owner still has, as they are now. */
    readonly suspend: (
      now: number,
      suspensions: ReadonlyArray<Suspension>
    ) => Effect.Effect<ReadonlyArray<StoredRun>, SqlError, WriteTransaction>
    /** Gives runs their results. Gives the ids of those that took it, and the execution ids of those that wait for them. */
    readonly complete: (
      now: number,
      results: ReadonlyArray<Claimed & { readonly result: string }>
    ) => Effect.Effect<
      { readonly completed: ReadonlyArray<number>; readonly waiting: ReadonlyArray<string> },
      SqlError,
      WriteTransaction
    >
    /** Wakes runs, and gives those that are not completed, as they are now. */
    readonly wake: (
      now: number,
      wakes: ReadonlyArray<Wake>,
      waker: Waker | undefined
    ) => Effect.Effect<ReadonlyArray<StoredRun>, SqlError, WriteTransaction>

    /** Claims runs of these workflows that have something to do and no owner, oldest first. */
    readonly claim: (
      now: number,
      waker: Waker,
      limit: number
    ) => Effect.Effect<ReadonlyArray<StoredRun>, SqlError, WriteTransaction>
    /** Whether there are any for `claim`, at little cost. */
    readonly isWaiting: (workflows: ReadonlyArray<string>) => Effect.Effect<boolean, SqlError>
    /** Tells other processes, with the commit, where the database can: that some of them may have something to do. */
    readonly announce: Effect.Effect<void, SqlError, WriteTransaction>
    /** Gives up runs, so that others can claim them. */
    readonly release: (now: number, runs: ReadonlyArray<Claimed>) => Effect.Effect<void, SqlError, WriteTransaction>
    /** The runs of an owner, without what they were started with. */
    readonly owned: (owner: number) => Effect.Effect<ReadonlyArray<OwnedRun>, SqlError>

    readonly enroll: (owner: Omit<StoredOwner, "id">) => Effect.Effect<number, SqlError, WriteTransaction>
    /** Gives whether the owner is still one. */
    readonly renew: (owner: number, leaseUntil: number) => Effect.Effect<boolean, SqlError, WriteTransaction>
    readonly owners: Effect.Effect<ReadonlyArray<StoredOwner>, SqlError>
    /**
     * Takes owners off the list, and their runs from them. `leaseUntil` is what it was when they were found to be dead:
     * one that has renewed its lease since stays.
     */
    readonly retire: (
      now: number,
      owners: ReadonlyArray<{ readonly id: number; readonly leaseUntil: number }>
    ) => Effect.Effect<void, SqlError, WriteTransaction>

    readonly find: (executionIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<StoredRun>, SqlError>
    /** The outcomes of a run. */
    readonly outcomes: (id: number) => Effect.Effect<ReadonlyArray<ActivityOutcome>, SqlError>
    /** Which of these there are. */
    readonly present: (executionIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, SqlError>
    /** Which of these are completed. */
    readonly completedOf: (executionIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, SqlError>
    /** Runs by id, greatest first. */
    readonly list: (options: {
      readonly status: Status | undefined
      readonly workflow: string | undefined
      readonly before: number
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<StoredRun>, SqlError>
    /** Completed runs behind `after`, up to and with `upTo`, in the order in which they settled. */
    readonly settled: (options: {
      readonly after: SettledPosition
      readonly upTo: SettledPosition
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<SettledRun>, SqlError>
    /** The completed run behind which exactly `count` others have settled, if there is one. */
    readonly settledBeyond: (count: number) => Effect.Effect<SettledPosition | undefined, SqlError>

    /**
     * Takes outcomes from a run, and takes the run from its owner, who abandons it. `result`: takes that from it too.
     * `interrupted`: what it was asked for now; unchanged when absent. Unless it is still completed it is held then, and
     * waits for an explicit wake.
     */
    readonly rewind: (
      now: number,
      executionId: string,
      options: {
        readonly outcomes: ReadonlyArray<Attempt>
        readonly result: boolean
        readonly interrupted?: Interruption | undefined
      }
    ) => Effect.Effect<StoredRun | undefined, SqlError, WriteTransaction>
    /**
     * Starts a run, held, with the payload and those outcomes of another one. Gives it, or nothing when its id is taken.
     */
    readonly fork: (
      now: number,
      from: string,
      to: string,
      options: { readonly outcomes: ReadonlyArray<Attempt>; readonly interrupted: Interruption }
    ) => Effect.Effect<StoredRun | undefined, SqlError, WriteTransaction>
    /** Removes runs that are completed and not needed, with their outcomes, and gives how many there were. */
    readonly remove: (executionIds: ReadonlyArray<string>) => Effect.Effect<number, SqlError, WriteTransaction>
    /** Removes a run with its outcomes, in whatever state it is. Its owner abandons it. */
    readonly discard: (executionId: string) => Effect.Effect<void, SqlError, WriteTransaction>
  }
>()("@strata/engine/RunStore") {}

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Runs in memory: for tests, and where nothing has to survive the process. Goes with `DurableWriter.layerMemory`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<RunStore, never, DurableWriter> = Layer.effect(RunStore, Memory.make)

/**
 * Runs on SQLite or Postgres, whichever the `SqlClient` in context is of. Creates what is missing of its tables.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSql: Layer.Layer<RunStore, SqlError | Migrator.MigrationError, SqlClient.SqlClient> = Layer.effect(
  RunStore,
  SqlClient.SqlClient.use((sql) => sql.onDialectOrElse({ pg: () => Sql.makePostgres, orElse: () => Sql.makeSqlite }))
)

// ---------------------------------------------------------------------------------------------------------------------
// accessors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Whether a database has the tables of runs; it is left as it is.
 *
 * @since 0.1.0
 * @category accessors
 */
export const isIn = (sql: SqlClient.SqlClient): Effect.Effect<boolean, SqlError> =>
  Effect.map(
    sql.onDialectOrElse({
      pg: () => sql`SELECT 1 WHERE to_regclass('strata_run') IS NOT NULL`,
      orElse: () => sql`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'strata_run'`
    }),
    (rows) => rows.length > 0
  )
