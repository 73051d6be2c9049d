import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import type { DirtyQueueStorage, StorageFilter } from "../DirtyQueueStorage.ts"
import * as Statements from "./statements.ts"
import { toCounts, toRegistration, toRow } from "./storedRows.ts"

/*
 * What is one statement, and so the same with transactions and without them: SQLite and D1 share it.
 */

export const single = (
  run: Rows.Run
): Pick<
  DirtyQueueStorage<never>,
  "databaseTime" | "registrations" | "markServed" | "readyScopes" | "list" | "stats" | "nextReadyAt" | "currentVersion"
> => ({
  databaseTime: Effect.map(run(Statements.databaseTime), ([row]) => Rows.integer(row?.[0])),

  registrations: (filter) =>
    Effect.map(run(Statements.listRegistrations(filterOf(filter)), filterParameters(filter)), (rows) =>
      rows.map(toRegistration)
    ),

  markServed: (now, { follower, scope }) =>
    Effect.map(run(Statements.markServed, [follower, scope, now]), (rows) => rows.length > 0),

  readyScopes: (now, { follower, limit }) =>
    Effect.map(run(Statements.readyScopes, [follower, now, limit]), (rows) => rows.map((row) => Rows.text(row[0]))),

  list: (options) =>
    Effect.map(
      run(Statements.listRows(options.kind, filterOf(options)), [
        options.prefix,
        options.sinceAtMost,
        options.limit,
        options.after?.registration ?? 0,
        options.after?.path ?? "",
        ...filterParameters(options)
      ]),
      (rows) => rows.map(toRow)
    ),

  stats: (now, filter) =>
    Effect.map(run(Statements.stats(filterOf(filter)), [now, ...filterParameters(filter)]), (rows) =>
      rows.map(toCounts)
    ),

  nextReadyAt: (filter) =>
    Effect.map(run(Statements.nextReadyAt(filterOf(filter)), filterParameters(filter)), ([row]) => {
      const times = [row?.[0], row?.[1]].flatMap((time) => (time == null ? [] : [Rows.integer(time)]))
      return times.length === 0 ? null : Math.min(...times)
    }),

  currentVersion: Effect.map(run(Statements.currentVersion), ([row]) => Rows.integer(row?.[0]))
})

export const findRegistration = (run: Rows.Run) => (follower: string, scope: string) =>
  Effect.map(run(Statements.findRegistration, [follower, scope]), (rows) => rows.map(toRegistration))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

export const filterOf = (filter: StorageFilter): Statements.RegistrationFilter => ({
  follower: filter.follower !== undefined,
  scope: filter.scope !== undefined
})

/** The values of a filter's two numbered parameters, as far as the statement knows them. */
export const filterParameters = (filter: StorageFilter): ReadonlyArray<string | null> => {
  if (filter.scope !== undefined) return [filter.follower ?? null, filter.scope]
  return filter.follower === undefined ? [] : [filter.follower]
}
