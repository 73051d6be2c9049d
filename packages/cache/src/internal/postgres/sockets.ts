import * as Effect from "effect/Effect"
import * as Net from "node:net"

/**
 * The connections of a client, which can be cut: the client itself gives a statement that is given up some seconds to end,
 * in which its connection is for nobody, and keeps whoever closes it waiting.
 */
export interface Sockets {
  readonly connect: () => Net.Socket
  /** Notes which are open, to be cut by the effect; the client makes new ones when they are needed. */
  readonly cutter: () => Effect.Effect<void>
}

/** `url`: one that the client takes. */
export const make = (url: URL): Sockets => {
  const open = new Set<Net.Socket>()
  const address = addressOf(url)
  return {
    connect: () => {
      const socket = Net.connect({ ...address, noDelay: true })
      open.add(socket)
      socket.once("close", () => open.delete(socket))
      return socket
    },
    cutter: () => {
      const noted = [...open]
      return Effect.sync(() => {
        for (const socket of noted) socket.destroy()
      })
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** As the client reads it. */
const addressOf = ({ hostname, port, searchParams }: URL): Net.NetConnectOpts => {
  const named = hostname === "" ? "localhost" : decodeURIComponent(hostname.replace(/^\[(.*)\]$/, "$1"))
  const host = searchParams.getAll("host").at(-1) ?? named
  const number = Number(searchParams.getAll("port").at(-1) ?? (port === "" ? 5432 : port))
  return host.startsWith("/") ? { path: `${host}/.s.PGSQL.${number}` } : { host, port: number }
}
