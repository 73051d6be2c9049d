import * as Migrations from "@strata/durable/Migrations"
import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ActivityOutcome, Attempt, Claimed, RunStore } from "../RunStore.ts"
import { migrationsPostgres } from "./runPostgresSchema.ts"
import * as PostgresStatements from "./runPostgresStatements.ts"
import * as RunRows from "./runRows.ts"
import { migrationsSqlite } from "./runSchema.ts"
import * as SqliteStatements from "./runStatements.ts"

type Store = RunStore["Service"]

/** What both databases have: the same statements with the same parameters, each in its own words. */
type Statements = { readonly [Name in keyof typeof SqliteStatements]: string }

const make = Effect.fnUntraced(function* (
  migrations: Migrations.MigrationSet,
  statements: Statements
): Effect.fn.Return<Store, SqlError | Migrator.MigrationError, SqlClient.SqlClient> {
  yield* Migrations.run(migrations)
  const run = yield* Rows.run
  return {
    ...running(run, statements),
    ...owning(run, statements),
    ...reading(run, statements),
    ...changing(run, statements)
  }
})

export const makeSqlite = make(migrationsSqlite, SqliteStatements)

export const makePostgres = make(migrationsPostgres, PostgresStatements)

// ---------------------------------------------------------------------------------------------------------------------
// running
// ---------------------------------------------------------------------------------------------------------------------

const running = (
  run: Rows.Run,
  Statements: Statements
): Pick<Store, "start" | "await" | "record" | "suspend" | "complete" | "wake"> => ({
  start: (now, runs) =>
    Effect.map(
      run(Statements.start, [
        JSON.stringify(
          runs.map(({ executionId, owner, parent, payload, workflow }) => [
            executionId,
            workflow,
            parent,
            payload,
            owner
          ])
        ),
        now
      ]),
      (rows) => {
        const ids = new Map(rows.map((row) => [Rows.text(row[1]), Rows.integer(row[0])]))
        return runs.flatMap((run) => {
          const id = ids.get(run.executionId)
          ids.delete(run.executionId)
          return id === undefined ? [] : [RunRows.started(now, id, run)]
        })
      }
    ),

  await: (executionId, parent) =>
    Effect.flatMap(run(Statements.isOpen, [executionId]), (rows) =>
      Effect.as(run(Statements.addWaiter, [executionId, parent]), rows.length > 0)
    ),

  record: (now, outcomes) =>
    Effect.map(
      run(Statements.record, [
        JSON.stringify(
          outcomes.map(({ attempt, digest, exit, fence, id, name }) => [id, fence, name, attempt, exit, digest])
        ),
        now
      ]),
      (rows) => kept(outcomes, rows)
    ),

  suspend: (now, suspensions) =>
    Effect.map(
      run(Statements.suspend, [
        JSON.stringify(
          suspensions.map(({ calls, cause, fence, held, id, wakes }) => [id, fence, wakes, calls, held ? 1 : 0, cause])
        ),
        now
      ]),
      RunRows.toRuns
    ),

  complete: Effect.fnUntraced(function* (now, results) {
    const rows = yield* run(Statements.complete, [
      JSON.stringify(results.map(({ fence, id, result }) => [id, fence, result])),
      now
    ])
    const completed = rows.map((row) => Rows.integer(row[0]))
    const waiting = new Set(rows.flatMap((row) => Rows.textOrNull(row[1]) ?? []))
    const others = yield* run(Statements.waiters, [JSON.stringify(completed)])
    for (const row of others) waiting.add(Rows.text(row[0]))
    return { completed, waiting: [...waiting] }
  }),

  wake: (now, wakes, waker) =>
    Effect.map(
      run(Statements.wake, [
        JSON.stringify(
          RunRows.merged(wakes).map(({ executionId, explicit, interrupt }) => [
            executionId,
            explicit ? 1 : 0,
            interrupt ?? null
          ])
        ),
        now,
        waker?.owner ?? null,
        JSON.stringify(waker?.workflows ?? [])
      ]),
      RunRows.toRuns
    )
})

/** The places of those whose rows came back. The same outcome twice in one batch is kept once. */
const kept = (
  outcomes: ReadonlyArray<Claimed & ActivityOutcome>,
  rows: ReadonlyArray<Rows.Values>
): ReadonlyArray<number> => {
  const key = (id: unknown, attempt: unknown, name: unknown) => `${Rows.integer(id)}/${Rows.integer(attempt)}/${name}`
  const inserted = new Set(rows.map((row) => key(row[0], row[2], row[1])))
  return outcomes.flatMap(({ attempt, id, name }, place) => (inserted.delete(key(id, attempt, name)) ? [place] : []))
}

// ---------------------------------------------------------------------------------------------------------------------
// owning
// ---------------------------------------------------------------------------------------------------------------------

