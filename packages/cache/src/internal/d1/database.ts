import type { D1Client } from "@effect/sql-d1/D1Client"
import * as D1 from "@strata/durable/D1"
import type * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { MigrationError } from "effect/sql/Migrator"
import type { Row } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import type { Statement } from "effect/sql/Statement"
import { CacheError, Invalid, TimedOut } from "../../CacheError.ts"
import * as Failure from "./failure.ts"
import type { Settings } from "./settings.ts"
import * as Statements from "./statements.ts"

/** The database of the tier. Its tables are looked for when they are first needed. */
export interface Database {
  readonly settings: Settings
  readonly statements: Statements.Statements
  readonly run: (
    statement: string,
    parameters: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<Rows.Values>, CacheError>
  readonly prepare: D1.D1["prepare"]
  /** Runs statements with nothing of others in between. */
  readonly batch: (
    statements: ReadonlyArray<Statement<Row>>
  ) => Effect.Effect<ReadonlyArray<ReadonlyArray<Rows.Values>>, CacheError>
}

export const make = (settings: Settings): Effect.Effect<Database, never, D1Client> =>
  Effect.gen(function* () {
    const d1 = yield* D1.make
    const context = yield* Effect.context<D1Client>()
    const migrate = Effect.provideContext(D1.migrate(Statements.migrations(settings.prefix)), context)
    const ready = yield* once<Failed>(settings.readOnly ? mustExist(d1, settings) : migrate)
    const ask = bounded(settings, ready)
    return {
      settings,
      statements: Statements.make(settings.prefix),
      run: (statement, parameters) => ask(d1.run(statement, parameters)),
      prepare: d1.prepare,
      batch: (statements) => Effect.map(ask(d1.batch(statements)), (results) => results.map(D1.values))
    }
  })

type Failed = SqlError | CacheError | MigrationError

/** Runs with the tables there, within the deadline, and again while others are in the way. */
const bounded =
  ({ deadlineMs, tier }: Settings, ready: Effect.Effect<void, Failed>) =>
  <A>(effect: Effect.Effect<A, SqlError>): Effect.Effect<A, CacheError> =>
    Effect.andThen(ready, effect).pipe(
      Effect.retry({ times: 5, while: (error) => error._tag === "SqlError" && Failure.isConflict(error) }),
      Effect.mapError((error) => toCacheError(tier, error)),
      Effect.timeoutOrElse({
        duration: deadlineMs,
        orElse: () =>
          Effect.fail(new CacheError({ reason: new TimedOut({ tier, phase: "response", afterMs: deadlineMs }) }))
      })
    )

const toCacheError = (tier: string, error: Failed): CacheError => {
  switch (error._tag) {
    case "CacheError":
      return error
    case "SqlError":
      return new CacheError({ reason: Failure.meaning(tier, error) })
    case "MigrationError":
      return new CacheError({ reason: new Invalid({ tier, detail: `its table cannot be made (${error.kind})` }) })
  }
}

const mustExist = (d1: D1.D1, { prefix, tier }: Settings): Effect.Effect<void, SqlError | CacheError> =>
  Effect.flatMap(d1.run(Statements.findTable, [Statements.tableOf(prefix)]), ([found]) => {
    if (found !== undefined) return Effect.void
    const detail = `the table ${Statements.tableOf(prefix)} is not there, and this client is read-only`
    return Effect.fail(new CacheError({ reason: new Invalid({ tier, detail }) }))
  })

/** One at a time, until it has succeeded. What failed is tried again by the next who comes. */
const once = <E>(effect: Effect.Effect<void, E>): Effect.Effect<Effect.Effect<void, E>> =>
  Effect.map(Semaphore.make(1), (turn) => {
    let isDone = false
    const first = Effect.suspend(() =>
      isDone
        ? Effect.void
        : Effect.tap(effect, () =>
            Effect.sync(() => {
              isDone = true
            })
          )
    )
    return Effect.suspend(() => (isDone ? Effect.void : turn.withPermit(first)))
  })
