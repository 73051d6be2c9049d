import type { CacheError } from "@strata/cache/CacheError"
import type { PostgresClientError } from "@strata/strata/PostgresClient"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { SqlError } from "effect/sql/SqlError"
import type { DatabaseFileError } from "../../DatabaseFile.ts"
import type { DoctorCheck } from "../../Results.ts"
import { duration } from "../lines.ts"
import { sqlDetail } from "../sqlDetail.ts"

/** What is asked of a database or a tier, one thing after the other, and what came of it. */
export interface Checks {
  readonly list: ReadonlyArray<DoctorCheck>
  /** Asks, in bounded time. Gives what was found out, or nothing when it failed, which is in the list then. */
  readonly ask: <A, R>(
    check: string,
    effect: Effect.Effect<A, CheckError, R>,
    tell: (found: A) => string
  ) => Effect.Effect<A | undefined, never, R>
  readonly works: (check: string, detail: string) => void
  readonly unknown: (check: string, detail: string) => void
  readonly fails: (check: string, reason: string, detail: string) => void
}

export type CheckError = SqlError | CacheError | PostgresClientError | DatabaseFileError

export const make = (subject: DoctorCheck["subject"]): Checks => {
  const list: Array<DoctorCheck> = []
  const add = (check: string, status: DoctorCheck["status"], detail: string, reason?: string): void => {
    list.push({ subject, check, status, detail, ...(reason === undefined ? {} : { reason }) })
  }
  return {
    list,
    works: (check, detail) => add(check, "works", detail),
    unknown: (check, detail) => add(check, "unknown", detail),
    fails: (check, reason, detail) => add(check, "fails", detail, reason),
    ask: (check, effect, tell) =>
      effect.pipe(
        detached,
        Effect.timeout(deadline),
        Effect.match({
          onSuccess: (found) => {
            add(check, "works", tell(found))
            return found
          },
          onFailure: (error) => {
            add(check, "fails", detailOf(error), reasonOf(error))
            return undefined
          }
        })
      )
  }
}

/** For what has no deadline of its own that is shorter. */
const deadline = "8 seconds"

/** A client may take long to give up what a silent server does not answer: nobody waits for that. */
const detached = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkDetach(Effect.interruptible(effect)), (fiber) =>
      Effect.onInterrupt(restore(Fiber.join(fiber)), () => Effect.sync(() => fiber.interruptUnsafe()))
    )
  )

const reasonOf = (error: CheckError | Cause.TimeoutError): string =>
  Cause.isTimeoutError(error) ? "TimedOut" : error.reason._tag

const detailOf = (error: CheckError | Cause.TimeoutError): string => {
  if (Cause.isTimeoutError(error)) return `it did not answer within ${deadline}`
  return error._tag === "SqlError" ? sqlDetail(error) : error.message
}

// ---------------------------------------------------------------------------------------------------------------------
// times
// ---------------------------------------------------------------------------------------------------------------------

/** How long the middle one of five takes, in milliseconds. */
export const median = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<number, E, R> =>
  Effect.map(
    Effect.forEach([1, 2, 3, 4, 5], () => timed(effect)),
    (times) => times.map(([ms]) => ms).toSorted((a, b) => a - b)[2]!
  )

export const timed = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<readonly [ms: number, A], E, R> =>
  Effect.gen(function* () {
    const start = yield* Clock.currentTimeNanos
    const value = yield* effect
    return [Number((yield* Clock.currentTimeNanos) - start) / 1e6, value] as const
  })

export const tellMillis = (ms: number): string => `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`

/** How far the clock of a server is ahead of ours, which was asked for half of the time that the answer took. */
export const ahead = <E, R>(serverNow: Effect.Effect<number, E, R>): Effect.Effect<number, E, R> =>
  Effect.gen(function* () {
    const [ms, theirs] = yield* timed(serverNow)
    return theirs - ((yield* Clock.currentTimeMillis) - ms / 2)
  })

/** More than this is no clock that is only imprecise, and S3 refuses signatures that are much older. */
const tolerated = 5 * 60 * 1000

/** `precision` is that of the server's answer, in milliseconds. */
export const tellClock = (checks: Checks, aheadMs: number, precision: number): void => {
  const rounded = Math.abs(aheadMs) <= precision ? 0 : Math.abs(aheadMs)
  const detail =
    rounded === 0
      ? `as here, to ${duration(precision)}`
      : `${duration(rounded)} ${aheadMs > 0 ? "ahead of" : "behind"} the clock here`
  if (rounded > tolerated) checks.fails("clock", "ClockSkewed", detail)
  else checks.works("clock", detail)
}
