/**
 * A server of the Bazel HTTP cache protocol in this process, for tests and scripts. By itself it is honest and strict, as
 * bazel-remote is: it takes blobs only under their digest, entries only when they are an `ActionResult`, bodies only with
 * their length, and it gives an entry only while all its blobs are there. A behaviour, which can be changed while it
 * runs, comes before that.
 *
 * @since 0.1.0
 */
import { sha256 } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { Buffer } from "node:buffer"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import * as ActionResult from "../internal/http/actionResult.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What the server does with a request. `honest` does what an honest server would.
 *
 * @since 0.1.0
 * @category models
 */
export type Behaviour = (request: IncomingMessage, response: ServerResponse, honest: () => void) => void

/**
 * A request that has arrived.
 *
 * @since 0.1.0
 * @category models
 */
export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
}

/**
 * A server that runs.
 *
 * @since 0.1.0
 * @category models
 */
export interface CacheServer {
  readonly url: string
  readonly port: number
  /** By path: `/ac/<key>` or `/cas/<digest>`. A test may change it. */
  readonly stored: Map<string, Uint8Array>
  /** In the order of their arrival. */
  readonly seen: Array<Seen>
  /** How many connections were accepted. */
  readonly connections: () => number
  readonly behave: (behaviour: Behaviour) => void
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Starts a server on a free port of the loopback. All its connections are cut when the scope closes. `done` is the status
 * of a put that is done; servers differ in it.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  initial: Behaviour = honest,
  done: 200 | 201 | 204 = 200
): Effect.fn.Return<CacheServer, never, Scope.Scope> {
  const stored = new Map<string, Uint8Array>()
  const seen: Array<Seen> = []
  let behaviour = initial
  let connections = 0
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    seen.push({ method: request.method ?? "", path: request.url ?? "", headers: request.headers })
    behaviour(request, response, () => serve(stored, done, request, response))
  }
  const server = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const server = createServer(handle)
      // By itself Node consents to a body before anyone has looked at the head.
      server.on("checkContinue", handle)
      server.on("connection", () => (connections += 1))
      return server
    }),
    stop
  )
  const port = yield* listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    stored,
    seen,
    connections: () => connections,
    behave: (next) => {
      behaviour = next
    }
  }
})

/**
 * Nothing but the protocol.
 *
 * @since 0.1.0
 * @category behaviours
 */
export const honest: Behaviour = (_request, _response, honest) => honest()

// ---------------------------------------------------------------------------------------------------------------------
// protocol
// ---------------------------------------------------------------------------------------------------------------------

const serve = (
  stored: Map<string, Uint8Array>,
  done: number,
  request: IncomingMessage,
  response: ServerResponse
): void => {
  const path = request.url ?? ""
  const [, kind, name] = /^\/(?:.*\/)?(ac|cas)\/([0-9a-f]{64})$/.exec(path) ?? []
  if (kind === undefined || name === undefined) return end(response, 400)
  if (request.method === "PUT") return take(stored, done, request, response, { path, kind, name })
  if (request.method !== "GET" && request.method !== "HEAD") return end(response, 405)
  const content = stored.get(path)
  if (content === undefined || (kind === "ac" && !isComplete(stored, path, content))) return end(response, 404)
  response.writeHead(200, { "content-type": "application/octet-stream", "content-length": content.length })
  response.end(request.method === "HEAD" ? undefined : content)
}

const take = (
  stored: Map<string, Uint8Array>,
  done: number,
  request: IncomingMessage,
  response: ServerResponse,
  { kind, name, path }: { readonly path: string; readonly kind: string; readonly name: string }
): void => {
  if (request.headers["content-length"] === undefined) return end(response, 400)
  if (request.headers.expect !== undefined) response.writeContinue()
  const chunks: Array<Uint8Array> = []
  request.on("data", (chunk: Uint8Array) => chunks.push(chunk))
  request.on("error", () => {})
  request.on("end", () => {
    const content = Buffer.concat(chunks)
    const isRight = kind === "cas" ? sha256(content) === name : Result.isSuccess(ActionResult.decode(content))
    if (!isRight) return end(response, 400)
    stored.set(path, content)
    end(response, done)
  })
}

const isComplete = (stored: ReadonlyMap<string, Uint8Array>, path: string, content: Uint8Array): boolean => {
  const prefix = path.slice(0, path.lastIndexOf("/ac/"))
  return Result.match(ActionResult.decode(content), {
    onFailure: () => false,
    onSuccess: ({ outputFiles }) =>
      outputFiles.every(({ hash, size }) => stored.get(`${prefix}/cas/${hash}`)?.length === size)
  })
}

const end = (response: ServerResponse, status: number): void => {
  response.writeHead(status, { "content-length": 0 })
  response.end()
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const listen = (server: Server): Effect.Effect<number> =>
  Effect.callback((resume) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

const stop = (server: Server): Effect.Effect<void> =>
  Effect.callback((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })
