// A server of the HTTP cache protocol in memory, for machines without nginx: PUT, GET and HEAD under /ac/ and /cas/. A
// body becomes visible when it is complete.
import { once } from "node:events"
import { createServer } from "node:http"

export const startCasServer = async () => {
  const bodies = new Map()
  const server = createServer((request, response) => {
    const found = bodies.get(request.url)
    if (request.method === "PUT") {
      const chunks = []
      request.on("data", (chunk) => chunks.push(chunk))
      request.on("end", () => {
        bodies.set(request.url, Buffer.concat(chunks))
        response.writeHead(201).end()
      })
    } else if (found === undefined) {
      response.writeHead(404).end()
    } else {
      response.writeHead(200, { "content-length": found.length })
      response.end(request.method === "HEAD" ? undefined : found)
    }
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    name: "node",
    url: `http://127.0.0.1:${server.address().port}/`,
    stop: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}
