/**
 * A shared tier in a process of its own: an HTTP cache in memory that answers at once, or accepts requests and never
 * answers, as its parent tells it.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

let isHole = false

process.on("message", (message: { readonly hole: boolean }) => {
  isHole = message.hole
  process.send?.({ hole: isHole })
})

const bodies = new Map<string, Buffer>()

const server = createServer((request, response) => {
  if (isHole) return
  const url = request.url ?? ""
  if (request.method === "PUT") {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      bodies.set(url, Buffer.concat(chunks))
      response.writeHead(201).end()
    })
    return
  }
  const found = bodies.get(url)
  if (found === undefined) {
    response.writeHead(404).end()
    return
  }
  response.writeHead(200, { "content-length": found.length })
  response.end(request.method === "HEAD" ? undefined : found)
})

server.listen(0, "127.0.0.1", () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})
