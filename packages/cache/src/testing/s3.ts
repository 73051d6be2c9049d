/**
 * An S3 server that serves as a shared tier, for tests and scripts: that of the Python package `moto[server]`, on a free
 * port of the loopback, with an empty bucket in memory. By itself it stores bodies that broke off, and is at several
 * requests at once without keeping them apart; here it gets bodies that are whole and of the digest that is signed, one
 * after the other. It checks no signature. A server that was not started here is used only when `STRATA_TEST_S3_URL` names
 * it, as `s3://id:secret@bucket?region=…&endpoint=…`.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import * as Exchange from "../internal/http/exchange.ts"
import * as Client from "../internal/s3/client.ts"
import * as Target from "../internal/s3/target.ts"
import * as ServerProcess from "../internal/testing/serverProcess.ts"
import * as S3Cache from "../S3Cache.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A server that runs.
 *
 * @since 0.1.0
 * @category models
 */
export interface S3 {
  /** Names its bucket, with credentials. */
  readonly options: S3Cache.S3CacheOptions
  readonly port: number
  /** Ends it by SIGKILL, and with it what it has. */
  readonly kill: Effect.Effect<void>
  /** Starts it again after it was killed, at the same port and with an empty bucket. */
  readonly restart: Effect.Effect<void, S3Error>
  /** Stops it without ending it, as if the machine hung, and lets it go on. */
  readonly pause: Effect.Effect<void>
  readonly resume: Effect.Effect<void>
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A server cannot be started or used. `detail`: what it said.
 *
 * @since 0.1.0
 * @category errors
 */
export class S3Error extends Schema.TaggedError<S3Error>("@strata/cache/testing/S3Error")("S3Error", {
  detail: Schema.String
}) {
  override get message(): string {
    return `S3 cannot be used: ${this.detail}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Whether this machine has a server that can be started. Fails the process of the tests when it has none and
 * `STRATA_TEST_S3_REQUIRED` is set; else it says, once, that tests are skipped.
 *
 * @since 0.1.0
 * @category constructors
 */
export const isInstalled: Effect.Effect<boolean, S3Error> = Effect.suspend(() => {
  if (spawnSync("python3", ["-c", isThere], { stdio: "ignore" }).status === 0) return Effect.succeed(true)
  if (process.env["STRATA_TEST_S3_REQUIRED"] !== undefined) return Effect.fail(new S3Error({ detail: notInstalled }))
  return Effect.as(Effect.logWarning(`${notInstalled}: the tests that need an S3 server are skipped`), false)
})

/**
 * Starts a server, which answers when this ends. It is killed when the scope closes.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<S3, S3Error, Scope.Scope> = Effect.gen(function* () {
  const folder = yield* ServerProcess.temporaryFolder("strata-s3-")
  const log = join(folder, "log")
  const server = yield* ServerProcess.make({
    program: (port) =>
      Effect.succeed({
        command: "python3",
        args: ["-c", program, `${port}`, log],
        env: process.env,
        log
      })
  })
  const options: S3Cache.S3CacheOptions = {
    bucket: "strata",
    region: "us-east-1",
    endpoint: `http://127.0.0.1:${server.port}`,
    credentials: { accessKeyId: "AKIDTEST", secretAccessKey: Redacted.make("nobody-checks-it") }
  }
  return {
    options,
    port: server.port,
    kill: server.kill,
    restart: Effect.mapError(server.restart, toS3Error),
    pause: server.signal("SIGSTOP"),
    resume: server.signal("SIGCONT")
  }
}).pipe(Effect.catchTag("ServerProcessError", (error) => Effect.fail(toS3Error(error))))

/**
 * The options of the bucket that `STRATA_TEST_S3_URL` names, or of one of a server that is started for the scope. Whoever
 * uses it keeps to a prefix of its own.
 *
 * @since 0.1.0
 * @category constructors
 */
export const options: Effect.Effect<S3Cache.S3CacheOptions, S3Error, Scope.Scope> = Effect.suspend(() => {
  const given = process.env["STRATA_TEST_S3_URL"]
  return given === undefined
    ? Effect.map(make, ({ options }) => options)
    : Effect.mapError(S3Cache.fromUrl(Redacted.make(given)), ({ message }) => new S3Error({ detail: message }))
})

/**
 * Makes the bucket that the options name, if it is not there.
 *
 * @since 0.1.0
 * @category constructors
 */
export const createBucket = (options: S3Cache.S3CacheOptions): Effect.Effect<void, S3Error> =>
  Effect.gen(function* () {
    const { bucket, credentials, endpoint, region = "us-east-1" } = options
    const target = yield* Target.make("s3", { bucket, prefix: "", region, endpoint, pathStyle: true })
    const client = yield* Client.make(target, credentials, Exchange.toMillis({ response: "60 seconds" }))
    const outcome = yield* client.request({ method: "PUT", key: "" })
    if (outcome._tag !== "Done") return yield* new S3Error({ detail: `${outcome._tag} to a new bucket` })
  }).pipe(
    Effect.scoped,
    Effect.catchTag("CacheError", ({ message }) => Effect.fail(new S3Error({ detail: message })))
  )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const notInstalled = "the Python package moto[server] is not installed"

const isThere = `
from importlib.util import find_spec
raise SystemExit(not all(map(find_spec, ["moto", "flask_cors"])))
`

const program = `
import hashlib, io, sys, threading
port, log = sys.argv[1:]
sys.stdout = sys.stderr = open(log, "w", buffering=1)
from moto.server import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import WSGIRequestHandler, run_simple

# There before anyone can ask for it.
s3_backends["123456789012"]["aws"].create_bucket("strata", "us-east-1")
server = DomainDispatcherApplication(create_backend_app)
turn = threading.Lock()

def whole(environ, start_response):
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(length)
    if hashlib.sha256(body).hexdigest() != environ.get("HTTP_X_AMZ_CONTENT_SHA256"):
        start_response("400 Bad Request", [("Content-Type", "application/xml")])
        return [b"<Error><Code>XAmzContentSHA256Mismatch</Code></Error>"]
    environ["wsgi.input"] = io.BytesIO(body)
    with turn:
        return [b"".join(server(environ, start_response))]

class Handler(WSGIRequestHandler):
    def log_request(self, *args):
        pass

run_simple("127.0.0.1", int(port), whole, threaded=True, request_handler=Handler)
`

const toS3Error = ({ detail }: ServerProcess.ServerProcessError) => new S3Error({ detail })
