import type { SqlError } from "effect/sql/SqlError"
import * as Effect from "effect/Effect"
import { hasProperty } from "effect/Predicate"
import * as Schema from "effect/Schema"
import { statSync } from "node:fs"
import type { Database } from "../Database.ts"

/* What may happen to a database while a command keeps it open for long. */

/** The file of the index was deleted, or another one is in its place: what is written goes nowhere. */
export class DatabaseGone extends Schema.TaggedError<DatabaseGone>("@strata/cli/DatabaseGone")("DatabaseGone", {
  file: Schema.String
}) {
  override get message(): string {
    return `the index ${this.file} was deleted or replaced while it was in use`
  }
}

/** Of a database that was opened just now: fails once there is no file, or another one, at its path. */
export const makeGuard = (database: Database): Effect.Effect<void, DatabaseGone> => {
  if (database._tag === "Postgres") return Effect.void
  const opened = identify(database.name)
  return Effect.suspend(() =>
    identify(database.name) === opened ? Effect.void : Effect.fail(new DatabaseGone({ file: database.name }))
  )
}

const identify = (file: string): string | undefined => {
  const stats = statSync(file, { bigint: true, throwIfNoEntry: false })
  return stats === undefined ? undefined : `${stats.dev} ${stats.ino}`
}

/** Whether a server may answer again later on as it did before: it is away, starts, stops, or has no place left. */
export const mayComeBack = ({ reason }: SqlError): boolean =>
  reason._tag === "ConnectionError" || (hasProperty(reason.cause, "code") && passing.has(reason.cause.code))

/** Codes of Postgres: https://www.postgresql.org/docs/current/errcodes-appendix.html */
const passing: ReadonlySet<unknown> = new Set(["57P01", "57P02", "57P03", "53300"])
