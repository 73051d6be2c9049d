/**
 * A real Redis, or Valkey, that serves as a shared tier, for tests and scripts: a server on a free port of the loopback,
 * over a temporary folder. A server that was not started here is used only when `STRATA_TEST_REDIS_URL` names it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { connect, createServer, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category models
 */
export interface RedisOptions {
  /** Settings of its configuration, as `["requirepass", "secret"]`. Default: it keeps what it has in memory only. */
  readonly settings?: ReadonlyArray<readonly [name: string, ...values: ReadonlyArray<string>]> | undefined
  /** Whether it appends what it is told to a file, and has it again after a restart. Default `false`. */
  readonly durable?: boolean | undefined
}

/**
 * A server that runs.
 *
 * @since 0.1.0
 * @category models
 */
export interface Redis {
  readonly url: string
  readonly port: number
  /** Ends it by SIGKILL. */
  readonly kill: Effect.Effect<void>
  /** Starts it again after it was killed, at the same port and over the same folder. */
  readonly restart: Effect.Effect<void, RedisError>
  /** Stops it without ending it, as if the machine hung, and lets it go on. */
  readonly pause: Effect.Effect<void>
  readonly resume: Effect.Effect<void>
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Redis cannot be started. `detail`: what it said.
 *
 * @since 0.1.0
 * @category errors
 */
export class RedisError extends Schema.TaggedError<RedisError>("@strata/cache/testing/RedisError")("RedisError", {
  detail: Schema.String
}) {
  override get message(): string {
    return `Redis cannot be started: ${this.detail}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/** Their versions that can be started; the first that is in the path is. */
const programs = ["redis-server", "valkey-server"]

/**
 * Whether this machine has a server that can be started. Fails the process of the tests when it has none and
 * `STRATA_TEST_REDIS_REQUIRED` is set; else it says, once, that tests are skipped.
 *
 * @since 0.1.0
 * @category constructors
 */
export const isInstalled: Effect.Effect<boolean, RedisError> = Effect.suspend(() => {
  if (program() !== undefined) return Effect.succeed(true)
  if (process.env["STRATA_TEST_REDIS_REQUIRED"] !== undefined) {
    return Effect.fail(new RedisError({ detail: "neither redis-server nor valkey-server is installed" }))
  }
  return Effect.as(
    Effect.logWarning("Neither redis-server nor valkey-server is installed: the tests that need one are skipped"),
    false
  )
})

/**
 * Starts a server, which answers when this ends. It is killed, and its folder removed, when the scope closes.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  options: RedisOptions = {}
): Effect.fn.Return<Redis, RedisError, Scope.Scope> {
  const folder = yield* Effect.acquireRelease(
    attempt(() => mkdtemp(join(tmpdir(), "strata-redis-"))),
    (folder) => Effect.ignore(attempt(() => rm(folder, { recursive: true, force: true })))
  )
  const running: Running = { child: undefined }
  yield* Effect.addFinalizer(() => kill(running))
  // A port that was free may be taken before the server has it.
  const port = yield* Effect.retry(
    Effect.tap(freePort, (port) => start(running, folder, port, options)),
    { times: 4 }
  )
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    kill: kill(running),
    restart: Effect.suspend(() => start(running, folder, port, options)),
    pause: signal(running, "SIGSTOP"),
    resume: signal(running, "SIGCONT")
  }
})

/**
 * The URL of the server that `STRATA_TEST_REDIS_URL` names, or of one that is started for the scope. Whoever uses it
 * keeps to a prefix of its own.
 *
 * @since 0.1.0
 * @category constructors
 */
export const url: Effect.Effect<string, RedisError, Scope.Scope> = Effect.suspend(() => {
  const given = process.env["STRATA_TEST_REDIS_URL"]
  return given === undefined ? Effect.map(make(), ({ url }) => url) : Effect.succeed(given)
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

interface Running {
  child: ChildProcess | undefined
}

const program = (): string | undefined =>
  programs.find((name) => spawnSync(name, ["--version"], { stdio: "ignore" }).error === undefined)

const start = Effect.fnUntraced(function* (
  running: Running,
  folder: string,
  port: number,
  options: RedisOptions
): Effect.fn.Return<void, RedisError> {
  const name = program()
  if (name === undefined)
    return yield* new RedisError({ detail: "neither redis-server nor valkey-server is installed" })
  const log = join(folder, "log")
  const settings = [
    ["bind", "127.0.0.1"],
    ["port", `${port}`],
    ["dir", folder],
    ["logfile", log],
    ["save", ""],
    ["appendonly", options.durable === true ? "yes" : "no"],
    ["appendfsync", "always"],
    ...(options.settings ?? [])
  ]
  const child = spawn(
    name,
    settings.flatMap(([name = "", ...values]) => [`--${name}`, ...values]),
    { cwd: folder, stdio: "ignore" }
  ).on("error", () => {})
  running.child = child
  yield* Effect.raceFirst(
    awaitReady(port),
    Effect.andThen(
      exited(child),
      Effect.flatMap(
        attempt(() => readFile(log, "utf8")),
        (detail) => new RedisError({ detail })
      )
    )
  )
})

const freePort: Effect.Effect<number, RedisError> = Effect.callback((resume) => {
  const server = createServer()
  server.on("error", (error) => resume(Effect.fail(new RedisError({ detail: error.message }))))
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

/**
 * Waits, in the time of the world, until it answers, be it that it wants a password; while it reads its file it says that
 * it is loading.
 */
const awaitReady = (port: number): Effect.Effect<void, RedisError> =>
  Effect.callback((resume) => {
    let socket: Socket | undefined
    let timer: NodeJS.Timeout | undefined
    const look = (left: number): void => {
      socket = connect(port, "127.0.0.1")
      const again = (): void => {
        socket?.destroy()
        if (left === 0) resume(Effect.fail(new RedisError({ detail: "it does not answer" })))
        else timer = setTimeout(look, 20, left - 1)
      }
      socket.on("connect", () => socket?.write("PING\r\n"))
      socket.once("data", (answer) => {
        if (answer.toString().startsWith("-LOADING")) return again()
        socket?.destroy()
        resume(Effect.void)
      })
      socket.on("error", again)
    }
    look(500)
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

const signal = (running: Running, name: "SIGSTOP" | "SIGCONT"): Effect.Effect<void> =>
  Effect.sync(() => void running.child?.kill(name))

const attempt = <A>(f: () => Promise<A>): Effect.Effect<A, RedisError> =>
  Effect.tryPromise({ try: f, catch: (cause) => new RedisError({ detail: String(cause) }) })
