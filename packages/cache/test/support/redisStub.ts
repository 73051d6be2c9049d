/** A server that answers as it is told, in the protocol of Redis: for versions that nobody should run, and for lies. */
import * as Effect from "effect/Effect"
import { createServer, type Socket } from "node:net"

/** The answer to a command, as it goes over the wire; nothing, and it is never given. */
export type Answers = (command: ReadonlyArray<string>) => string | undefined

export interface RedisStub {
  readonly url: string
  /** In the order of their arrival. */
  readonly seen: Array<ReadonlyArray<string>>
  readonly behave: (answers: Answers) => void
}

export const make = Effect.fnUntraced(function* (initial: Answers) {
  const sockets = new Set<Socket>()
  const seen: Array<ReadonlyArray<string>> = []
  let answers = initial
  const server = yield* Effect.acquireRelease(
    Effect.sync(() =>
      createServer((socket) => {
        sockets.add(socket)
        socket.on("error", () => sockets.delete(socket))
        let received = ""
        socket.on("data", (data) => {
          received += data.toString("latin1")
          for (let parsed = parse(received); parsed !== undefined; parsed = parse(received)) {
            received = received.slice(parsed.length)
            // What the client says of itself.
            if (parsed.command[0] === "CLIENT") {
              socket.write("+OK\r\n")
              continue
            }
            seen.push(parsed.command)
            const answer = answers(parsed.command)
            if (answer !== undefined) socket.write(answer)
          }
        })
      })
    ),
    (server) =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        for (const socket of sockets) socket.destroy()
      })
  )
  const port = yield* Effect.callback<number>((resume) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
    })
  })
  const stub: RedisStub = {
    url: `redis://127.0.0.1:${port}`,
    seen,
    behave: (next) => {
      answers = next
    }
  }
  return stub
})

/** The first command, if it is there whole. */
const parse = (text: string): { readonly command: ReadonlyArray<string>; readonly length: number } | undefined => {
  let at = 0
  const line = (): string | undefined => {
    const end = text.indexOf("\r\n", at)
    if (end < 0) return undefined
    const found = text.slice(at, end)
    at = end + 2
    return found
  }
  const parts = Number(line()?.slice(1))
  const command: Array<string> = []
  while (command.length < parts) {
    const length = Number(line()?.slice(1) ?? Number.NaN)
    if (Number.isNaN(length) || text.length < at + length + 2) return undefined
    command.push(text.slice(at, at + length))
    at += length + 2
  }
  return Number.isNaN(parts) ? undefined : { command, length: at }
}
