/**
 * The dirty queue on Cloudflare D1: the tag, the tables and the guards of `DirtyQueue` on SQLite, without transactions.
 * Each operation is one statement or one batch and commits by itself; none joins a write that is under way. Goes with
 * `D1Changelog`. Asks for `@effect/sql-d1`, which is an optional peer of this package.
 *
 * @since 0.1.0
 */
import type { D1Client } from "@effect/sql-d1/D1Client"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Migrator from "effect/sql/Migrator"
import type { SqlError } from "effect/sql/SqlError"
import type { ChangeSignal } from "./ChangeSignal.ts"
import { DirtyQueue, type DirtyQueueOptions, makeEncodedUnjoined } from "./DirtyQueue.ts"
import * as Storage from "./internal/d1Queue.ts"

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The queue on the D1 in context. Creates what is missing of its tables. Times are those of the database unless `clock`
 * is `effect`.
 *
 * - An operation that fails without an answer of D1 may have happened. What it claimed comes back when the lease ends;
 *   an answer that is given again is `Lost` when it was heard the first time.
 * - A claim that is interrupted waits for D1, and gives back what it got.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options?: DirtyQueueOptions
): Effect.Effect<DirtyQueue["Service"], SqlError | Migrator.MigrationError, D1Client | ChangeSignal> =>
  Effect.flatMap(Storage.make, (storage) =>
    makeEncodedUnjoined(storage, { ...options, clock: options?.clock ?? "database" })
  )

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The queue on the D1 in context, see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options?: DirtyQueueOptions
): Layer.Layer<DirtyQueue, SqlError | Migrator.MigrationError, D1Client | ChangeSignal> =>
  Layer.effect(DirtyQueue, make(options))
