/**
 * What servers do that they should not, as behaviours of a `CacheServer`.
 *
 * @since 0.1.0
 */
import { Buffer } from "node:buffer"
import type { IncomingMessage } from "node:http"
import type { Behaviour } from "./cacheServer.ts"

// ---------------------------------------------------------------------------------------------------------------------
// silence
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Accepts, and never answers.
 *
 * @since 0.1.0
 * @category behaviours
 */
export const blackHole: Behaviour = () => {}

/**
 * Answers the head, and no byte of the body.
 *
 * @since 0.1.0
 * @category behaviours
 */
export const stallAtBody: Behaviour = (_request, response) => {
  response.writeHead(200, { "content-length": 1000 })
  response.flushHeaders()
}

/**
 * Answers a part of the body, then nothing more.
 *
 * @since 0.1.0
 * @category behaviours
 */
export const stallInBody: Behaviour = (_request, response) => {
  response.writeHead(200, { "content-length": 1000 })
  response.write(Buffer.alloc(10))
}

/**
 * Takes no byte of what is sent to it, and never answers.
 *
 * @since 0.1.0
 * @category behaviours
 */
export const stallUpload: Behaviour = (request, response) => {
  if (request.headers.expect !== undefined) response.writeContinue()
  request.pause()
}

/**
 * Answers one byte every `everyMs`, without an end.
 *
 * @since 0.1.0
 * @category behaviours
 */
export const drip =
  (everyMs: number): Behaviour =>
  (_request, response) => {
    response.writeHead(200, {})
    const timer = setInterval(() => response.write("x"), everyMs)
    response.on("close", () => clearInterval(timer))
  }

// ---------------------------------------------------------------------------------------------------------------------
// broken connections
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Resets the connection.
 *
 * @since 0.1.0
 * @category behaviours
 */
export const reset: Behaviour = (request) => {
  request.socket.resetAndDestroy()
}

/**
 * Closes the connection in the middle of the body.
 *
 * @since 0.1.0
 * @category behaviours
 */
export const truncate: Behaviour = (_request, response) => {
  response.writeHead(200, { "content-length": 1000 })
  response.write(Buffer.alloc(10), () => response.destroy())
}

// ---------------------------------------------------------------------------------------------------------------------
// answers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * One status to everything, or to the requests of one method.
 *
 * @since 0.1.0
 * @category behaviours
 */
export const status =
  (code: number, options: { readonly method?: string; readonly body?: string } = {}): Behaviour =>
  (request, response, honest) => {
    if (options.method !== undefined && request.method !== options.method) return honest()
    response.writeHead(code, { "content-type": "text/plain" })
    response.end(options.body ?? "no")
  }

/**
 * A status to bodies above a limit, before they are read.
 *
 * @since 0.1.0
 * @category behaviours
 */
export const refuseLarger =
  (limit: number, code: 400 | 413): Behaviour =>
  (request, response, honest) => {
    if (request.method !== "PUT" || sizeOf(request) <= limit) return honest()
    response.writeHead(code, { "content-length": 0 })
    response.end()
  }

/**
 * Sends on to another place: `url`, with the path of the request.
 *
 * @since 0.1.0
 * @category behaviours
 */
export const redirect =
  (url: string, code = 307): Behaviour =>
  (request, response) => {
    response.writeHead(code, { location: `${url}${request.url ?? ""}`, "content-length": 0 })
    response.end()
  }

/**
 * These bytes to every GET.
 *
 * @since 0.1.0
 * @category behaviours
 */
export const bytes =
  (content: Uint8Array, headers: Readonly<Record<string, string>> = {}): Behaviour =>
  (request, response, honest) => {
    if (request.method !== "GET") return honest()
    response.writeHead(200, { ...headers, "content-length": content.length })
    response.end(content)
  }

/**
 * A body without an end, as fast as it is taken.
 *
 * @since 0.1.0
 * @category behaviours
 */
export const endless: Behaviour = (_request, response) => {
  response.writeHead(200, {})
  const chunk = Buffer.alloc(65_536)
  const pump = (): void => {
    while (!response.destroyed && response.write(chunk)) {
      // Until it waits.
    }
  }
  response.on("drain", pump)
  pump()
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const sizeOf = (request: IncomingMessage): number => Number(request.headers["content-length"] ?? 0)
