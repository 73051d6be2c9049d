import type { layer as layerClient, NodeRedis } from "@effect/platform-node/NodeRedis"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import { isIP } from "node:net"
import type { ErrorReply } from "redis"
import { CacheError, type CacheErrorReason, TimedOut, Unexpected, Unreachable, Unsupported } from "../../CacheError.ts"
import * as Reply from "./reply.ts"
import type { Target } from "./target.ts"
import * as Turns from "./turns.ts"

/**
 * One connection to a server, by Effect's own client of it, opened when it is first needed and again when it broke. All
 * callers share it, also while it is being opened. It is never waited for longer than the deadlines say.
 */

export interface Deadlines {
  readonly connectMs: number
  readonly responseMs: number
  readonly minBytesPerSecond: number
}

export interface Connection {
  readonly tier: string
  /** Sends a command. `size`: of what comes back, in bytes, if it is large. */
  readonly send: <A>(expected: Reply.Expected<A>, command: Command, size?: number) => Effect.Effect<A, CacheError>
  /** Sends a command, and gives nothing when the server does not know it, or its arguments. */
  readonly attempt: <A>(expected: Reply.Expected<A>, command: Command) => Effect.Effect<A | undefined, CacheError>
}

/** The name of a command, and its arguments. */
export type Command = readonly [name: string, ...args: ReadonlyArray<string | Buffer>]

export const make = Effect.fnUntraced(function* (
  target: Target,
  deadlines: Deadlines
): Effect.fn.Return<Connection, never, Scope.Scope> {
  const holder = yield* Effect.acquireRelease(
    Effect.sync((): Holder => ({ target, deadlines, live: undefined, opening: undefined, isClosed: false })),
    shutDown
  )
  const run = <A>(expected: Reply.Expected<A>, command: Command, size = 0) =>
    Effect.flatMap(opened(holder), (live) => exchange(holder, live, expected, command, size))
  return {
    tier: target.tier,
    send: (expected, command, size) => Effect.mapError(run(expected, command, size), toCacheError(target, command)),
    attempt: (expected, command) =>
      Effect.catchIf(
        run(expected, command),
        (failure) => failure._tag === "ErrorReply" && Reply.isRefusal(failure.message),
        () => Effect.undefined
      ).pipe(Effect.mapError(toCacheError(target, command)))
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// failures
// ---------------------------------------------------------------------------------------------------------------------

/** What the server said, or why it could not be heard. */
type Failure =
  | { readonly _tag: "ErrorReply"; readonly message: string }
  | { readonly _tag: "Broken"; readonly detail: string }
  | { readonly _tag: "Failed"; readonly reason: CacheErrorReason }

const toCacheError =
  ({ tier }: Target, [command]: Command) =>
  (failure: Failure): CacheError => {
    switch (failure._tag) {
      case "ErrorReply":
        return new CacheError({ reason: Reply.meaning(tier, command, failure.message) })
      case "Broken":
        return new CacheError({ reason: new Unreachable({ tier, detail: failure.detail }) })
      case "Failed":
        return new CacheError({ reason: failure.reason })
    }
  }

/** Messages are left out, as nobody knows what is in them. */
const toFailure = (library: Library, cause: unknown): Failure => {
  if (cause instanceof library.ErrorReply) return { _tag: "ErrorReply", message: cause.message }
  if (!(cause instanceof Error)) return { _tag: "Broken", detail: "an error" }
  const detail = "code" in cause && typeof cause.code === "string" ? cause.code : cause.constructor.name
  return { _tag: "Broken", detail }
}

// ---------------------------------------------------------------------------------------------------------------------
// connections
// ---------------------------------------------------------------------------------------------------------------------

/** What all callers share. */
interface Holder {
  readonly target: Target
  readonly deadlines: Deadlines
  live: Live | undefined
  opening: Opening | undefined
  isClosed: boolean
}

type Client = NodeRedis["Service"]["client"]

/** A connection that has been opened. */
interface Live {
  readonly library: Library
  readonly client: Client
  /** Ends it, with all that is on its way. */
  readonly close: Effect.Effect<void>
  /** Who waits for an answer over it. */
  readonly turns: Turns.Turns
}

interface Opening {
  readonly done: Deferred.Deferred<Live, Failure>
  readonly abort: AbortController
}

/** The connection; a new one when there is none that works. */
const opened = (holder: Holder): Effect.Effect<Live, Failure> =>
  Effect.suspend(() => {
    const { isClosed, live } = holder
    if (isClosed) return Effect.fail({ _tag: "Broken", detail: "closed here" })
    if (live === undefined) return open(holder)
    return live.client.isReady ? Effect.succeed(live) : Effect.andThen(retire(holder, live), open(holder))
  })

/** Its caller may be interrupted, but not what others wait for too. */
const open = (holder: Holder): Effect.Effect<Live, Failure> =>
  Effect.uninterruptibleMask((restore) => {
    if (holder.opening !== undefined) return restore(Deferred.await(holder.opening.done))
    const opening: Opening = { done: Deferred.makeUnsafe(), abort: new AbortController() }
    holder.opening = opening
    const settle = (exit: Exit.Exit<Live, Failure>) => {
      holder.opening = undefined
      if (Exit.isSuccess(exit)) holder.live = exit.value
      return Deferred.done(opening.done, exit)
    }
    return Effect.onExit(connect(holder, opening.abort), settle).pipe(
      Effect.forkDetach({ uninterruptible: true }),
      Effect.andThen(restore(Deferred.await(opening.done)))
    )
  })

/** Gives a connection to nobody any more, and ends it when nobody uses it. */
const retire = (holder: Holder, live: Live): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (holder.live === live) holder.live = undefined
    return live.turns.waiting.size === 0 ? live.close : Effect.void
  })

const shutDown = (holder: Holder): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { live, opening } = holder
    holder.isClosed = true
    opening?.abort.abort()
    const late = opening === undefined ? Effect.undefined : Effect.option(Deferred.await(opening.done))
    return Effect.flatMap(late, (late) => {
      const last = late !== undefined && Option.isSome(late) ? late.value : live
      return last === undefined ? Effect.void : last.close
    })
  })

