/**
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Database } from "../Database.ts"
import * as Checks from "../internal/doctor/checks.ts"
import * as File from "../internal/doctor/file.ts"
import * as Postgres from "../internal/doctor/postgres.ts"
import * as Tier from "../internal/doctor/tier.ts"
import type { DoctorResult } from "../Results.ts"
import type { SharedTier } from "../SharedTier.ts"

/**
 * Connects to what is configured, and finds out what works of it. Never fails for what does not, and ends within seconds
 * whatever a server does. Nothing stays of what is tried out, but for a blob of no bytes over HTTP, and the tables and the
 * probe that the first use of a tier makes.
 *
 * @since 0.1.0
 * @category operations
 */
export const doctor = Effect.fn("Doctor.doctor")(function* (options: {
  readonly database: Database | undefined
  /** The file that was named and does not exist. */
  readonly missing: string | undefined
  readonly shared: SharedTier | undefined
}) {
  const { database, missing, shared } = options
  const ofDatabase = Checks.make("database")
  const ofShared = Checks.make("shared")
  if (database === undefined) {
    const how = missing === undefined ? "strata index DIR" : "strata index DIR --database FILE"
    ofDatabase.unknown("index", `there is none yet: ${how} creates it`)
  }
  if (database?._tag === "File") yield* File.examine(ofDatabase, database)
  else if (database !== undefined) yield* Postgres.examine(ofDatabase, database)
  const name = shared === undefined ? null : yield* Tier.examine(ofShared, shared)
  const checks = [...ofDatabase.list, ...ofShared.list]
  return {
    ok: checks.every(({ status }) => status !== "fails"),
    database: database?.name ?? missing ?? null,
    shared: name,
    checks
  } satisfies DoctorResult
})
