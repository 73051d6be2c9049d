/**
 * The shared tier over HTTP, by the protocol of Bazel's remote caches: entries under `/ac/<key>`, blobs under
 * `/cas/<digest>`. nginx with its DAV module, bazel-remote and others serve it unchanged. A put is a PUT, a lookup a
 * GET, and whether a blob is there is asked by HEAD; nothing more is asked of a server.
 *
 * Such a server keeps what was put last, so that a put is never more certain than `Unarbitrated`. Nothing that it says is
 * trusted: digests, sizes and keys are checked here. Every phase of a request has a deadline. Credentials and headers go
 * to the origin of the URL only, and are in no error, log or span.
 *
 * Source: https://bazel.build/remote/caching
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { ArtifactStore } from "./ArtifactStore.ts"
import type { CacheError } from "./CacheError.ts"
import * as Blobs from "./internal/http/blobs.ts"
import * as Client from "./internal/http/client.ts"
import * as Entries from "./internal/http/entries.ts"
import * as Exchange from "./internal/http/exchange.ts"
import type { Settings } from "./internal/http/settings.ts"
import * as Target from "./internal/http/target.ts"
import * as Artifacts from "./internal/remoteArtifacts.ts"
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
export type Credentials =
  | { readonly _tag: "Bearer"; readonly token: Redacted.Redacted<string> }
  | { readonly _tag: "Basic"; readonly username: string; readonly password: Redacted.Redacted<string> }

/**
 * How long each phase of a request may take. Large bodies have longer: a body, up or down, may take `body` and the time
 * of its bytes at `minBytesPerSecond`; down, these are the bytes that have arrived.
 *
 * @since 0.1.0
 * @category models
 */
export interface Deadlines {
  /** Looking the name up, connecting, TLS. Default 5 seconds. */
  readonly connect?: Duration.Input | undefined
  /** From the end of the request to the head of the answer. Default 15 seconds. */
  readonly response?: Duration.Input | undefined
  /**
   * In every such time that is waited for a body, up or down, its bytes at `idleBytesPerSecond` have to move, or all that
   * is left of it: a server that drips has no more time than one that is silent. Default 10 seconds.
   */
  readonly idle?: Duration.Input | undefined
  /** Default 1,024, which each of 32 calls at a time has on a line of 256 kbit/s. */
  readonly idleBytesPerSecond?: number | undefined
  /** Default 30 seconds. */
  readonly body?: Duration.Input | undefined
  /**
   * For a lookup in all, whatever it has to ask for, besides the time of the bytes that have arrived, at
   * `minBytesPerSecond`. Default 30 seconds.
   */
  readonly lookup?: Duration.Input | undefined
  /** Default 65,536. */
  readonly minBytesPerSecond?: number | undefined
}

/**
 * Where the tier is, and within what bounds it is used.
 *
 * @since 0.1.0
 * @category models
 */
export interface HttpCacheOptions {
  /** With `http:` or `https:`; may have a path, under which `ac/` and `cas/` are; no user info and no query. */
  readonly url: string | URL
  /**
   * Names the tier in errors, lookups, metrics and refusals, and to publication, which remembers by it what is there.
   * Default: the address, without a slash at its end.
   */
  readonly name?: string | undefined
  readonly credentials?: Credentials | undefined
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, Redacted.Redacted<string>>> | undefined
  /** Refuses to put by `ReadOnly`, without a request. Default `false`. */
  readonly readOnly?: boolean | undefined
  readonly deadlines?: Deadlines | undefined
  /** The largest result, and the largest message of an entry, that is sent or received. Bytes; default 16 MiB. */
  readonly maxEntryBytes?: number | undefined
  /** The largest artifact that is sent or received. Bytes; default 2 GiB. */
  readonly maxBlobBytes?: number | undefined
  /** Results up to this size are in the message of their entry, so that a lookup is one request. Default 16 KiB. */
  readonly inlineBytes?: number | undefined
  /**
   * What a lookup asks about an entry's artifacts: `exists`, the default, asks for each whether it is there, and it is a
   * miss when one is not; `trust` asks nothing, and leaves it to whoever fetches them.
   */
  readonly artifacts?: "exists" | "trust" | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The entries of the server. `evict` and `quarantine` fail with `Unsupported`: a put writes over what is there.
 *
 * A put sends the result and then the entry, the artifacts have to be there before. A lookup that finds something else
 * than an entry of the key, or one whose blobs are gone, is a miss that says why. Fails with `Invalid` when the options
 * cannot be used.
 *
 * @since 0.1.0
 * @category constructors
 */
export const stepCache: (options: HttpCacheOptions) => Effect.Effect<StepCache["Service"], CacheError, Scope.Scope> =
  Effect.fnUntraced(function* (options) {
    return Entries.make(yield* connect(options), settings(options))
  })

/**
 * The blobs of the server. `remove` and `list` fail with `Unsupported`.
 *
 * Content streams both ways. It is hashed on its way: what is wrong is cut off before its last chunk, so that a server
 * stores nothing of it. A blob that was received with wrong content is taken for missing from then on, so that the next
 * put heals it. `add` keeps the content in a temporary file, since its digest has to be known before it is sent. Fails
 * with `Invalid` when the options cannot be used.
 *
 * @since 0.1.0
 * @category constructors
 */
export const artifactStore: (
  options: HttpCacheOptions
) => Effect.Effect<ArtifactStore["Service"], CacheError, Scope.Scope> = Effect.fnUntraced(function* (options) {
  return Artifacts.make("HttpCache", Blobs.remote(yield* connect(options)), settings(options))
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const nameOf = ({ name, url }: HttpCacheOptions): string => {
  if (name !== undefined) return name
  const address = URL.parse(String(url))
  return address === null ? "http" : `${address.origin}${address.pathname.replace(/\/+$/, "")}`
}

const connect = (options: HttpCacheOptions): Effect.Effect<Client.Client, CacheError, Scope.Scope> =>
  Effect.flatMap(Target.make(nameOf(options), options), (target) =>
    Client.make(target, Exchange.toMillis(options.deadlines))
  )

const settings = (options: HttpCacheOptions): Settings => ({
  tier: nameOf(options),
  readOnly: options.readOnly ?? false,
  maxEntryBytes: options.maxEntryBytes ?? 16 * 1024 ** 2,
  maxBlobBytes: options.maxBlobBytes ?? 2 * 1024 ** 3,
  inlineBytes: options.inlineBytes ?? 16 * 1024,
  lookup: Exchange.lookupLimits(options.deadlines),
  artifacts: options.artifacts ?? "exists"
})
