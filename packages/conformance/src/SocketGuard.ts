/**
 * Finds network access from inside of a write: other writers would wait for a server. The guard watches the whole process
 * and keeps what it finds, also when the code that did it recovers from every failure, as what shares a cache does.
 *
 * `@strata/conformance/setup` is a setup file for vitest that makes each such test fail.
 *
 * @since 0.1.0
 */
import { isInsideTransaction } from "@strata/durable/DurableWriter"
import { hasProperty } from "effect/Predicate"
import * as Diagnostics from "node:diagnostics_channel"
import { Socket as UdpSocket } from "node:dgram"
import { Socket } from "node:net"
import * as RunningFiber from "./internal/runningFiber.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Network access by a fiber that is inside of a write.
 *
 * @since 0.1.0
 * @category models
 */
export class SocketInWrite extends Error {
  override readonly name = "SocketInWrite"
  /** `connect`, `request` on a connection that may be there already, or `send` of a datagram. */
  readonly access: Access
  /** The span that the fiber was in. */
  readonly span: string | undefined

  constructor(access: Access, span: string | undefined) {
    super(`Network access inside of a write: ${access}${span === undefined ? "" : `, in ${span}`}`)
    this.access = access
    this.span = span
  }
}

/**
 * @since 0.1.0
 * @category models
 */
export type Access = "connect" | "request" | "send"

// ---------------------------------------------------------------------------------------------------------------------
// guard
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Begins to watch; does nothing when it watches already. What was found before stays.
 *
 * Fibers are followed across promises, timers and callbacks that they start, for which Effect's fibers are changed for
 * the rest of the process: for tests only.
 *
 * @since 0.1.0
 * @category guard
 */
export const install = (options?: {
  /** Tells the store of the writes itself, when it is a server, by its port. */
  readonly isDatabase?: ((port: number) => boolean) | undefined
}): void => {
  if (isInstalled) return
  isDatabase = options?.isDatabase ?? isDatabase
  isInstalled = true
  RunningFiber.follow()
  before(Socket.prototype, "connect", "connect", isOfDatabase)
  before(UdpSocket.prototype, "send", "send")
  for (const channel of requests) Diagnostics.subscribe(channel, () => check("request"))
}

/**
 * What was found since the last call.
 *
 * @since 0.1.0
 * @category guard
 */
export const take = (): ReadonlyArray<SocketInWrite> => found.splice(0)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

let isInstalled = false
let isDatabase = (_port: number): boolean => false
const found: Array<SocketInWrite> = []

/** A connection that is kept alive is used again without a `connect`. */
const requests = ["http.client.request.created", "undici:request:create"]

const check = (access: Access): void => {
  const fiber = RunningFiber.current()
  if (fiber === undefined || !isInsideTransaction(fiber.context)) return
  const { span } = fiber.cache
  found.push(new SocketInWrite(access, span?._tag === "Span" ? span.name : undefined))
}

const before = <K extends string>(
  target: { [P in K]: (...args: never) => unknown },
  method: K,
  access: Access,
  isAllowed: (args: ReadonlyArray<unknown>) => boolean = () => false
): void => {
  const original = target[method]
  const watched = function (this: unknown, ...args: ReadonlyArray<unknown>): unknown {
    if (!isAllowed(args)) check(access)
    return Reflect.apply(original, this, args)
  }
  Object.defineProperty(target, method, { value: watched, writable: true, configurable: true })
}

/** `connect` is given its options as they are, or in an array that `node:net` made of them. */
const isOfDatabase = ([first]: ReadonlyArray<unknown>): boolean => {
  const options: unknown = Array.isArray(first) ? first[0] : first
  return hasProperty(options, "port") && isDatabase(Number(options.port))
}
