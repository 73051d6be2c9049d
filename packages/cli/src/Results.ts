/**
 * What each command found or did. With `--json` the results are printed as they
 * stand, so their names and shapes are an interface; times are in milliseconds,
 * sizes in bytes.
 *
 * @since 0.1.0
 */

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
 * Counts of files. `failed` is the number of files that could not be indexed.
 *
 * @since 0.1.0
 * @category models
 */
export interface IndexResult {
  readonly scanned: number
  readonly indexed: number
  readonly unchanged: number
  readonly removed: number
  readonly failed: number
  readonly elapsedMs: number
  /** Files that have nothing to search, as binary ones, and why; at most 1,000 of a directory. */
  readonly skipped: ReadonlyArray<Failure>
}

/**
 * One passage that was found. `heading` is the path of headings above it, from
 * the top; `line` its first line, from 1; a higher `score` is a better match.
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
export interface StatusResult {
  readonly database: string
  readonly databaseBytes: number
  readonly directories: ReadonlyArray<string>
  /** Documents that can be found. */
  readonly documents: number
  /** Files without anything to search. */
  readonly skipped: number
  /** Paths that wait to be processed, those that fail included. */
  readonly dirty: number
  readonly oldestDirtyMs: number
  readonly failing: number
  readonly deadLetters: number
  readonly failures: ReadonlyArray<Failure>
}

/**
 * `revived` is the number of dead letters that will be tried again.
 *
 * @since 0.1.0
 * @category models
 */
export interface RetryResult extends IndexResult {
  readonly revived: number
}

/**
 * Differences between index and directory, as paths: files that are not
 * indexed, files whose indexed content is old, and documents without a file.
 *
 * @since 0.1.0
 * @category models
 */
export interface VerifyResult {
  readonly ok: boolean
  readonly missing: ReadonlyArray<string>
  readonly stale: ReadonlyArray<string>
  readonly orphaned: ReadonlyArray<string>
  /** Whether the full-text index does not fit its own data. */
  readonly damaged: boolean
}
