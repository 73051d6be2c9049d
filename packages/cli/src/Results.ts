/**
 * What each command found or did. With `--json` the results are printed as they
 * stand, so their names and shapes are an interface; times are in milliseconds,
 * sizes in bytes.
 *
 * @since 0.1.0
 */
import type * as Schema from "effect/Schema"

/**
 * A path that could not be processed, and why, in words for people.
 *
 * @since 0.1.0
 * @category models
 */
export interface Failure {
  readonly path: string
  readonly reason: string
}

/**
 * How many failures, and how many skips, a result lists at most.
 *
 * @since 0.1.0
 * @category models
 */
export const listLimit = 1_000

/**
 * What is not in the index although it is in a directory. Both counts are complete, the lists may be cut.
 *
 * @since 0.1.0
 * @category models
 */
export interface Listed {
  /** What could not be indexed: it cannot be read, its name is no path, or its path is too long. */
  readonly failed: number
  readonly failures: ReadonlyArray<Failure>
  /** What has nothing to search: files that are empty, binary, not UTF-8 or too large, and what is no file. */
  readonly skipped: number
  readonly skips: ReadonlyArray<Failure>
}

/**
 * Counts of files: `scanned` is the sum of `indexed`, `unchanged`, `skipped` and `failed`. What is `removed` was found
 * to be gone.
 *
 * @since 0.1.0
 * @category models
 */
export interface IndexResult extends Listed {
  readonly scanned: number
  readonly indexed: number
  readonly unchanged: number
  readonly removed: number
  readonly elapsedMs: number
  /** Files that went through the cache of extraction; of `index` only. */
  readonly cache?: {
    readonly extracted: number
    readonly localHits: number
    readonly sharedHits: number
  }
  /** What could not be sent to the shared cache yet; of `index` only, and absent when nothing is left to be sent. */
  readonly unpublished?: Unpublished
}

/**
 * Results that wait here to be shared. `tier` names the shared cache, without credentials. `pending` counts those that
 * are sent when a command names it again, of which `failing` were refused; `dead` those that it refuses for good.
 * `reason` says why the last one was not taken, where that is known.
 *
 * @since 0.1.0
 * @category models
 */
export interface Unpublished {
  readonly tier: string
  readonly pending: number
  readonly failing: number
  readonly dead: number
  readonly reason?: string
}

/**
 * What `watch` has brought up to date since its last report. A failure is reported once, until it is mended or has
 * another reason.
 *
 * @since 0.1.0
 * @category models
 */
export interface WatchResult {
  readonly indexed: number
  readonly removed: number
  readonly failed: number
  readonly failures: ReadonlyArray<Failure>
}

/**
 * One passage that was found. `heading` is the path of headings above it, from
 * the top; `line` that of the first match, from 1; a higher `score` is a better match.
 *
 * @since 0.1.0
 * @category models
 */
export interface Hit {
  readonly path: string
  readonly line: number
  readonly heading: string
  readonly snippet: string
  readonly score: number
}

/**
 * `total` counts all matches, of which `hits` holds the best.
 *
 * @since 0.1.0
 * @category models
 */
export interface SearchResult {
  readonly query: string
  readonly total: number
  readonly hits: ReadonlyArray<Hit>
}

/**
 * `oldestDirtyMs` is the age of the longest waiting change, 0 when none waits.
 * `dirty` counts paths that wait, failing ones included; dead letters are paths
 * that failed for good.
 *
 * @since 0.1.0
 * @category models
 */
export interface StatusResult extends Listed {
  readonly database: string
  readonly databaseBytes: number
  readonly directories: ReadonlyArray<string>
  /** Documents that can be found. */
  readonly documents: number
  /** Paths that wait to be processed, those that fail included. */
  readonly dirty: number
  readonly oldestDirtyMs: number
  readonly failing: number
  readonly deadLetters: number
  /** What waits for shared caches; without a `reason`, as they are not asked. */
  readonly unpublished: ReadonlyArray<Unpublished>
}

/**
 * `revived` is the number of dead letters among the paths that were tried again; the counts are of those paths.
 *
 * @since 0.1.0
 * @category models
 */
export interface RetryResult extends IndexResult {
  readonly revived: number
}

/**
 * `lost` counts the files that can be found in the old index and could not be read for the new one: where there is one,
 * the old index serves on.
 *
 * @since 0.1.0
 * @category models
 */
export interface RebuildResult extends IndexResult {
  readonly lost: number
}

/**
 * Differences between index and directory, as paths: files that are not
 * indexed, files whose indexed content is old, and documents without a file.
 * `ok` when there are none and nothing failed.
 *
 * @since 0.1.0
 * @category models
 */
export interface VerifyResult extends Listed {
  readonly ok: boolean
  readonly missing: ReadonlyArray<string>
  readonly stale: ReadonlyArray<string>
  readonly orphaned: ReadonlyArray<string>
  /** Whether the full-text index does not fit its own data. */
  readonly damaged: boolean
  /** What was wrong before and is not any more; only with `--repair`. `failed`: what can be read again. */
  readonly repaired?: {
    readonly missing: ReadonlyArray<string>
    readonly stale: ReadonlyArray<string>
    readonly orphaned: ReadonlyArray<string>
    readonly failed: ReadonlyArray<string>
    readonly damaged: boolean
  }
}

/**
 * An entry of the journal. `seq` is its position in the stream, `recordedAt` in milliseconds since the epoch.
 *
 * @since 0.1.0
 * @category models
 */
