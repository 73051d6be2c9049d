import * as Predicate from "effect/Predicate"
import type { SqlError } from "effect/sql/SqlError"
import { type CacheErrorReason, Forbidden, Invalid, ReadOnly, Unexpected, Unreachable } from "../../CacheError.ts"

/**
 * The one place that reads errors of the database: by the tag of the reason, and by the result code of SQLite where that
 * says more. What has none did not come from the statement: D1 was not reached, or had too much to do.
 */
export const meaning = (tier: string, { reason }: SqlError): CacheErrorReason => {
  switch (reason._tag) {
    case "ConnectionError":
      return new Unreachable({ tier, detail: codeOf(reason.cause) ?? "the connection broke" })
    case "AuthenticationError":
    case "AuthorizationError":
      return new Forbidden({ tier })
    case "UniqueViolation":
    case "ConstraintError":
      return new Invalid({ tier, detail: `the database refuses it (${codeOf(reason.cause) ?? reason._tag})` })
    default:
      return byCode(tier, codeOf(reason.cause))
  }
}

/** Whether the same statement may succeed at once: another one was in the way. */
export const isConflict = ({ reason }: SqlError): boolean => reason._tag === "LockTimeoutError"

const byCode = (tier: string, code: string | undefined): CacheErrorReason => {
  switch (code) {
    case undefined:
      return new Unreachable({ tier, detail: "D1 did not run the statement" })
    case "SQLITE_READONLY":
      return new ReadOnly({ tier })
    case "SQLITE_TOOBIG":
      return new Invalid({ tier, detail: "the database refuses its size (SQLITE_TOOBIG)" })
    default:
      return new Unexpected({ tier, detail: `an error of the database (${code})` })
  }
}

const codeOf = (cause: unknown): string | undefined =>
  Predicate.hasProperty(cause, "code") && typeof cause.code === "string" ? cause.code : undefined
