import * as Option from "effect/Option"
import {
  type CacheErrorReason,
  Forbidden,
  Invalid,
  ReadOnly,
  Unexpected,
  Unreachable,
  Unsupported
} from "../../CacheError.ts"

// ---------------------------------------------------------------------------------------------------------------------
// answers
// ---------------------------------------------------------------------------------------------------------------------

/** Reads an answer, if it is of the kind that its command has. */
export type Expected<A> = (reply: unknown) => Option.Option<A>

export const bytes: Expected<Buffer> = (reply) => (reply instanceof Buffer ? Option.some(reply) : Option.none())

export const bytesOrNothing: Expected<Buffer | undefined> = (reply) =>
  reply === null ? Option.some(undefined) : bytes(reply)

export const count: Expected<number> = (reply) => (typeof reply === "number" ? Option.some(reply) : Option.none())

export const done: Expected<void> = (reply) => (reply === "OK" ? Option.some(undefined) : Option.none())

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The one place that reads error replies, by their code: their first word, in capitals. What follows it is for people,
 * and may repeat what was sent; it goes nowhere.
 *
 * Source: https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors
 */
export const meaning = (tier: string, command: string, message: string): CacheErrorReason => {
  const code = codeOf(message)
  switch (code) {
    case "NOAUTH":
    case "NOPERM":
    case "WRONGPASS":
      return new Forbidden({ tier })
    case "READONLY":
      return new ReadOnly({ tier })
    case "BUSY":
    case "CLUSTERDOWN":
    case "LOADING":
    case "MASTERDOWN":
    case "TRYAGAIN":
      return new Unreachable({ tier, detail: code })
    case "ASK":
    case "CROSSSLOT":
    case "MOVED":
      return new Unsupported({ tier, operation: "be used as one node of a cluster" })
    case "WRONGTYPE":
      return new Invalid({ tier, detail: "a key holds something else than a string" })
    case "OOM":
      return new Unexpected({ tier, detail: "its memory is full (OOM)" })
    default:
      return new Unexpected({ tier, detail: `${code} to ${command}` })
  }
}

/** Whether the server does not know such a command, or such arguments of it. */
export const isRefusal = (message: string): boolean => codeOf(message) === "ERR"

const codeOf = (message: string): string => /^[A-Z]+/.exec(message)?.[0] ?? "an error"
