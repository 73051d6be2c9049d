/** A way to a server that can be cut, and be silent, while the server goes on. */
import * as Effect from "effect/Effect"
import { connect, createServer, type Socket } from "node:net"

export interface Proxy {
  readonly port: number
  /** What becomes of connections that are opened from now on. */
  mood: "pass" | "refuse" | "silent"
  /** Cuts those that are open. */
  readonly cut: () => void
  /** Nothing comes back any more over those that are open. */
  readonly silence: () => void
}

export const make = (target: { readonly host: string; readonly port: number }) =>
  Effect.acquireRelease(
    Effect.callback<Proxy & { readonly close: () => void }>((resume) => {
      const open = new Set<readonly [Socket, Socket | undefined]>()
      const server = createServer((client) => {
        client.on("error", () => {})
        if (proxy.mood === "refuse") {
          client.destroy()
          return
        }
        const upstream = proxy.mood === "silent" ? undefined : connect(target)
        const pair = [client, upstream] as const
        open.add(pair)
        client.on("close", () => {
          open.delete(pair)
          upstream?.destroy()
        })
        if (upstream === undefined) return
        upstream.on("error", () => client.destroy())
        upstream.on("close", () => client.destroy())
        client.pipe(upstream)
        upstream.pipe(client)
      })
      const cut = () => {
        for (const [client] of open) client.destroy()
      }
      const proxy: Proxy & { readonly close: () => void } = {
        port: 0,
        mood: "pass",
        cut,
        silence: () => {
          for (const [client, upstream] of open) upstream?.unpipe(client)
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
