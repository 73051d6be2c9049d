/**
 * The shared tier on S3, or a server that speaks its protocol, for entries and blobs. A put of an entry is one PUT with
 * `If-None-Match: *`, which the server refuses when something is there: arbitration is exact, and a server that does not
 * heed the condition is found out and refused. Nothing that the server has is trusted: digests, sizes and keys are
 * checked here. Every request is signed with the digest of its body, and every phase of one has a deadline.
 *
 * The packages `@smithy/signature-v4` and `@rgrove/parse-xml` are loaded when a tier is made, and without `credentials`
 * also `@aws-sdk/credential-provider-node`. Credentials are in no error, log or span, and redirects are not followed.
 *
 * Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { ArtifactStore } from "./ArtifactStore.ts"
import { CacheError, Invalid } from "./CacheError.ts"
import type { Deadlines as HttpDeadlines } from "./HttpCache.ts"
import * as Exchange from "./internal/http/exchange.ts"
import * as Artifacts from "./internal/remoteArtifacts.ts"
import * as Arbitration from "./internal/s3/arbitration.ts"
import * as Blobs from "./internal/s3/blobs.ts"
import * as Client from "./internal/s3/client.ts"
import * as Entries from "./internal/s3/entries.ts"
import type { Settings } from "./internal/s3/settings.ts"
import * as Target from "./internal/s3/target.ts"
import type { StepCache } from "./StepCache.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Who the server takes this client for.
 *
 * @since 0.1.0
 * @category models
 */
export interface Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: Redacted.Redacted<string>
  /** Of credentials that end. */
  readonly sessionToken?: Redacted.Redacted<string> | undefined
}

/**
 * How long each phase of a request may take.
 *
 * @since 0.1.0
 * @category models
 */
export interface Deadlines extends HttpDeadlines {
  /** How long a step cache waits, when it is made, to learn whether the server arbitrates. Default 1 second. */
  readonly start?: Duration.Input | undefined
}

/**
 * Where the tier is, and within what bounds it is used.
 *
 * @since 0.1.0
 * @category models
 */
