import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { connect, createServer, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** Servers as processes of their own on the loopback, for tests: all of them are ended by their process id. */

/** A process cannot be started. `detail`: what it said. */
export class ServerProcessError extends Schema.TaggedError<ServerProcessError>(
  "@strata/cache/testing/ServerProcessError"
)("ServerProcessError", { detail: Schema.String }) {}

/** How to start a server. */
export interface Program {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env?: NodeJS.ProcessEnv | undefined
  /** A file that it writes when it cannot start. */
  readonly log: string
}

export interface ServerOptions {
  /** Default: a free one. */
  readonly port?: number | undefined
  /** What starts it on a port; called again for a restart. */
  readonly program: (port: number) => Effect.Effect<Program, ServerProcessError>
  /** What is said to it to learn whether it is ready, and which answers mean that it is not. Default: it is connected to. */
  readonly probe?: { readonly question: string; readonly isBusy: (answer: string) => boolean } | undefined
}

/** A server that runs. */
export interface ServerProcess {
  readonly port: number
  /** Ends it by SIGKILL. */
  readonly kill: Effect.Effect<void>
  /** Starts it again on its port, after it was killed. */
  readonly restart: Effect.Effect<void, ServerProcessError>
  /** Sends a signal to it. */
  readonly signal: (name: NodeJS.Signals) => Effect.Effect<void>
}

/** Starts a server, which answers when this ends. It is killed when the scope closes. */
export const make = Effect.fnUntraced(function* (
  options: ServerOptions
): Effect.fn.Return<ServerProcess, ServerProcessError, Scope.Scope> {
  const running: Running = { child: undefined }
  yield* Effect.addFinalizer(() => kill(running))
  const chosen = options.port === undefined ? freePort : Effect.succeed(options.port)
  // A port that was free may be taken before the server has it.
  const port = yield* Effect.retry(
    Effect.tap(chosen, (port) => start(running, port, options)),
    { times: options.port === undefined ? 4 : 0 }
  )
  return {
    port,
    kill: kill(running),
    restart: Effect.andThen(kill(running), start(running, port, options)),
    signal: (name) => Effect.sync(() => void running.child?.kill(name))
  }
})

/** A folder that is removed when the scope closes. */
export const temporaryFolder = (prefix: string): Effect.Effect<string, ServerProcessError, Scope.Scope> =>
  Effect.acquireRelease(
    attempt(() => mkdtemp(join(tmpdir(), prefix))),
    (folder) => Effect.ignore(attempt(() => rm(folder, { recursive: true, force: true })))
  )

export const attempt = <A>(f: () => Promise<A>): Effect.Effect<A, ServerProcessError> =>
  Effect.tryPromise({ try: f, catch: (cause) => new ServerProcessError({ detail: String(cause) }) })

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

interface Running {
  child: ChildProcess | undefined
}

const start = Effect.fnUntraced(function* (
  running: Running,
  port: number,
  options: ServerOptions
): Effect.fn.Return<void, ServerProcessError> {
  const { args, command, env, log } = yield* options.program(port)
  const child = spawn(command, args, { env, stdio: "ignore" }).on("error", () => {})
  running.child = child
  if (child.pid === undefined) return yield* new ServerProcessError({ detail: `there is no program ${command}` })
  yield* Effect.raceFirst(
    awaitReady(port, options.probe),
    Effect.andThen(
      exited(child),
      Effect.flatMap(
        attempt(() => readFile(log, "utf8")),
        (detail) => new ServerProcessError({ detail })
      )
    )
  )
})

const freePort: Effect.Effect<number, ServerProcessError> = Effect.callback((resume) => {
  const server = createServer()
  server.on("error", (error) => resume(Effect.fail(new ServerProcessError({ detail: error.message }))))
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** Waits in the time of the world, whichever clock a test has. */
const awaitReady = (port: number, probe: ServerOptions["probe"]): Effect.Effect<void, ServerProcessError> =>
  Effect.callback((resume) => {
    let socket: Socket | undefined
    let timer: NodeJS.Timeout | undefined
    const end = (result: Effect.Effect<void, ServerProcessError>): void => {
      socket?.destroy()
      resume(result)
    }
    const look = (left: number): void => {
      socket = connect(port, "127.0.0.1")
      const again = (detail: string): void => {
        socket?.destroy()
        if (left === 0) end(Effect.fail(new ServerProcessError({ detail })))
        else timer = setTimeout(look, 20, left - 1)
      }
      socket.on("connect", () => {
        if (probe === undefined) end(Effect.void)
        else socket?.write(probe.question)
      })
      socket.once("data", (answer) => {
        if (probe?.isBusy(String(answer)) === true) again("it does not get ready")
        else end(Effect.void)
      })
      socket.on("error", (error) => again(error.message))
    }
    look(1500)
    return Effect.sync(() => {
      clearTimeout(timer)
      socket?.destroy()
    })
  })

const exited = (child: ChildProcess): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
  })

const kill = (running: Running): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { child } = running
    running.child = undefined
    if (child === undefined) return Effect.void
    child.kill("SIGKILL")
    return exited(child)
  })
