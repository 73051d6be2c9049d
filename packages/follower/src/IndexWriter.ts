/**
 * Where a follower puts what it derived. A writer says how it commits: a `transactional` one stores through the
 * follower's own `SqlClient`, so that the index, the digests and the acknowledgement commit together, exactly once; an
 * `idempotent` one stores elsewhere, at least once, and gets a key with which to recognise a repetition.
 *
 * @since 0.1.0
 */
import type { Path, Scope } from "@strata/dirty-queue/Path"
import type { WriteTransaction } from "@strata/durable/DurableWriter"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { ProcessingError } from "./ProcessingError.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A path with the value that its index entry is to have.
 *
 * @since 0.1.0
 * @category models
 */
export interface Upsert<A> {
  readonly path: Path
  /** The content's digest, to be stored with the entry and given back by `digests`. */
  readonly digest: string
  readonly value: A
  /** The same for every delivery of one change of one path, and for no other. */
  readonly idempotencyKey: string
}

/**
 * A path whose index entry is to go.
 *
 * @since 0.1.0
 * @category models
 */
export interface Removal {
  readonly path: Path
  readonly idempotencyKey: string
}

/**
 * What one write applies; no path is in it twice.
 *
 * @since 0.1.0
 * @category models
 */
export interface Batch<A> {
  readonly scope: Scope
  readonly upserts: ReadonlyArray<Upsert<A>>
  readonly removals: ReadonlyArray<Removal>
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What every writer can tell about what it holds.
 *
 * @since 0.1.0
 * @category models
 */
export interface Digests {
  /**
   * The digests of those of `paths` that are in the index. A path is written only when its content's digest differs; a
   * path that is not in the index is not removed from it. A writer that cannot tell what it holds has no `digests`, and
   * gets every upsert and removal.
   */
  readonly digests?:
    | ((
        scope: Scope,
        paths: ReadonlyArray<Path>
      ) => Effect.Effect<ReadonlyMap<Path, string>, ProcessingError | SqlError>)
    | undefined
  /**
   * What it takes to remove those of `paths` that are in the index, in the unit of the follower's `weigh`. It counts for
   * removals and for entries that are replaced. Without it, only new values have a weight.
   */
  readonly weights?:
    | ((
        scope: Scope,
        paths: ReadonlyArray<Path>
      ) => Effect.Effect<ReadonlyMap<Path, number>, ProcessingError | SqlError>)
    | undefined
}

/**
 * A writer into tables of the follower's own database.
 *
 * @since 0.1.0
 * @category services
 */
export interface Transactional<A> extends Digests {
  readonly mode: "transactional"
  readonly write: (batch: Batch<A>) => Effect.Effect<void, ProcessingError | SqlError, WriteTransaction>
}

/**
 * A writer into another system. The same batch, or a part of it, may come again.
 *
 * @since 0.1.0
 * @category services
 */
export interface Idempotent<A> extends Digests {
  readonly mode: "idempotent"
  readonly write: (batch: Batch<A>) => Effect.Effect<void, ProcessingError>
}

/**
 * Applies upserts and removals to an index. A batch is applied whole or, when it fails, not at all (`transactional`) or
 * to an unknown extent (`idempotent`); the follower then narrows down which of its paths is at fault.
 *
 * @since 0.1.0
 * @category services
 */
export type IndexWriter<A> = Transactional<A> | Idempotent<A>

/**
 * A tag for the writer of one kind of value.
 *
 * @since 0.1.0
 * @category services
 */
export const Tag = <A>(key: string): Context.Service<IndexWriter<A>, IndexWriter<A>> =>
  Context.Service<IndexWriter<A>>(key)
