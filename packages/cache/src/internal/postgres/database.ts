import * as Migrations from "@strata/durable/Migrations"
import * as Rows from "@strata/durable/Rows"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Semaphore from "effect/Semaphore"
import type { MigrationError } from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { CacheError, Forbidden, Invalid, TimedOut } from "../../CacheError.ts"
import type { Client } from "./client.ts"
import * as Failure from "./failure.ts"
import type { Settings } from "./settings.ts"
import * as Statements from "./statements.ts"
import * as Tables from "./tables.ts"

/** The database of the tier, over a client of its own. Its tables are looked for when they are first needed. */
export interface Database {
  readonly settings: Settings
  readonly statements: Statements.Statements
  /** Runs a statement. `size`: of what goes there and comes back, in bytes, if it is large. */
  readonly run: (
    statement: string,
    parameters: ReadonlyArray<unknown>,
    size?: number
  ) => Effect.Effect<ReadonlyArray<Rows.Values>, CacheError>
  /** Runs a statement, and gives nothing when a `CHECK` refuses what is stored. */
  readonly attempt: (
    statement: string,
    parameters: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<Rows.Values> | undefined, CacheError>
  /** Runs statements in one transaction, each of which sees what is committed when it starts. */
  readonly transaction: <A>(use: (run: Rows.Run) => Effect.Effect<A, SqlError>) => Effect.Effect<A, CacheError>
}

export const make = ({ cutter, sql: client }: Client, settings: Settings): Database => {
  const tables = Tables.make(settings)
  const session: Session = { client, cutter, settings, tables, turn: Semaphore.makeUnsafe(1), isReady: false }
  const statement: Rows.Run = (text, parameters = []) => client.unsafe(text, parameters).values
  return {
    settings,
    statements: Statements.make(tables),
    run: (text, parameters, size = 0) => bounded(session, size, statement(text, parameters)),
    attempt: (text, parameters) =>
      bounded(
        session,
        0,
        Effect.catchIf(statement(text, parameters), Failure.isConstraint, () => Effect.undefined)
      ),
    transaction: (use) =>
      bounded(
        session,
        0,
        readCommitted(
          client,
          Effect.suspend(() => use(statement))
        )
      )
  }
}

interface Session {
  readonly client: SqlClient.SqlClient
  readonly cutter: Client["cutter"]
  readonly settings: Settings
  readonly tables: Tables.Tables
  readonly turn: Semaphore.Semaphore
  isReady: boolean
}

// ---------------------------------------------------------------------------------------------------------------------
// deadlines
// ---------------------------------------------------------------------------------------------------------------------

type Failed = SqlError | CacheError | MigrationError

/** Runs with the tables there, within the deadline, again while others are in the way, and never in a transaction. */
const bounded = <A>(session: Session, size: number, effect: Effect.Effect<A, Failed>): Effect.Effect<A, CacheError> => {
  const { client, cutter, settings } = session
  const { connectMs, minBytesPerSecond, responseMs, tier } = settings
  const afterMs = Math.ceil(connectMs + responseMs + (size / minBytesPerSecond) * 1000)
  const prepared = Effect.tapError(Effect.andThen(ready(session), effect), (error) =>
    Effect.sync(() => {
      if (error._tag === "SqlError" && Failure.isUndefinedTable(error)) session.isReady = false
    })
  )
  return prepared.pipe(
    Effect.retry({ times: 5, while: (error) => error._tag === "SqlError" && Failure.isConflict(error) }),
    Effect.mapError((error) => toCacheError(tier, afterMs, error)),
    // Whoever asks may be in a transaction of this client, which is no business of the tier.
    Effect.updateContext((context: Context.Context<never>) => Context.omit(client.transactionService)(context)),
    detached(cutter),
    Effect.timeoutOrElse({
      duration: afterMs,
      orElse: () => Effect.fail(new CacheError({ reason: new TimedOut({ tier, phase: "response", afterMs }) }))
    })
  )
}

const toCacheError = (tier: string, afterMs: number, error: Failed): CacheError => {
  switch (error._tag) {
    case "CacheError":
      return error
    case "SqlError":
      return new CacheError({ reason: Failure.meaning(tier, afterMs, error) })
    case "MigrationError":
      return new CacheError({ reason: new Invalid({ tier, detail: `its tables cannot be made (${error.kind})` }) })
  }
}

/**
 * The client takes seconds to give up a statement when its server is silent: nobody waits for that. A server that is not
 * has ended it when the client is given up, so that the connections are as good as before.
 */
const detached =
  (cutter: Client["cutter"]) =>
  <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Effect.forkDetach(Effect.interruptible(effect)), (fiber) =>
        Effect.onInterrupt(restore(Fiber.join(fiber)), () => {
          const cut = cutter()
          fiber.interruptUnsafe()
          return Fiber.await(fiber).pipe(
            Effect.timeoutOrElse({ duration: endingMs, orElse: () => cut }),
            Effect.forkDetach,
            Effect.asVoid
          )
        })
      )
    )