export interface S3CacheOptions {
  readonly bucket: string
  /**
   * Begins the key of every object, as a folder, so that several caches, and others, can use one bucket; at most 900
   * bytes. Default: none.
   */
  readonly prefix?: string | undefined
  /** Of the bucket. Default: the environment's `AWS_REGION`, else `us-east-1`. */
  readonly region?: string | undefined
  /** Of a server other than Amazon's, with `http:` or `https:`; no user info, path or query. */
  readonly endpoint?: string | URL | undefined
  /**
   * Whether the bucket is in the path of the URL, and not in the name of the host. Default: with an `endpoint`, and for
   * buckets whose name has a dot.
   */
  readonly pathStyle?: boolean | undefined
  /**
   * Default: those of the environment, of the files in `~/.aws`, of single sign-on, of a process, or of the machine,
   * wherever the tools of AWS find them first, and renewed as these say.
   */
  readonly credentials?: Credentials | undefined
  /**
   * Names the tier in errors, lookups, metrics and refusals, and to publication, which remembers by it what is there.
   * Default: `s3://`, bucket and prefix, with the endpoint as its query if there is one.
   */
  readonly name?: string | undefined
  /** Refuses to put and to take out by `ReadOnly`, without a request. Default `false`. */
  readonly readOnly?: boolean | undefined
  readonly deadlines?: Deadlines | undefined
  /** The largest entry, with its result, that is sent or received. Bytes; default 16 MiB. */
  readonly maxEntryBytes?: number | undefined
  /** The largest artifact that is sent or received. Bytes; default 2 GiB. */
  readonly maxBlobBytes?: number | undefined
  /**
   * Larger artifacts are sent in parts of 8 MiB, one of which is in memory; others stream. At least 5 MiB, at most 5 GiB.
   * Bytes; default 128 MiB.
   */
  readonly multipartBytes?: number | undefined
  /**
   * What lookups and puts ask about an entry's artifacts: `exists`, the default, asks for each whether it is there, and
   * it is a miss, or refused by `ArtifactMissing`, when one is not; `trust` asks nothing.
   */
  readonly artifacts?: "exists" | "trust" | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// options
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The options of a URL, `s3://[id:secret@]bucket[/prefix][?region=…][&endpoint=…][&pathStyle=true|false]`. What is in the
 * URL for credentials is only in `credentials` then. Fails with `Invalid`, without a word of the URL, when it is none or
 * has other parameters.
 *
 * @since 0.1.0
 * @category options
 */
export const fromUrl = (url: Redacted.Redacted<string>): Effect.Effect<S3CacheOptions, CacheError> =>
  Effect.gen(function* () {
    const invalid = (detail: string) => new CacheError({ reason: new Invalid({ tier: "s3", detail }) })
    const address = URL.parse(Redacted.value(url))
    if (address === null || address.protocol !== "s3:") return yield* invalid("the URL is none of s3")
    const { hash, hostname: bucket, password, pathname, port, searchParams, username } = address
    if (hash !== "" || port !== "" || bucket === "") return yield* invalid("the URL does not name a bucket")
    if ((username === "") !== (password === "")) return yield* invalid("the URL has half of the credentials")
    const parameters = new Map(searchParams)
    const take = (name: string): string | undefined => {
      const value = parameters.get(name)
      parameters.delete(name)
      return value
    }
    const [region, endpoint, pathStyle] = [take("region"), take("endpoint"), take("pathStyle")]
    if (parameters.size > 0) return yield* invalid("the URL has a parameter that is not known")
    if (pathStyle !== undefined && pathStyle !== "true" && pathStyle !== "false") {
      return yield* invalid("pathStyle is neither true nor false")
    }
    const [accessKeyId, secret, prefix] = yield* Effect.try({
      try: () => [decodeURIComponent(username), decodeURIComponent(password), decodeURIComponent(pathname)] as const,
      catch: () => invalid("the URL is not encoded as it should be")
    })
    return {
      bucket,
      ...(trimmed(prefix) === "" ? {} : { prefix: trimmed(prefix) }),
      ...(region === undefined ? {} : { region }),
      ...(endpoint === undefined ? {} : { endpoint }),
      ...(pathStyle === undefined ? {} : { pathStyle: pathStyle === "true" }),
      ...(accessKeyId === "" ? {} : { credentials: { accessKeyId, secretAccessKey: Redacted.make(secret) } })
    }
  })

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The entries of the bucket, as objects `ac/<key>`.
 *
 * A put is decided in one step of the server. What is taken out leaves an empty object, which is put in the place of what
 * was looked at with `If-Match`, so that a fenced `evict` never takes a fresher entry. A lookup that finds something else
 * than an entry of the key, or one whose blobs are gone, is a miss that says why; the next put writes over what can be
 * served to nobody, if it is still there.
 *
 * Fails with `Invalid` when the options cannot be used, and with `Unsupported` when a package is not installed, or the
 * server is found not to heed conditions. A server that does not answer in time is asked for that before the first put,
 * which then fails.
 *
 * @since 0.1.0
 * @category constructors
 */
export const stepCache: (options: S3CacheOptions) => Effect.Effect<StepCache["Service"], CacheError, Scope.Scope> =
  Effect.fnUntraced(function* (options) {
    const settings = yield* settingsOf(options)
    const client = yield* connect(options)
    const arbitration = Arbitration.make(client)
    if (!settings.readOnly) {
      yield* arbitration.ensure.pipe(
        Effect.timeoutOption(options.deadlines?.start ?? "1 second"),
        Effect.catchIf(
          ({ reason }) => reason._tag !== "Unsupported",
          () => Effect.void
        )
      )
    }
    return Entries.make({ client, settings, arbitration })
  })

/**
 * The blobs of the bucket, as objects `cas/<digest>`. `list` fails with `Unsupported`.
 *
 * Content streams both ways. It is hashed on its way, and the server refuses what is not of the digest that is signed; a
 * blob in parts is completed when all of it was right. A blob that was received with wrong content is taken for missing
 * from then on, so that the next put heals it. `add` keeps the content in a temporary file, since its digest has to be
 * known before it is sent. Fails with `Invalid` when the options cannot be used, and with `Unsupported` when a package is
 * not installed.
 *
 * @since 0.1.0
 * @category constructors
 */
export const artifactStore: (
  options: S3CacheOptions
) => Effect.Effect<ArtifactStore["Service"], CacheError, Scope.Scope> = Effect.fnUntraced(function* (options) {
  const settings = yield* settingsOf(options)
  return Artifacts.make("S3Cache", Blobs.remote(yield* connect(options), settings), settings)
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const trimmed = (prefix: string): string => prefix.replace(/^\/+|\/+$/g, "")

const nameOf = ({ bucket, endpoint, name, prefix = "" }: S3CacheOptions): string => {
  if (name !== undefined) return name
  const place = `s3://${[bucket, trimmed(prefix)].filter((part) => part !== "").join("/")}`
  const address = endpoint === undefined ? null : URL.parse(String(endpoint))
  return address === null ? place : `${place}?endpoint=${address.origin}`
}

const connect = (options: S3CacheOptions): Effect.Effect<Client.Client, CacheError, Scope.Scope> => {
  const { bucket, credentials, deadlines, endpoint, pathStyle, prefix = "" } = options
  const region = options.region ?? process.env["AWS_REGION"] ?? "us-east-1"
  return Effect.flatMap(Target.make(nameOf(options), { bucket, prefix, region, endpoint, pathStyle }), (target) =>
    Client.make(target, credentials, Exchange.toMillis(deadlines))
  )
}

const settingsOf = (options: S3CacheOptions): Effect.Effect<Settings, CacheError> => {
  const tier = nameOf(options)
  const multipartBytes = options.multipartBytes ?? 128 * 1024 ** 2
  if (!(multipartBytes >= 5 * 1024 ** 2 && multipartBytes <= 5 * 1024 ** 3)) {
    const detail = "multipartBytes is not between 5 MiB and 5 GiB"
    return Effect.fail(new CacheError({ reason: new Invalid({ tier, detail }) }))
  }
  return Effect.succeed({
    tier,
    readOnly: options.readOnly ?? false,
    maxEntryBytes: options.maxEntryBytes ?? 16 * 1024 ** 2,
    maxBlobBytes: options.maxBlobBytes ?? 2 * 1024 ** 3,
    multipartBytes,
    lookup: Exchange.lookupLimits(options.deadlines),
    artifacts: options.artifacts ?? "exists"
  })
}
