import type { Digest } from "@strata/durable/Digest"
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Pull from "effect/Pull"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as http from "node:http"
import * as https from "node:https"
import { CacheError, TimedOut, Unexpected, Unreachable } from "../../CacheError.ts"
import type { Deadlines as DeadlineOptions } from "../../HttpCache.ts"
import * as Check from "../checked.ts"
import type { LookupLimits } from "./lookupTime.ts"
import * as Pace from "./pace.ts"

/** In milliseconds. */
export interface Deadlines {
  /** To look the name up, connect, and agree on TLS. */
  readonly connectMs: number
  /** From the end of the request to the head of the answer. */
  readonly responseMs: number
  /** For a body to move on, in either direction, by its bytes at `idleBytesPerSecond`. */
  readonly idleMs: number
  readonly idleBytesPerSecond: number
  /** For a whole body, in either direction, and besides the time of its bytes at `minBytesPerSecond`. */
  readonly bodyMs: number
  readonly minBytesPerSecond: number
}

/** The deadlines of options, with their defaults. */
export const toMillis = (options: DeadlineOptions = {}): Deadlines => ({
  connectMs: Duration.toMillis(options.connect ?? "5 seconds"),
  responseMs: Duration.toMillis(options.response ?? "15 seconds"),
  idleMs: Duration.toMillis(options.idle ?? "10 seconds"),
  idleBytesPerSecond: options.idleBytesPerSecond ?? 1024,
  bodyMs: Duration.toMillis(options.body ?? "30 seconds"),
  minBytesPerSecond: options.minBytesPerSecond ?? 65_536
})

/** What a lookup has of these options. */
export const lookupLimits = (options: DeadlineOptions = {}): LookupLimits => ({
  lookupMs: Duration.toMillis(options.lookup ?? "30 seconds"),
  minBytesPerSecond: toMillis(options).minBytesPerSecond
})

export interface Connection {
  readonly tier: string
  readonly deadlines: Deadlines
  readonly agent: http.Agent
}

export interface Request<E, R> {
  readonly method: string
  readonly url: URL
  /** Besides those that frame the body. */
  readonly headers: Readonly<Record<string, Redacted.Redacted<string>>>
  readonly upload?: Upload<E, R> | undefined
}

/** A body whose content is checked while it is sent. */
export interface Upload<E, R> {
  readonly digest: Digest
  readonly size: number
  readonly content: Stream.Stream<Uint8Array, E, R>
  /** Set for a server that does not know how to consent. */
  readonly unasked?: boolean | undefined
}

export interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  /** Whether the request was sent twice, as the connection broke before it was answered. */
  readonly repeated: boolean
  /** To be run once. */
  readonly body: Stream.Stream<Uint8Array, CacheError>
}

/** A body of this size waits for the server's consent before it is sent, so that a refusal costs nothing. Bytes. */
const askFirst = 1024 * 1024

/** How long the consent is waited for: not all servers give it. Milliseconds. */
const consentMs = 1000

/** The most of a body that is sent at a time, so that progress shows while a large chunk is sent. Bytes. */
const pieceBytes = 65_536

/**
 * One request and the head of its answer. The connection is given back when the scope closes after the whole body was
 * read, and is destroyed otherwise.
 *
 * A kept connection that the server has closed meanwhile shows only when it is used: nothing was answered then, and the
 * request, which may be repeated, goes over a new one.
 */
export const run = <E = never, R = never>(
  connection: Connection,
  request: Request<E, R>
): Effect.Effect<Answer, CacheError | E, R | Scope.Scope> =>
  Effect.flatMap(open(connection, request, connection.agent), (exchange) =>
    attempt(exchange, request.upload).pipe(
      Effect.catchIf(
        () => isStale(exchange),
        () =>
          Effect.map(
            Effect.flatMap(open(connection, request, false), (fresh) => attempt(fresh, request.upload)),
            (answer) => ({ ...answer, repeated: true })
          )
      )
    )
  )

/** Connections of their own, which are closed with the scope. */
export const makeConnection = (
  tier: string,
  base: URL,
  deadlines: Deadlines
): Effect.Effect<Connection, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new (base.protocol === "https:" ? https : http).Agent({ keepAlive: true })),
      (agent) => Effect.sync(() => agent.destroy())
    ),
    (agent) => ({ tier, deadlines, agent })
  )

// ---------------------------------------------------------------------------------------------------------------------
// requests
// ---------------------------------------------------------------------------------------------------------------------