export interface JournalEntry {
  readonly stream: string
  readonly seq: number
  readonly type: string
  readonly recordedAt: number
  readonly identity?: string
  readonly payload: Schema.Json
}

/**
 * The last entries of the journal, in order.
 *
 * @since 0.1.0
 * @category models
 */
export interface JournalResult {
  readonly entries: ReadonlyArray<JournalEntry>
}

/**
 * What the cache has. Entries are results that can be served; the ledger also has those that were taken out lately.
 * `from` is the shared cache that entries came from, `null` for those that were extracted here.
 *
 * @since 0.1.0
 * @category models
 */
export interface CacheStatsResult {
  readonly entries: number
  readonly origins: ReadonlyArray<{ readonly from: string | null; readonly entries: number }>
  readonly ledger: number
  readonly results: number
  readonly resultBytes: number
  readonly artifacts: number
  readonly artifactBytes: number
  /** What waits for shared caches; without a `reason`, as they are not asked. */
  readonly unpublished: ReadonlyArray<Unpublished>
}

/**
 * Differences between the cache and its journal, as keys, and results that are not those of their digests: `missing`,
 * entries that the journal tells of; `unexplained`, entries that it does not; `unjoined`, entries without a result.
 *
 * @since 0.1.0
 * @category models
 */
export interface CacheVerifyResult {
  readonly ok: boolean
  readonly missing: ReadonlyArray<string>
  readonly unexplained: ReadonlyArray<string>
  readonly unjoined: ReadonlyArray<string>
  readonly corrupt: ReadonlyArray<string>
}

/**
 * What was taken out of the cache or, with `dryRun`, would be.
 *
 * @since 0.1.0
 * @category models
 */
export interface CacheGcResult {
  readonly dryRun: boolean
  readonly entries: number
  readonly ledger: number
  readonly results: number
  readonly resultBytes: number
  readonly artifacts: number
  readonly artifactBytes: number
}

/**
 * A run of a workflow. Of one that is `held` only a resume makes it go on: it was rewound, forked, or has failed. `owner`
 * is the number of the process that runs it, `null` when none does; `outcome` how it ended, `null` when it has not, or
 * its journal does not tell any more. Times are in milliseconds since the epoch.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunResult {
  readonly executionId: string
  readonly workflow: string
  readonly state: "running" | "suspended" | "completed"
  readonly held: boolean
  readonly interrupted: "none" | "safe" | "unsafe"
  /** The execution id of the run that waits for it. */
  readonly parent: string | null
  readonly owner: number | null
  readonly startedAt: number
  readonly updatedAt: number
  readonly settledAt: number | null
  readonly outcome: "success" | "failure" | "defect" | "interrupted" | null
  /** Why it failed, in the words of the app, cut to some length; only in the result of `show`, where it has failed. */
  readonly message?: string
}

/**
 * Runs, newest first.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunListResult {
  readonly runs: ReadonlyArray<RunResult>
}

/**
 * A run with its entries of the journal, from `floor` on: what was before was compacted. `clocks` are those that have not
 * fired, with their deadlines in milliseconds since the epoch; `deferreds` those that are completed.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunShowResult extends RunResult {
  readonly floor: number
  readonly clocks: ReadonlyArray<{ readonly name: string; readonly deadline: number }>
  readonly deferreds: ReadonlyArray<string>
  readonly entries: ReadonlyArray<JournalEntry>
}

/**
 * A run that was taken back, and how many entries went into the archive.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunRewindResult extends RunResult {
  readonly archived: number
}

/**
 * What was made again from the journal or, with `dryRun`, would be; or, with nothing changed, what the journal refers to
 * that is not there, or not as it was. `unexplained` counts completions that no entry tells of, which stay.
 *
 * @since 0.1.0
 * @category models
 */
export type RebuildStateResult =
  | {
      readonly ok: true
      readonly dryRun: boolean
      readonly runs: number
      readonly clocks: number
      readonly deferreds: number
      readonly unexplained: number
    }
  | { readonly ok: false; readonly dryRun: boolean; readonly unjoined: ReadonlyArray<UnjoinedReference> }

/**
 * A reference of the journal that could not be joined.
 *
 * @since 0.1.0
 * @category models
 */
export type UnjoinedReference = { readonly executionId: string } & (
  | { readonly kind: "row_missing"; readonly deferred: string }
  | { readonly kind: "digest_mismatch"; readonly deferred: string; readonly part: "exit" | "metadata" }
  | { readonly kind: "run_missing" }
  | { readonly kind: "checkpoint_missing"; readonly floor: number }
)

/**
 * What `doctor` found out about one thing. `status`: it `works`, it `fails`, or that is `unknown`, as it was not asked, or
 * the server does not tell. `reason` is the tag of the error of what fails.
 *
 * @since 0.1.0
 * @category models
 */
export interface DoctorCheck {
  readonly subject: "database" | "shared"
  readonly check: string
  readonly status: "works" | "fails" | "unknown"
  readonly detail: string
  readonly reason?: string
}

/**
 * `ok` when nothing fails. `database` and `shared` name what was asked, without credentials; `null` when none is
 * configured.
 *
 * @since 0.1.0
 * @category models
 */
export interface DoctorResult {
  readonly ok: boolean
  readonly database: string | null
  readonly shared: string | null
  readonly checks: ReadonlyArray<DoctorCheck>
}
