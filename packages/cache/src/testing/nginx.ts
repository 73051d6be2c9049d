/**
 * A real nginx that serves as a shared tier, for tests and scripts: WebDAV on a free port of the loopback, over a
 * temporary folder.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { spawnSync } from "node:child_process"
import { mkdir, writeFile } from "node:fs/promises"
import { delimiter, join } from "node:path"
import * as ServerProcess from "../internal/testing/serverProcess.ts"

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
  /** Ends it by SIGKILL. */
  readonly kill: Effect.Effect<void>
  /** Starts it again after it was killed, at the same port and over the same folder. */
  readonly restart: Effect.Effect<void, NginxError>
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
export const make: (options?: NginxOptions) => Effect.Effect<Nginx, NginxError, Scope.Scope> = Effect.fnUntraced(
  function* (options: NginxOptions = {}) {
    const folder = yield* ServerProcess.temporaryFolder("strata-nginx-")
    const root = join(folder, "root")
    const server = yield* ServerProcess.make({ port: options.port, program: configured(folder, root, options) })
    return {
      url: `http://127.0.0.1:${server.port}`,
      port: server.port,
      root,
      kill: server.kill,
      restart: Effect.mapError(server.restart, toNginxError)
    }
  },
  Effect.catchTag("ServerProcessError", (error) => Effect.fail(toNginxError(error)))
)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const configured =
  (folder: string, root: string, options: NginxOptions) =>
  (port: number): Effect.Effect<ServerProcess.Program, ServerProcess.ServerProcessError> => {
    const log = join(folder, "error.log")
    const file = join(folder, "nginx.conf")
    return ServerProcess.attempt(async () => {
      await mkdir(root, { recursive: true })
      await mkdir(join(folder, "temp"), { recursive: true })
      await writeFile(file, configuration(folder, root, port, options))
      return { command: "nginx", args: ["-p", folder, "-c", file, "-e", log], env: environment(), log }
    })
  }

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

const toNginxError = ({ detail }: ServerProcess.ServerProcessError) => new NginxError({ detail })
