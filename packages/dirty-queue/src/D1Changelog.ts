/**
 * The changelog on Cloudflare D1. A D1 has no transactions that stay open between two calls, so nothing can be recorded
 * in a write that is under way: this is a tag of its own, whose `record` asks for no `WriteTransaction` and is a batch by
 * itself. A change and what it is about are stored together by `recordWith`, in one batch with the statements that make
 * the change.
 *
 * Entries, their order, and the dirty rows that they make are those of `Changelog`. Asks for `@effect/sql-d1`, which is an
 * optional peer of this package.
 *
 * @since 0.1.0
 */
import type { D1Client } from "@effect/sql-d1/D1Client"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Migrator from "effect/sql/Migrator"
import type { Row } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import type { Statement } from "effect/sql/Statement"
import type { Change, Changelog, ChangelogOptions } from "./Changelog.ts"
import type { ChangelogError } from "./ChangelogError.ts"
import type { ChangeSignal } from "./ChangeSignal.ts"
import * as Storage from "./internal/d1Changelog.ts"
import * as Prefixed from "./internal/prefixedChangelog.ts"
import type { Prefix } from "./Prefix.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The sequence numbers of the first and the last of some changes.
 *
 * @since 0.1.0
 * @category models
 */
export interface Range {
  readonly first: number
  readonly last: number
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The changelog on D1.
 *
 * @since 0.1.0
 * @category services
 */
export class D1Changelog extends Context.Service<
  D1Changelog,
  {
    /**
     * Records changes in one batch, all of them or none, ordered by scope and path (those of one path stay in order), and
     * gives their sequence numbers: `None` when there are no changes. Followers of this process are woken after it. Fails
     * with `NameTooLong` as `Changelog.record` does.
     *
     * When it fails without an answer of D1, the changes may have been recorded; recording them again does no harm.
     */
    readonly record: (changes: ReadonlyArray<Change>) => Effect.Effect<Option.Option<Range>, SqlError | ChangelogError>
    /**
     * Runs statements of the same D1 and then records changes, in one batch: all of it, or nothing. `results` are the rows
     * of the statements, in order.
     *
     * ```ts
     * yield* changelog.recordWith(
     *   [put({ scope, path })],
     *   [sql`INSERT INTO note (path, text) VALUES (${path}, ${text})`]
     * )
     * ```
     */
    readonly recordWith: (
      changes: ReadonlyArray<Change>,
      statements: ReadonlyArray<Statement<Row>>
    ) => Effect.Effect<
      { readonly range: Option.Option<Range>; readonly results: ReadonlyArray<ReadonlyArray<Row>> },
      SqlError | ChangelogError
    >
    /** As `Changelog.read`. */
    readonly read: Changelog["Service"]["read"]
    /** As `Changelog.prune`. */
    readonly prune: Changelog["Service"]["prune"]
  }
>()("@strata/dirty-queue/D1Changelog") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The changelog on the D1 in context. Creates what is missing of its tables. Times are those of the database unless
 * `clock` is `effect`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: (
  options?: ChangelogOptions
) => Effect.Effect<D1Changelog["Service"], SqlError | Migrator.MigrationError, D1Client | ChangeSignal> = Storage.make

/**
 * The changelog as seen from inside of a prefix, as `Changelog.prefixed`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const prefixed = (changelog: D1Changelog["Service"], prefix: Prefix): D1Changelog["Service"] => ({
  ...Prefixed.reading(changelog, prefix),
  record: (changes) => changelog.record(Prefixed.add(prefix, changes)),
  recordWith: (changes, statements) => changelog.recordWith(Prefixed.add(prefix, changes), statements)
})

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The changelog on the D1 in context, see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options?: ChangelogOptions
): Layer.Layer<D1Changelog, SqlError | Migrator.MigrationError, D1Client | ChangeSignal> =>
  Layer.effect(D1Changelog, make(options))
