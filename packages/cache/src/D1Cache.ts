/**
 * The shared tier on Cloudflare D1, for entries: where the app is a Worker, the database that it has already. A put is
 * one batch of `INSERT … ON CONFLICT DO NOTHING RETURNING` and a look at what is there: arbitration is exact. Each
 * operation is one statement or one batch, and commits by itself.
 *
 * Blobs are too large for rows of D1. Where entries have artifacts, their blobs are in another tier, which `blobs` names:
 * an object store, as a rule.
 *
 * A database that does not answer is unreachable, and never keeps a layer from being built; its table is made when it is
 * first needed. Asks for `@effect/sql-d1`, which is an optional peer of this package.
 *
 * Source: https://developers.cloudflare.com/d1/platform/limits/
 *
 * @since 0.1.0
 */
import type { D1Client } from "@effect/sql-d1/D1Client"
import * as Rows from "@strata/durable/Rows"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ArtifactStore } from "./ArtifactStore.ts"
import { CacheError, Invalid, ReadOnly } from "./CacheError.ts"
import * as Database from "./internal/d1/database.ts"
import * as Entries from "./internal/d1/entries.ts"
import type { Settings } from "./internal/d1/settings.ts"
import type { StepCache } from "./StepCache.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * How the database in context is used.
 *
 * @since 0.1.0
 * @category models
 */
export interface D1CacheOptions {
  /**
   * Names the tier in errors, lookups, metrics and refusals, and to publication, which remembers by it what is there.
   * Default `d1`.
   */
  readonly name?: string | undefined
  /**
   * The table is called `strata_<prefix>_entry`, so that several caches can be in one database. Lower-case letters, digits
   * and `_`, at most 30. Default `shared`.
   */
  readonly prefix?: string | undefined
  /** Refuses to put, to take out and to prune by `ReadOnly`, without a statement, and creates nothing. Default `false`. */
  readonly readOnly?: boolean | undefined
  /** How long an operation may take. Default 15 seconds. */
  readonly deadline?: Duration.Input | undefined
  /**
   * The largest result with its metadata and the names of its artifacts. Bytes; default 1,900,000, and no more than that,
   * as a row of D1 has two million at most.
   */
  readonly maxEntryBytes?: number | undefined
  /** A hit writes the time of its use down, for `prune`, when the one that is there is older than this. Default 1 day. */
  readonly useGrain?: Duration.Input | undefined
  /**
   * Where the blobs of entries are. Lookups and puts ask it for those that an entry names: an entry without one is a miss,
   * is refused by `ArtifactMissing`, and is replaced by the next put. Default: nothing is asked, and whoever fetches the
   * blobs finds out.
   */
  readonly blobs?: ArtifactStore["Service"] | undefined
}

/**
 * What may stay in the tier, by the clock of the database.
 *
 * @since 0.1.0
 * @category models
 */
export interface PruneOptions {
  /** How long an entry may go unused, not finer than `useGrain`. Default: for ever. */
  readonly maxAge?: Duration.Input | undefined
  /** How many entries may stay: those that were used last. Default: all. */
  readonly maxEntries?: number | undefined
  /** How many bytes results and metadata may have. Those that were used last stay. Default: any number. */
  readonly maxBytes?: number | undefined
}

/**
 * What was taken out.
 *
 * @since 0.1.0
 * @category models
 */
export interface Pruned {
  readonly entries: number
  readonly bytes: number
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The entries of the database.
 *
 * A lookup that finds something else than an entry of the key is a miss that says why; the next put replaces what can be
 * served to nobody. An evict by recording is one statement, which never takes a fresher entry. An operation that fails
 * without an answer of D1 may have happened: a put that is repeated then answers `ExistingSame`. Fails with `Invalid` when
 * the options cannot be used.
 *
 * @since 0.1.0
 * @category constructors
 */
export const stepCache: (
  options?: D1CacheOptions
) => Effect.Effect<StepCache["Service"], CacheError, D1Client | Scope.Scope> = Effect.fnUntraced(function* (options) {
  return yield* Entries.make(yield* Database.make(yield* settingsOf(options ?? {})))
})

// ---------------------------------------------------------------------------------------------------------------------
// pruning
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Takes out of the tier what is too old or too much, a thousand entries at a time. An entry that is used meanwhile stays.
 * Run it now and then, as by a cron trigger: nothing else limits the tier. It looks at every entry.
 *
 * @since 0.1.0
 * @category pruning
 */
export const prune: (options: D1CacheOptions, limits: PruneOptions) => Effect.Effect<Pruned, CacheError, D1Client> =
  Effect.fn("D1Cache.prune")(function* (options, limits) {
    const settings = yield* settingsOf(options)
    const { tier } = settings
    yield* Effect.annotateCurrentSpan({ tier })
    if (settings.readOnly) return yield* new CacheError({ reason: new ReadOnly({ tier }) })
    const { run, statements } = yield* Database.make(settings)
    const parameters = [
      limits.maxAge === undefined ? Number.MAX_SAFE_INTEGER : inMillis(limits.maxAge),
      limits.maxEntries ?? Number.MAX_SAFE_INTEGER,
      limits.maxBytes ?? Number.MAX_SAFE_INTEGER,
      atOnce
    ]
    let pruned: Pruned = { entries: 0, bytes: 0 }
    while (true) {
      const taken = yield* run(statements.prune, parameters)
      const bytes = taken.reduce((sum, [bytes]) => sum + Rows.integer(bytes), 0)
      pruned = { entries: pruned.entries + taken.length, bytes: pruned.bytes + bytes }
      if (taken.length < atOnce) return pruned
    }
  })

const atOnce = 1000

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** What is left of a row of two million bytes for the columns of a fixed size. */
const mostEntryBytes = 1_900_000

const settingsOf = (options: D1CacheOptions): Effect.Effect<Settings, CacheError> => {
  const { maxEntryBytes = mostEntryBytes, name: tier = "d1", prefix = "shared" } = options
  if (!/^[a-z][a-z0-9_]{0,29}$/.test(prefix)) {
    return invalid(tier, "the prefix is not one of at most 30 lower-case letters, digits and _")
  }
  if (!(maxEntryBytes > 0 && maxEntryBytes <= mostEntryBytes)) {
    return invalid(tier, `an entry can have ${mostEntryBytes} bytes at most`)
  }
  return Effect.succeed({
    tier,
    prefix,
    readOnly: options.readOnly ?? false,
    deadlineMs: inMillis(options.deadline ?? "15 seconds"),
    maxEntryBytes,
    useGrainMs: inMillis(options.useGrain ?? "1 day"),
    blobs: options.blobs
  })
}

const inMillis = (duration: Duration.Input): number => Math.round(Duration.toMillis(duration))

const invalid = (tier: string, detail: string): Effect.Effect<never, CacheError> =>
  Effect.fail(new CacheError({ reason: new Invalid({ tier, detail }) }))