/** How long a server may take to end what was given up. Milliseconds. */
const endingMs = 500

// ---------------------------------------------------------------------------------------------------------------------
// tables
// ---------------------------------------------------------------------------------------------------------------------

/** What failed is tried again by the next who comes. */
const ready = (session: Session): Effect.Effect<void, Failed> =>
  Effect.suspend(() =>
    session.isReady
      ? Effect.void
      : session.turn.withPermit(
          Effect.suspend(() =>
            session.isReady
              ? Effect.void
              : Effect.tap(prepare(session), () =>
                  Effect.sync(() => {
                    session.isReady = true
                  })
                )
          )
        )
  )

const prepare = Effect.fnUntraced(function* (session: Session): Effect.fn.Return<void, Failed> {
  const { readOnly, tier } = session.settings
  const invalid = (detail: string) => new CacheError({ reason: new Invalid({ tier, detail }) })
  let found = yield* look(session)
  if (found.encoding !== "UTF8") return yield* invalid(`the encoding of the database is ${found.encoding}, not UTF8`)
  if (!readOnly) {
    if (!found.exists && found.mayCreate === false) return yield* new CacheError({ reason: new Forbidden({ tier }) })
    yield* create(session)
    found = yield* look(session)
  }
  if (!found.exists) return yield* invalid(missingTables(session))
  if (!found.arbitrates) return yield* invalid("its table of entries has no unique index of the keys")
})

const missingTables = ({ tables }: Session): string => {
  const names = [tables.entry, tables.blob, tables.artifact].join(", ")
  return `the tables ${names} are not there, and this client is read-only: one that is not creates them`
}

const look = ({ client, settings, tables }: Session) => {
  const parameters = [tables.entry, tables.blob, tables.artifact, settings.schema ?? null]
  return Effect.map(client.unsafe(Statements.look, parameters).values, ([row]) => ({
    encoding: Rows.text(row?.[0]),
    mayCreate: row?.[1],
    exists: row?.[2] === true,
    arbitrates: row?.[3] === true
  }))
}

/** Costs one read when nothing is missing. Clients that start together wait for each other. */
const create = ({ client, settings, tables }: Session): Effect.Effect<void, SqlError | MigrationError> => {
  const migrate = Effect.provideService(Migrations.run(Tables.migrations(settings)), SqlClient.SqlClient, client)
  const { schema } = settings
  if (schema === undefined) return migrate
  return readCommitted(
    client,
    Effect.gen(function* () {
      yield* client`SELECT pg_advisory_xact_lock(hashtextextended('strata.' || ${schema}::TEXT, 0))`
      const there = yield* client`SELECT 1 FROM pg_namespace WHERE nspname = ${schema}`
      // Not `IF NOT EXISTS`, which asks for the right to create it even when it is there.
      if (there.length === 0) yield* client.unsafe(`CREATE SCHEMA ${tables.schema}`).unprepared
      yield* client`SELECT set_config('search_path', ${tables.schema}, true)`
      yield* migrate
    })
  )
}

const readCommitted = <A, E>(
  client: SqlClient.SqlClient,
  effect: Effect.Effect<A, E>
): Effect.Effect<A, E | SqlError> =>
  client
    .withTransaction(effect)
    .pipe(Effect.provideService(SqlClient.BeginTransaction, "BEGIN ISOLATION LEVEL READ COMMITTED"))
