import { hasProperty } from "effect/Predicate"
import type { SqlError } from "effect/sql/SqlError"

/** What a Postgres says is in its own words; of a connection only a code is sure to repeat no address. */
export const sqlDetail = ({ message, reason: { _tag, cause } }: SqlError): string => {
  switch (_tag) {
    case "ConnectionError": {
      const code = hasProperty(cause, "code") && typeof cause.code === "string" ? ` (${cause.code})` : ""
      return `it cannot be reached${code}`
    }
    case "AuthenticationError":
      return "it refuses this user, or the password"
    default:
      return (cause instanceof Error ? cause.message : message).split("\n", 1)[0]!
  }
}
