import { hasProperty } from "effect/Predicate"
import type { SqlError } from "effect/sql/SqlError"

/** What a Postgres says is in its own words, what a connection lacks in those of the driver, which hold no address. */
export const sqlDetail = ({ message, reason: { _tag, cause } }: SqlError): string => {
  switch (_tag) {
    case "ConnectionError": {
      const code = hasProperty(cause, "code") && typeof cause.code === "string" ? cause.code : undefined
      return code === undefined ? `it cannot be reached: ${withoutDriver(message)}` : `it cannot be reached (${code})`
    }
    case "AuthenticationError":
      return "it refuses this user, or the password"
    default:
      return (cause instanceof Error ? cause.message : message).split("\n", 1)[0]!
  }
}

const withoutDriver = (message: string): string => message.replace(/^PgConnection: /, "").split("\n", 1)[0]!