interface Exchange {
  readonly connection: Connection
  readonly request: http.ClientRequest
  readonly connected: Deferred.Deferred<void, CacheError>
  readonly consented: Deferred.Deferred<void, CacheError>
  readonly answered: Deferred.Deferred<http.IncomingMessage, CacheError>
  response: http.IncomingMessage | undefined
  /** The code of the error by which the connection broke. */
  broken: string | undefined
}

const isStale = (exchange: Exchange): boolean =>
  exchange.request.reusedSocket &&
  exchange.response === undefined &&
  (exchange.broken === "ECONNRESET" || exchange.broken === "EPIPE")

const open = <E, R>(
  connection: Connection,
  request: Request<E, R>,
  agent: http.Agent | false
): Effect.Effect<Exchange, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const { method, url } = request
      const { request: start } = url.protocol === "https:" ? https : http
      return listen(connection, start(url, { method, headers: headersOf(request), agent }))
    }),
    (exchange) => Effect.sync(() => close(exchange))
  )

const headersOf = <E, R>({ headers, upload }: Request<E, R>): http.OutgoingHttpHeaders => ({
  ...(upload === undefined ? {} : { "content-type": "application/octet-stream" }),
  ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Redacted.value(value)])),
  "accept-encoding": "identity",
  ...(upload === undefined
    ? {}
    : {
        "content-length": upload.size,
        ...(asksFirst(upload) ? { expect: "100-continue" } : {})
      })
})

const asksFirst = <E, R>({ size, unasked }: Upload<E, R>): boolean => size >= askFirst && unasked !== true

const listen = (connection: Connection, request: http.ClientRequest): Exchange => {
  const exchange: Exchange = {
    connection,
    request,
    connected: Deferred.makeUnsafe(),
    consented: Deferred.makeUnsafe(),
    answered: Deferred.makeUnsafe(),
    response: undefined,
    broken: undefined
  }
  const connected = () => Deferred.doneUnsafe(exchange.connected, Effect.void)
  request.on("socket", (socket) => {
    if (request.reusedSocket) connected()
    else socket.once(request.protocol === "https:" ? "secureConnect" : "connect", connected)
  })
  request.on("continue", () => Deferred.doneUnsafe(exchange.consented, Effect.void))
  request.on("response", (response) => {
    exchange.response = response
    response.on("error", (error) => {
      exchange.broken = codeOf(error)
    })
    connected()
    Deferred.doneUnsafe(exchange.answered, Effect.succeed(response))
  })
  request.on("error", (error) => {
    exchange.broken = codeOf(error)
    const failure = Effect.fail(failureOf(exchange))
    Deferred.doneUnsafe(exchange.connected, failure)
    Deferred.doneUnsafe(exchange.answered, failure)
  })
  return exchange
}

const close = ({ request, response }: Exchange): void => {
  if (response === undefined || !response.readableEnded || !request.writableFinished) request.destroy()
}

const attempt = <E, R>(
  exchange: Exchange,
  upload: Upload<E, R> | undefined
): Effect.Effect<Answer, CacheError | E, R> => {
  const { answered, connected, connection, request } = exchange
  const { connectMs, responseMs } = connection.deadlines
  const answer = Deferred.await(answered).pipe(within(connection, responseMs, "response"))
  const connect = Deferred.await(connected).pipe(within(connection, connectMs, "connect"))
  const send = upload === undefined ? Effect.sync(() => request.end()) : sendBody(exchange, upload)
  // A server may answer, as by a refusal, before it was sent everything.
  return Effect.andThen(connect, Effect.raceFirst(Deferred.await(answered), Effect.andThen(send, answer))).pipe(
    Effect.map((response) => ({
      status: response.statusCode ?? 0,
      headers: response.headers,
      repeated: false,
      body: Stream.fromPull(Effect.sync(() => receive(exchange, response)))
    }))
  )
}

// ---------------------------------------------------------------------------------------------------------------------
// bodies
// ---------------------------------------------------------------------------------------------------------------------

/** The last chunk is sent when the content is known to be right: what is wrong never arrives as a whole. */
const sendBody = <E, R>(exchange: Exchange, upload: Upload<E, R>): Effect.Effect<void, CacheError | E, R> => {
  const { connection, consented, request } = exchange
  const consent = Effect.suspend(() => {
    if (!asksFirst(upload)) return Effect.void
    request.flushHeaders()
    return Effect.timeoutOption(Deferred.await(consented), consentMs)
  })
  const pace = Pace.make(connection.deadlines)
  const body = Check.checked(connection.tier, upload, upload.content).pipe(
    Stream.runForEach((chunk) =>
      Effect.forEach(piecesOf(chunk), (piece) => write(exchange, pace, piece), { discard: true })
    ),
    Effect.andThen(Effect.sync(() => request.end())),
    within(connection, wholeMs(connection, upload.size), "total")
  )
  return Effect.andThen(consent, body)
}

