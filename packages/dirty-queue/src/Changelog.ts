/**
 * The list of changes of content, by scope and path, in the order in which they were recorded. Recording a change makes
 * its path dirty for every follower that covers it, in the same write, so that no change can be forgotten. Entries can
 * be pruned at any time: what is still to be processed is in the dirty queue.
 *
 * @since 0.1.0
 */
import type { DurableWriter, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ChangeSignal } from "./ChangeSignal.ts"
import type { ChangelogError } from "./ChangelogError.ts"
import type { ChangelogStorage } from "./ChangelogStorage.ts"
import * as Service from "./internal/changelogService.ts"
import * as Memory from "./internal/memoryChangelog.ts"
import * as Prefixed from "./internal/prefixedChangelog.ts"
import * as SqlStorage from "./internal/sqlStorage.ts"
import * as Text from "@strata/durable/Text"
import type { MemoryStore } from "./MemoryStore.ts"
import { Path, Scope } from "./Path.ts"
import type { Prefix } from "./Prefix.ts"

export {
  /**
   * @since 0.1.0
   * @category errors
   */
  ChangelogError
} from "./ChangelogError.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Whatever the recorder of changes identifies content by, such as a digest: any well-formed text without NUL.
 *
 * @since 0.1.0
 * @category models
 */
export const ContentId = Schema.String.check(
  Schema.makeFilter((text: string) => Text.isStorable(text) || "well-formed Unicode without NUL")
)

/**
 * A path got new content. `mtime` is the content's modification time, in milliseconds since the epoch.
 *
 * @since 0.1.0
 * @category models
 */
export const Put = Schema.Struct({
  op: Schema.Literal("put"),
  scope: Scope,
  path: Path,
  cid: Schema.optional(ContentId),
  mtime: Schema.optional(Schema.Int)
})

/**
 * @since 0.1.0
 * @category models
 */
export type Put = typeof Put.Type

/**
 * A path lost its content.
 *
 * @since 0.1.0
 * @category models
 */
export const Delete = Schema.Struct({
  op: Schema.Literal("delete"),
  scope: Scope,
  path: Path,
  mtime: Schema.optional(Schema.Int)
})

/**
 * @since 0.1.0
 * @category models
 */
export type Delete = typeof Delete.Type

/**
 * A change of one path.
 *
 * @since 0.1.0
 * @category models
 */
export const Change = Schema.Union([Put, Delete])

/**
 * @since 0.1.0
 * @category models
 */
export type Change = typeof Change.Type

/**
 * A recorded change.
 *
 * @since 0.1.0
 * @category models
 */
export interface Entry {
  /** Position in the changelog; rises, and is never used again. */
  readonly seq: number
  readonly scope: Scope
  readonly path: Path
  readonly op: "put" | "delete"
  readonly cid: string | undefined
  /** Milliseconds since the epoch. */
  readonly mtime: number | undefined
  /** Milliseconds since the epoch. */
  readonly recordedAt: number
}

/**
 * Whose time entries carry, see `DirtyQueueOptions.clock`; give both the same.
 *
 * @since 0.1.0
 * @category models
 */
export interface ChangelogOptions {
  /** Default `database` on Postgres and D1, and otherwise `effect`. */
  readonly clock?: "effect" | "database" | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The changelog.
 *
 * @since 0.1.0
 * @category services
 */
export class Changelog extends Context.Service<
  Changelog,
  {
    /**
     * Records changes in the write that is under way, ordered by scope and path (those of one path stay in order), and
     * gives the sequence numbers of the first and the last: `None` when there are no changes. Followers of this process
     * are woken after the commit. Best with some hundreds of changes at a time. Fails with `NameTooLong`, and records
     * none, when a path or a scope has more bytes than `Path` takes.
     */
    readonly record: (
      changes: ReadonlyArray<Change>
    ) => Effect.Effect<
      Option.Option<{ readonly first: number; readonly last: number }>,
      SqlError | ChangelogError,
      WriteTransaction
    >
    /** Entries behind the sequence number `after` (default 0), oldest first. Default limit 1,000. */
    readonly read: (options?: {
      readonly scope?: Scope | undefined
      readonly prefix?: Prefix | undefined
      readonly after?: number | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<ReadonlyArray<Entry>, SqlError>
    /**
     * Removes the oldest entries, and gives their number: those with a sequence number below `seq`, or those that were
     * recorded before `time` (milliseconds since the epoch), up to the first one that was not. At most `limit` (default
     * 10,000) at a time, as others cannot write meanwhile: repeat it until it gives less. Dirty rows stay.
     */
    readonly prune: (options: {
      readonly before: { readonly seq: number } | { readonly time: number }
      readonly scope?: Scope | undefined
      readonly prefix?: Prefix | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<number, SqlError>
  }
>()("@strata/dirty-queue/Changelog") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A change that gives a path new content.
 *
 * @since 0.1.0
 * @category constructors
 */
export const put = (change: Omit<Put, "op">): Change => ({ ...change, op: "put" })

/**
 * A change that takes a path's content away.
 *
 * @since 0.1.0
 * @category constructors
 */
export const remove = (change: Omit<Delete, "op">): Change => ({ ...change, op: "delete" })

/**
 * The changelog over any storage.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeEncoded: (
  storage: ChangelogStorage,
  options?: ChangelogOptions
) => Effect.Effect<Changelog["Service"], never, DurableWriter | ChangeSignal> = Service.make

/**
 * The changelog in memory: for tests, and where nothing has to survive the process.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeMemory = (
  options?: ChangelogOptions
): Effect.Effect<Changelog["Service"], never, MemoryStore | DurableWriter | ChangeSignal> =>
  Effect.flatMap(Memory.make, (storage) => makeEncoded(storage, options))

/**
 * The changelog on SQLite or Postgres, whichever the `SqlClient` in context is of. Creates what is missing of its
 * tables.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeSql = (
  options?: ChangelogOptions
): Effect.Effect<
  Changelog["Service"],
  SqlError | Migrator.MigrationError,
  SqlClient.SqlClient | DurableWriter | ChangeSignal
> => Effect.flatMap(SqlStorage.changelog(options), ({ options, storage }) => makeEncoded(storage, options))

/**
 * The changelog as seen from inside of a prefix: paths are given and taken without it, and only what it covers is read
 * and pruned. A path that equals the prefix has no name inside of it, and is not read.
 *
 * @since 0.1.0
 * @category constructors
 */
export const prefixed: (changelog: Changelog["Service"], prefix: Prefix) => Changelog["Service"] = Prefixed.make

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The changelog in memory.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (
  options?: ChangelogOptions
): Layer.Layer<Changelog, never, MemoryStore | DurableWriter | ChangeSignal> =>
  Layer.effect(Changelog, makeMemory(options))

/**
 * The changelog on SQLite or Postgres, see {@link makeSql}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options?: ChangelogOptions
): Layer.Layer<Changelog, SqlError | Migrator.MigrationError, SqlClient.SqlClient | DurableWriter | ChangeSignal> =>
  Layer.effect(Changelog, makeSql(options))
