/**
 * A real Redis, or Valkey, that serves as a shared tier, for tests and scripts: a server on a free port of the loopback,
 * over a temporary folder. A server that was not started here is used only when `STRATA_TEST_REDIS_URL` names it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import * as ServerProcess from "../internal/testing/serverProcess.ts"

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

/** What it goes by; the first that is in the path is started. */
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
    return Effect.fail(new RedisError({ detail: notInstalled }))
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
export const make: (options?: RedisOptions) => Effect.Effect<Redis, RedisError, Scope.Scope> = Effect.fnUntraced(
  function* (options: RedisOptions = {}) {
    const folder = yield* ServerProcess.temporaryFolder("strata-redis-")
    const server = yield* ServerProcess.make({
      program: (port) => configured(folder, port, options),
      // While it reads its file it says that it is loading; that it wants a password is an answer.
      probe: { question: "PING\r\n", isBusy: (answer) => answer.startsWith("-LOADING") }
    })
    return {
      url: `redis://127.0.0.1:${server.port}`,
      port: server.port,
      kill: server.kill,
      restart: Effect.mapError(server.restart, toRedisError),
      pause: server.signal("SIGSTOP"),
      resume: server.signal("SIGCONT")
    }
  },
  Effect.catchTag("ServerProcessError", (error) => Effect.fail(toRedisError(error)))
)

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

const program = (): string | undefined =>
  programs.find((name) => spawnSync(name, ["--version"], { stdio: "ignore" }).error === undefined)

const configured = (
  folder: string,
  port: number,
  options: RedisOptions
): Effect.Effect<ServerProcess.Program, ServerProcess.ServerProcessError> =>
  Effect.suspend(() => {
    const command = program()
    if (command === undefined) return Effect.fail(new ServerProcess.ServerProcessError({ detail: notInstalled }))
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
    return Effect.succeed({
      command,
      args: settings.flatMap(([name = "", ...values]) => [`--${name}`, ...values]),
      log
    })
  })

const notInstalled = "neither redis-server nor valkey-server is installed"

const toRedisError = ({ detail }: ServerProcess.ServerProcessError) => new RedisError({ detail })
