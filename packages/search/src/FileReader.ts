/**
 * The `ContentReader` of files: what is searchable of a file as it is now. A file is read once, whole, and only when it
 * is within the extractor's limit; its digest is taken from the bytes, and text is extracted only when that digest is
 * not in the index yet.
 *
 * @since 0.1.0
 */
import type { Path, Scope } from "@strata/dirty-queue/Path"
import * as Digest from "@strata/durable/Digest"
import type { Content, ContentReader } from "@strata/follower/ContentReader"
import * as ProcessingError from "@strata/follower/ProcessingError"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SqlError } from "effect/sql/SqlError"
import { basename } from "node:path"
import type { Extractor } from "./Extractor.ts"
import { readFile } from "./internal/readFile.ts"
import * as Roots from "./Roots.ts"
import type { Indexed } from "./SearchIndex.ts"

/**
 * How files are read.
 *
 * @since 0.1.0
 * @category models
 */
export interface FileReaderOptions {
  /** The absolute base folder of the roots, see `Roots`. */
  readonly base: string
  readonly extractor: Extractor["Service"]
  /**
   * Whether a path is in the tree, as `Scan.lists` knows. A file that the scan does not list, since it is ignored now or
   * its root was forgotten, has no content for the index although it is there. Default: every file counts.
   */
  readonly lists?: ((scope: Scope, path: Path) => Effect.Effect<boolean, SqlError>) | undefined
  /** Reads what a link leads to. Default `false`: a link has no content. */
  readonly followSymlinks?: boolean | undefined
}

/**
 * A reader of the files below the roots. A file that is not there, is no regular file, or is a link has no content. A
 * file that cannot be read is a transient failure, too many open files a busy one.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: FileReaderOptions): ContentReader<Indexed> => ({
  read: ({ op, path, scope }) =>
    // A scan that records a path lists it in the same write.
    op === "put"
      ? read(options, scope, path)
      : Effect.flatMap(isListed(options, scope, path), (listed) =>
          listed ? read(options, scope, path) : Effect.succeedNone
        )
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const isListed = (options: FileReaderOptions, scope: Scope, path: Path) =>
  options.lists === undefined
    ? Effect.succeed(true)
    : Effect.mapError(options.lists(scope, path), (error) =>
        ProcessingError.busy("what the last scan saw cannot be read", error)
      )

const read = (options: FileReaderOptions, scope: Scope, path: Path) =>
  Effect.map(
    readFile(Roots.fileOf(options.base, scope, path), {
      maxBytes: options.extractor.maxBytes,
      followSymlinks: options.followSymlinks === true
    }),
    Option.map((file): Content<Indexed> =>
      file._tag === "TooLarge"
        ? tooLarge(path, file.size, options.extractor.maxBytes)
        : { digest: Digest.sha256(file.bytes), load: extract(options.extractor, path, file.bytes) }
    )
  )

const extract = (
  extractor: Extractor["Service"],
  path: string,
  bytes: Uint8Array
): Effect.Effect<Indexed, ProcessingError.ProcessingError> =>
  extractor.extract(path, bytes).pipe(
    Effect.map((extracted): Indexed => ({ _tag: "Text", ...extracted })),
    Effect.catchTag("Skip", (skip) =>
      Effect.succeed<Indexed>({ _tag: "Skipped", title: basename(path), reason: skip.reason })
    )
  )

/** The limit is part of the digest, so that the file is looked at again when it is raised. */
const tooLarge = (path: string, size: number, limit: number): Content<Indexed> => ({
  digest: Digest.sha256(`too large: ${size} of ${limit}`),
  load: Effect.succeed({ _tag: "Skipped", title: basename(path), reason: { _tag: "TooLarge", size, limit } })
})
