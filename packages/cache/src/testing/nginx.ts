/**
 * A real nginx that serves as a shared tier, for tests and scripts: WebDAV on a free port of the loopback, over a
 * temporary folder.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { connect, createServer, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category models
 */
export interface NginxOptions {
  /** The largest body it takes, in bytes; a larger one is answered by 413. Default: any. */
  readonly maxBodySize?: number | undefined
  /** Answers by 401 unless this is the `authorization` of a request. Default: anyone. */
  readonly authorization?: string | undefined
  /** The port. Default: a free one. */
  readonly port?: number | undefined
}

/**
 * A server that runs.
 *
 * @since 0.1.0
 * @category models
 */
export interface Nginx {
  readonly url: string
  readonly port: number
  /** The folder that it serves: `ac/` and `cas/` are in it. */
  readonly root: string
  readonly pid: number
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * nginx cannot be started. `detail`: what it said.
 *
 * @since 0.1.0
 * @category errors
 */
export class NginxError extends Schema.TaggedError<NginxError>("@strata/cache/testing/NginxError")("NginxError", {
  detail: Schema.String
}) {
  override get message(): string {
    return `nginx cannot be started: ${this.detail}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Whether this machine has nginx with its DAV module, in the path or where Debian puts it.
 *
 * @since 0.1.0
 * @category constructors
 */
export const isInstalled: Effect.Effect<boolean> = Effect.sync(() => {
  const { error, stderr } = spawnSync("nginx", ["-V"], { env: environment(), encoding: "utf8" })
  return error === undefined && stderr.includes("http_dav_module")
})

/**
 * Starts a server, which answers when this ends. It is killed, and its folder removed, when the scope closes.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  options: NginxOptions = {}
): Effect.fn.Return<Nginx, NginxError, Scope.Scope> {
  const folder = yield* Effect.acquireRelease(
    attempt(() => mkdtemp(join(tmpdir(), "strata-nginx-"))),
    (folder) => Effect.ignore(attempt(() => rm(folder, { recursive: true, force: true })))
  )
  // A port that was free may be taken before nginx has it.
  return yield* Effect.retry(start(folder, options), { times: options.port === undefined ? 4 : 0 })
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const start = Effect.fnUntraced(function* (
  folder: string,
  options: NginxOptions
): Effect.fn.Return<Nginx, NginxError, Scope.Scope> {
  const root = join(folder, "root")
  const port = options.port ?? (yield* freePort)
  yield* attempt(async () => {
    await mkdir(root, { recursive: true })
    await mkdir(join(folder, "temp"), { recursive: true })
    await writeFile(join(folder, "nginx.conf"), configuration(folder, root, port, options))
  })
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn("nginx", ["-p", folder, "-c", join(folder, "nginx.conf"), "-e", join(folder, "error.log")], {
        env: environment(),
        stdio: "ignore"
      }).on("error", () => {})
    ),
    kill
  )
  if (child.pid === undefined) return yield* new NginxError({ detail: "there is no program nginx" })
  yield* Effect.raceFirst(
    awaitPort(port),
    Effect.andThen(
      exited(child),
      Effect.flatMap(
        attempt(() => readFile(join(folder, "error.log"), "utf8")),
        (detail) => new NginxError({ detail })
      )
    )
  )
  return { url: `http://127.0.0.1:${port}`, port, root, pid: child.pid }
})

/** One process, which a kill by its id ends: a killed master leaves its workers behind. */
const configuration = (folder: string, root: string, port: number, options: NginxOptions): string => `
daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path ${folder}/temp/body;
  proxy_temp_path ${folder}/temp/proxy;
  fastcgi_temp_path ${folder}/temp/fastcgi;
  uwsgi_temp_path ${folder}/temp/uwsgi;
  scgi_temp_path ${folder}/temp/scgi;
  server {
    listen 127.0.0.1:${port};
    root ${root};
    client_max_body_size ${options.maxBodySize ?? 0};
    location / {
      dav_methods PUT DELETE;
      create_full_put_path on;
      ${options.authorization === undefined ? "" : `if ($http_authorization != "${options.authorization}") { return 401; }`}
    }
  }
}
`

/** Debian keeps nginx where only root's path looks. */
const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: [process.env["PATH"] ?? "", "/usr/sbin", "/usr/local/sbin"].join(delimiter)
})

const freePort: Effect.Effect<number, NginxError> = Effect.callback((resume) => {
  const server = createServer()
  server.on("error", (error) => resume(Effect.fail(new NginxError({ detail: error.message }))))
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** Waits in the time of the world, whichever clock a test has. */
const awaitPort = (port: number): Effect.Effect<void, NginxError> =>
  Effect.callback((resume) => {
    let socket: Socket | undefined
    let timer: NodeJS.Timeout | undefined
    const look = (left: number): void => {
      socket = connect(port, "127.0.0.1")
      socket.on("connect", () => {
        socket?.destroy()
        resume(Effect.void)
      })
      socket.on("error", (error) => {
        if (left === 0) resume(Effect.fail(new NginxError({ detail: error.message })))
        else timer = setTimeout(look, 20, left - 1)
      })
    }
    look(250)
    return Effect.sync(() => {
      clearTimeout(timer)
      socket?.destroy()
    })
  })

const exited = (child: ChildProcess): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
  })

const kill = (child: ChildProcess): Effect.Effect<void> =>
  child.pid === undefined
    ? Effect.void
    : Effect.andThen(
        Effect.sync(() => child.kill("SIGKILL")),
        exited(child)
      )

const attempt = <A>(f: () => Promise<A>): Effect.Effect<A, NginxError> =>
  Effect.tryPromise({ try: f, catch: (cause) => new NginxError({ detail: String(cause) }) })