const owning = (
  run: Rows.Run,
  Statements: Statements
): Pick<
  Store,
  "claim" | "isWaiting" | "announce" | "release" | "owned" | "enroll" | "renew" | "owners" | "retire"
> => ({
  claim: (now, waker, limit) =>
    Effect.map(run(Statements.claim, [waker.owner, now, JSON.stringify(waker.workflows), limit]), RunRows.toRuns),
  isWaiting: (workflows) =>
    Effect.map(run(Statements.isWaiting, [JSON.stringify(workflows)]), (rows) => rows.length > 0),
  announce: Statements.announce === "" ? Effect.void : Effect.asVoid(run(Statements.announce)),
  release: (now, runs) =>
    Effect.asVoid(run(Statements.release, [JSON.stringify(runs.map(({ fence, id }) => [id, fence])), now])),
  owned: (owner) => Effect.map(run(Statements.owned, [owner]), (rows) => rows.map(RunRows.toOwned)),

  enroll: ({ host, leaseUntil, pid, process }) =>
    Effect.map(run(Statements.enroll, [host, pid, process, leaseUntil]), ([row]) => Rows.integer(row?.[0])),
  renew: (owner, leaseUntil) => Effect.map(run(Statements.renew, [owner, leaseUntil]), (rows) => rows.length > 0),
  owners: Effect.map(run(Statements.owners), (rows) => rows.map(RunRows.toOwner)),
  retire: Effect.fnUntraced(function* (now, owners) {
    const rows = yield* run(Statements.retire, [JSON.stringify(owners.map(({ id, leaseUntil }) => [id, leaseUntil]))])
    const retired = rows.map((row) => Rows.integer(row[0]))
    if (retired.length > 0) yield* run(Statements.takeRuns, [JSON.stringify(retired), now])
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// reading
// ---------------------------------------------------------------------------------------------------------------------

const reading = (
  run: Rows.Run,
  Statements: Statements
): Pick<Store, "find" | "outcomes" | "present" | "completedOf" | "list" | "settled" | "settledBeyond"> => ({
  find: (executionIds) => Effect.map(run(Statements.find, [JSON.stringify(executionIds)]), RunRows.toRuns),
  outcomes: (id) => Effect.map(run(Statements.outcomes, [id]), (rows) => rows.map(RunRows.toOutcome)),
  present: (executionIds) =>
    Effect.map(run(Statements.present, [JSON.stringify(executionIds)]), (rows) => rows.map((row) => Rows.text(row[0]))),
  completedOf: (executionIds) =>
    Effect.map(run(Statements.completedOf, [JSON.stringify(executionIds)]), (rows) =>
      rows.map((row) => Rows.text(row[0]))
    ),
  list: ({ before, limit, status, workflow }) =>
    Effect.map(run(Statements.list, [before, status ?? null, workflow ?? null, limit]), (rows) =>
      rows.map(RunRows.toRun)
    ),
  settled: ({ after, limit, upTo }) =>
    Effect.map(run(Statements.settled, [after.settledAt, after.id, upTo.settledAt, upTo.id, limit]), (rows) =>
      rows.map(RunRows.toSettled)
    ),
  settledBeyond: (count) =>
    Effect.map(run(Statements.settledBeyond, [count]), ([row]) => row && RunRows.toPosition(row))
})

// ---------------------------------------------------------------------------------------------------------------------
// changing
// ---------------------------------------------------------------------------------------------------------------------

const changing = (run: Rows.Run, Statements: Statements): Pick<Store, "rewind" | "fork" | "remove" | "discard"> => ({
  rewind: Effect.fnUntraced(function* (now, executionId, { interrupted, outcomes, result }) {
    if (outcomes.length > 0) yield* run(Statements.dropOutcomes, [executionId, pairs(outcomes)])
    const [row] = yield* run(Statements.rewind, [executionId, result ? 1 : 0, interrupted ?? null, now])
    return row && RunRows.toRun(row)
  }),
  fork: Effect.fnUntraced(function* (now, from, to, { interrupted, outcomes }) {
    const [row] = yield* run(Statements.fork, [from, to, interrupted, now])
    if (row === undefined) return undefined
    const forked = RunRows.toRun(row)
    if (outcomes.length > 0) yield* run(Statements.copyOutcomes, [from, forked.id, pairs(outcomes)])
    return forked
  }),
  remove: Effect.fnUntraced(function* (executionIds) {
    return (yield* run(Statements.remove, [JSON.stringify(executionIds)])).length
  }),
  discard: (executionId) => Effect.asVoid(run(Statements.discard, [executionId]))
})

const pairs = (outcomes: ReadonlyArray<Attempt>): string =>
  JSON.stringify(outcomes.map(({ attempt, name }) => [name, attempt]))