/**
 * Opens a connection, within the deadline. The client waits for its server without end when it is to close while it
 * connects, so that it is never interrupted: its socket is cut, which it takes for a failure.
 */
const connect = Effect.fnUntraced(function* (
  { deadlines, target }: Holder,
  abort: AbortController
): Effect.fn.Return<Live, Failure> {
  const library = yield* load(target)
  const scope = yield* Scope.make()
  let isLate = false
  const deadline = Effect.sync(() => {
    isLate = true
    abort.abort()
  })
  const timer = yield* Effect.forkChild(Effect.delay(deadline, deadlines.connectMs))
  const built = yield* Effect.exit(Layer.buildWithScope(layer(library, target, abort.signal), scope))
  yield* Fiber.interrupt(timer)
  if (Exit.isSuccess(built)) {
    const { client } = Context.get(built.value, library.NodeRedis)
    // The client's own end is to wait for what is on its way.
    const close = Effect.andThen(
      Effect.sync(() => client.destroy()),
      Scope.close(scope, Exit.void)
    )
    return { library, client, close, turns: Turns.make() }
  }
  yield* Scope.close(scope, built)
  if (isLate) {
    const { connectMs: afterMs } = deadlines
    return yield* failed(new TimedOut({ tier: target.tier, phase: "connect", afterMs }))
  }
  const error = Exit.findErrorOption(built)
  return yield* Effect.fail(toFailure(library, Option.isSome(error) ? error.value.cause : undefined))
})

/** What it has to say is in the errors of the calls. */
const layer = (library: Library, target: Target, signal: AbortSignal) =>
  library
    .layer({
      socket: socketOf(target, signal),
      ...(target.credentials === undefined
        ? {}
        : {
            username: target.credentials.username ?? "default",
            password: Redacted.value(target.credentials.password)
          }),
      database: target.database,
      RESP: 2,
      maintNotifications: "disabled",
      disableOfflineQueue: true,
      commandOptions: { timeout: 0 }
    })
    .pipe(Layer.provide(Layer.succeed(References.MinimumLogLevel, "None")))

