/** A way to a server that can be cut, be silent, and give answers in part or slowly, while the server goes on. */
import * as Effect from "effect/Effect"
import { connect, createServer, type Socket } from "node:net"

export interface Proxy {
  readonly port: number
  /** What becomes of connections that are opened from now on. */
  mood: "pass" | "refuse" | "silent"
  /** What becomes of answers from now on, on all connections. */
  answers: Answers
  /** How many connections are open. */
  readonly open: () => number
  /** How many were opened so far. */
  readonly opened: () => number
  /** Cuts those that are open. */
  readonly cut: () => void
  /** Nothing comes back any more over those that are open. */
  readonly silence: () => void
}

/**
 * What comes at a time and has at least so many bytes comes with its first half, and nothing more does on its connection,
 * or with its other half and all that follows in pieces, each after a pause.
 */
export type Answers =
  | { readonly _tag: "Whole" }
  | { readonly _tag: "Stall"; readonly above: number }
  | { readonly _tag: "Slow"; readonly above: number; readonly bytes: number; readonly everyMs: number }

export const whole: Answers = { _tag: "Whole" }

/** Stops in the middle. */
export const stall = (above: number): Answers => ({ _tag: "Stall", above })

export const slow = (above: number, bytes: number, everyMs: number): Answers => ({
  _tag: "Slow",
  above,
  bytes,
  everyMs
})

export const make = (target: { readonly host: string; readonly port: number }) =>
  Effect.acquireRelease(
    Effect.callback<Proxy & { readonly close: () => void }>((resume) => {
      const open = new Map<Socket, Socket | undefined>()
      let opened = 0
      const server = createServer((client) => {
        opened += 1
        client.on("error", () => {})
        if (proxy.mood === "refuse") {
          client.destroy()
          return
        }
        const upstream = proxy.mood === "silent" ? undefined : connect(target)
        open.set(client, upstream)
        client.on("close", () => {
          open.delete(client)
          upstream?.destroy()
        })
        if (upstream === undefined) return
        upstream.on("error", () => client.destroy())
        client.pipe(upstream)
        giveBack(upstream, client, () => proxy.answers)
      })
      const cut = () => {
        for (const client of open.keys()) client.destroy()
      }
      const proxy: Proxy & { readonly close: () => void } = {
        port: 0,
        mood: "pass",
        answers: whole,
        open: () => open.size,
        opened: () => opened,
        cut,
        silence: () => {
          for (const upstream of open.values()) upstream?.removeAllListeners("data")
        },
        close: () => {
          cut()
          server.close()
        }
      }
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        Object.assign(proxy, { port: typeof address === "object" ? address?.port : 0 })
        resume(Effect.succeed(proxy))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

/** Once an answer was held back on a connection, so is all that comes after it there. */
const giveBack = (from: Socket, to: Socket, answers: () => Answers): void => {
  let held: Buffer | undefined
  let timer: NodeJS.Timeout | undefined
  let isOver = false
  to.on("close", () => clearInterval(timer))
  from.on("close", () => {
    isOver = true
    if (held === undefined || held.length === 0) to.end()
  })
  from.on("data", (data: Buffer) => {
    const now = answers()
    if (held !== undefined) {
      held = Buffer.concat([held, data])
    } else if (now._tag === "Whole" || data.length < now.above) {
      to.write(data)
    } else {
      const half = Math.floor(data.length / 2)
      to.write(data.subarray(0, half))
      held = data.subarray(half)
      if (now._tag === "Stall") return
      timer = setInterval(() => {
        if (held === undefined || held.length === 0) return
        to.write(held.subarray(0, now.bytes))
        held = held.subarray(now.bytes)
        if (isOver && held.length === 0) to.end()
      }, now.everyMs)
    }
  })
}
