import type { StepKey } from "@strata/cache/StepKey"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/**
 * A run that is under way. Whoever started it runs it, in a fiber and with services of its own; the others wait. When
 * it is interrupted, one of those who wait starts anew: what it had begun may depend on what ends with its fiber.
 */
interface Flight {
  readonly fresh: boolean
  /** What those who wait for it wait on; made by the first of them. Empty-handed when it was interrupted. */
  landed: Deferred.Deferred<Exit.Exit<unknown, unknown> | undefined> | undefined
  /** The runs that fibers below this one lead, or wait for; one may be in it several times. */
  readonly waitsFor: Array<Flight>
}

/** The runs that are under way, by key. */
export type Flights = Map<StepKey, Flight>

const byOwner = new WeakMap<object, Flights>()

/** The runs whose outcomes go to the same place. */
export const of = (owner: object): Flights => {
  const known = byOwner.get(owner)
  if (known !== undefined) return known
  const made: Flights = new Map()
  byOwner.set(owner, made)
  return made
}

/** The run in whose body a fiber is. */
const Current: Context.Reference<Flight | undefined> = Context.Reference<Flight | undefined>(
  "@strata/engine/internal/singleFlight",
  {
    defaultValue: () => undefined
  }
)

interface Options<A, E, R, E2> {
  readonly flights: Flights
  readonly key: StepKey
  /** Whether only the outcome of a run will do that was asked for as fresh, too. */
  readonly fresh: boolean
  readonly effect: Effect.Effect<A, E, R>
  readonly onJoin: Effect.Effect<void>
  /** What a run fails with that would wait for itself. */
  readonly recursive: () => E2
}

/** Runs an effect, unless one of its key is under way: then its exit is the exit here. Nothing is remembered. */
export const run = <A, E, R, E2>(options: Options<A, E, R, E2>): Effect.Effect<A, E | E2, R> =>
  Effect.uninterruptibleMask((restore) => {
    const attempt: Effect.Effect<A, E | E2, R> = Effect.withFiber((fiber) => {
      const parent = Context.get(fiber.context, Current)
      const flying = options.flights.get(options.key)
      if (flying === undefined) return lead(options, parent, restore)
      if (parent !== undefined && leadsTo(flying, parent, new Set())) return Effect.fail(options.recursive())
      return Effect.flatMap(restore(wait(flying, parent)), (exit) => {
        if (exit === undefined || (options.fresh && !flying.fresh)) return attempt
        // The key stands for the action, its version and so its Schemas, as it does for what comes from the cache.
        return Effect.andThen(options.onJoin, exit as Exit.Exit<A, E>)
      })
    })
    return attempt
  })

const lead = <A, E, R, E2>(
  { effect, flights, fresh, key }: Options<A, E, R, E2>,
  parent: Flight | undefined,
  restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const flight: Flight = { fresh, landed: undefined, waitsFor: [] }
  flights.set(key, flight)
  parent?.waitsFor.push(flight)
  return restore(Effect.provideService(effect, Current, flight)).pipe(
    Effect.onExit((exit) =>
      Effect.sync(() => {
        flights.delete(key)
        remove(parent, flight)
        if (flight.landed !== undefined)
          Deferred.doneUnsafe(flight.landed, Exit.succeed(interrupted(exit) ? undefined : exit))
      })
    )
  )
}

const wait = (flight: Flight, parent: Flight | undefined) =>
  Effect.suspend(() => {
    flight.landed ??= Deferred.makeUnsafe()
    parent?.waitsFor.push(flight)
    return Deferred.await(flight.landed).pipe(Effect.ensuring(Effect.sync(() => remove(parent, flight))))
  })

const remove = (parent: Flight | undefined, flight: Flight): void => {
  const index = parent?.waitsFor.indexOf(flight) ?? -1
  if (index >= 0) parent?.waitsFor.splice(index, 1)
}

const interrupted = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)

const leadsTo = (from: Flight, to: Flight, seen: Set<Flight>): boolean => {
  if (from === to) return true
  if (seen.has(from)) return false
  seen.add(from)
  return from.waitsFor.some((next) => leadsTo(next, to, seen))
}
