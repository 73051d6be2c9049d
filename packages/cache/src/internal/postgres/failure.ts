import * as Predicate from "effect/Predicate"
import type { SqlError } from "effect/sql/SqlError"
import {
  type CacheErrorReason,
  Forbidden,
  Invalid,
  ReadOnly,
  TimedOut,
  Unexpected,
  Unreachable
} from "../../CacheError.ts"

/**
 * The one place that reads errors of the client: by the tag of the reason, and by SQLSTATE where that says more. Messages
 * may repeat what was sent; they go nowhere.
 *
 * Source: https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
export const meaning = (tier: string, afterMs: number, { reason }: SqlError): CacheErrorReason => {
  switch (reason._tag) {
    case "ConnectionError":
      return new Unreachable({ tier, detail: codeOf(reason.cause) ?? "the connection broke" })
    case "AuthenticationError":
    case "AuthorizationError":
      return new Forbidden({ tier })
    case "StatementTimeoutError":
      return new TimedOut({ tier, phase: "response", afterMs })
    case "UniqueViolation":
    case "ConstraintError":
      return new Invalid({ tier, detail: `the database refuses it (${codeOf(reason.cause)})` })
    default:
      return byState(tier, codeOf(reason.cause) ?? reason._tag)
  }
}

/** Whether the same statement may succeed at once: another transaction was in the way. */
export const isConflict = ({ reason }: SqlError): boolean =>
  reason._tag === "SerializationError" || reason._tag === "DeadlockError" || reason._tag === "LockTimeoutError"

/** Whether a table is not there any more. */
export const isUndefinedTable = ({ reason }: SqlError): boolean => codeOf(reason.cause) === "42P01"

export const isConstraint = ({ reason }: SqlError): boolean => reason._tag === "ConstraintError"

const byState = (tier: string, state: string): CacheErrorReason => {
  switch (state) {
    // Starting up, shutting down, or with no connection left.
    case "53300":
    case "57P01":
    case "57P02":
    case "57P03":
      return new Unreachable({ tier, detail: state })
    case "25006":
      return new ReadOnly({ tier })
    case "3D000":
      return new Invalid({ tier, detail: "there is no such database (3D000)" })
    case "3F000":
      return new Invalid({ tier, detail: "there is no schema to keep the tables in (3F000)" })
    default:
      return new Unexpected({ tier, detail: `an error of the database (${state})` })
  }
}

/** A SQLSTATE, or a code of the system. */
const codeOf = (cause: unknown): string | undefined =>
  Predicate.hasProperty(cause, "code") && typeof cause.code === "string" && /^[A-Z0-9_]{1,30}$/.test(cause.code)
    ? cause.code
    : undefined