/** The signal is an option of Node's sockets, which the client passes on. */
const socketOf = (target: Target, signal: AbortSignal) => ({
  host: target.host,
  port: target.port,
  ...(target.isTls ? tls(target) : {}),
  connectTimeout: 0,
  reconnectStrategy: false as const,
  signal
})

/** Names the server to itself, unless it has only an address, which is not allowed there. */
const tls = ({ host }: Target) => ({ tls: true, ...(isIP(host) === 0 ? { servername: host } : {}) }) as const

// ---------------------------------------------------------------------------------------------------------------------
// exchange
// ---------------------------------------------------------------------------------------------------------------------

const exchange = <A>(
  holder: Holder,
  live: Live,
  expected: Reply.Expected<A>,
  command: Command,
  size: number
): Effect.Effect<A, Failure> => {
  const detail = `an answer to ${command[0]} that it does not have`
  return Effect.flatMap(answered(holder, live, command, size), (reply) => {
    const answer = expected(reply)
    return Option.isSome(answer)
      ? Effect.succeed(answer.value)
      : failed(new Unexpected({ tier: holder.target.tier, detail }))
  })
}

/** A connection that has failed, or has an answer on its way that nobody waits for, is for no further command. */
const answered = (holder: Holder, live: Live, command: Command, size: number): Effect.Effect<unknown, Failure> => {
  const { client, library, turns } = live
  const reply = Effect.tryPromise({
    try: (abortSignal) => client.sendCommand([...command], { abortSignal, typeMapping: library.binary }),
    catch: (cause) => toFailure(library, cause)
  })
  return Effect.acquireUseRelease(
    Turns.enter(
      turns,
      command.reduce((sum, part) => sum + part.length, size)
    ),
    () =>
      Effect.raceFirst(
        reply,
        Effect.flatMap(Turns.silence(turns, holder.deadlines), (afterMs) =>
          failed(new TimedOut({ tier: holder.target.tier, phase: "response", afterMs }))
        )
      ),
    (turn, exit) => {
      const isAnswered = isAnswer(exit)
      return Effect.andThen(
        Turns.leave(turns, turn, isAnswered),
        holder.live === live && isAnswered ? Effect.void : retire(holder, live)
      )
    }
  )
}

const isAnswer = (exit: Exit.Exit<unknown, Failure>): boolean => {
  const failure = Exit.findErrorOption(exit)
  return Exit.isSuccess(exit) || (Option.isSome(failure) && failure.value._tag === "ErrorReply")
}

const failed = (reason: CacheErrorReason): Effect.Effect<never, Failure> => Effect.fail({ _tag: "Failed", reason })

// ---------------------------------------------------------------------------------------------------------------------
// library
// ---------------------------------------------------------------------------------------------------------------------

interface Library {
  readonly NodeRedis: typeof NodeRedis
  readonly layer: typeof layerClient
  readonly ErrorReply: typeof ErrorReply
  /** Makes strings of the server bytes. */
  readonly binary: Record<number, typeof Buffer>
}

/** Loaded by whoever uses the tier, and not installed by others. */
const load = ({ tier }: Target): Effect.Effect<Library, Failure> =>
  Effect.tryPromise({
    try: async () => {
      const [{ NodeRedis, layer }, { ErrorReply, RESP_TYPES }] = await Promise.all([
        import("@effect/platform-node/NodeRedis"),
        import("redis")
      ])
      return { NodeRedis, layer, ErrorReply, binary: { [RESP_TYPES.BLOB_STRING]: Buffer } }
    },
    catch: (): Failure => ({
      _tag: "Failed",
      reason: new Unsupported({
        tier,
        operation: "be used without the packages @effect/platform-node and redis, which are to be installed"
      })
    })
  })