const piecesOf = (chunk: Uint8Array): ReadonlyArray<Uint8Array> =>
  chunk.length <= pieceBytes
    ? [chunk]
    : Array.from({ length: Math.ceil(chunk.length / pieceBytes) }, (_, index) =>
        chunk.subarray(index * pieceBytes, (index + 1) * pieceBytes)
      )

const write = (
  { connection, request }: Exchange,
  pace: Pace.Pace,
  piece: Uint8Array
): Effect.Effect<void, CacheError> =>
  Effect.suspend(() => {
    const taken = request.write(piece)
      ? Effect.void
      : pace
          .wait(awaitEvent(request, ["drain"], () => !request.writableNeedDrain))
          .pipe(within(connection, pace.leftMs(), "body", connection.deadlines.idleMs))
    return Effect.map(taken, () => pace.moved(piece.length))
  })

const receive = (
  exchange: Exchange,
  response: http.IncomingMessage
): Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>, CacheError> => {
  const { connection } = exchange
  const { idleMs } = connection.deadlines
  const pace = Pace.make(connection.deadlines)
  let received = 0
  let startedAt: number | undefined
  const more = Clock.clockWith((clock) => {
    const now = clock.currentTimeMillisUnsafe()
    startedAt ??= now
    const total = wholeMs(connection, received)
    const left = total - (now - startedAt)
    const arrived = pace.wait(awaitEvent(response, ["readable", "end", "close"], () => isReady(response)))
    return left < pace.leftMs()
      ? within(connection, Math.max(0, left), "total", total)(arrived)
      : within(connection, pace.leftMs(), "body", idleMs)(arrived)
  })
  const next: Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>, CacheError> = Effect.suspend(() => {
    const chunk: Uint8Array | null = response.read()
    if (chunk !== null) {
      received += chunk.length
      pace.moved(chunk.length)
      return Effect.succeed(Arr.of(chunk))
    }
    if (response.readableEnded) return Effect.andThen(givenBack(exchange), Cause.done())
    if (response.destroyed) return Effect.fail(failureOf(exchange))
    return Effect.andThen(more, next)
  })
  return next
}

const isReady = (response: http.IncomingMessage): boolean =>
  response.readableLength > 0 || response.readableEnded || response.destroyed

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const wholeMs = ({ deadlines }: Connection, size: number): number =>
  deadlines.bodyMs + Math.ceil((size / deadlines.minBytesPerSecond) * 1000)

const awaitEvent = (
  emitter: http.IncomingMessage | http.ClientRequest,
  events: ReadonlyArray<string>,
  isReady: () => boolean
): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (isReady()) return resume(Effect.void)
    const stop = () => {
      for (const event of events) emitter.off(event, wake)
    }
    const wake = () => {
      stop()
      resume(Effect.void)
    }
    for (const event of events) emitter.on(event, wake)
    return Effect.sync(stop)
  })

/** Node gives a connection back some ticks after the end of the body, and after the request has left. */
const givenBack = ({ request }: Exchange): Effect.Effect<void> =>
  Effect.andThen(
    awaitEvent(request, ["finish", "close"], () => request.writableFinished || request.destroyed),
    nextTurn
  )

const nextTurn: Effect.Effect<void> = Effect.callback((resume) => {
  const turn = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(turn))
})

const within =
  ({ tier }: Connection, ms: number, phase: TimedOut["phase"], afterMs = ms) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | CacheError, R> =>
    Effect.timeoutOrElse(effect, {
      duration: ms,
      orElse: () => Effect.fail(new CacheError({ reason: new TimedOut({ tier, phase, afterMs }) }))
    })

const failureOf = ({ broken, connection }: Exchange): CacheError => {
  const { tier } = connection
  const detail = broken ?? "the connection was closed"
  // What answers does not speak HTTP, which is no matter of reach.
  const isForeign = detail.startsWith("HPE_")
  return new CacheError({ reason: isForeign ? new Unexpected({ tier, detail }) : new Unreachable({ tier, detail }) })
}

/** The code alone: messages of Node can quote what was sent. */
const codeOf = (error: Error): string => ("code" in error && typeof error.code === "string" ? error.code : error.name)
