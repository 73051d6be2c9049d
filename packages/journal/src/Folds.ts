/**
 * The folds of an app. Those that are registered take part in every checkpoint and compaction: their states are put where
 * the entries were. Register each fold in every process that compacts.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as Fold from "./Fold.ts"
import * as Registry from "./internal/registry.ts"
import type { JournalError } from "./JournalError.ts"

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The folds that are registered.
 *
 * @since 0.1.0
 * @category services
 */
export class Folds extends Context.Service<
  Folds,
  {
    /** Registers a fold for the life of the scope. Fails with `DuplicateRegistration` when its key is taken. */
    readonly register: (fold: Fold.Any) => Effect.Effect<void, JournalError, Scope.Scope>
    /** In the order of registration. */
    readonly all: Effect.Effect<ReadonlyArray<Fold.Any>>
  }
>()("@strata/journal/Folds") {}

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A registry, empty.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Folds> = Layer.sync(Folds, () =>
  Folds.of(Registry.make<Fold.Any>("fold", (fold) => fold.key))
)

/**
 * Registers folds in the registry in context.
 *
 * @since 0.1.0
 * @category layers
 */
export const register = (...folds: ReadonlyArray<Fold.Any>): Layer.Layer<never, JournalError, Folds> =>
  Layer.effectDiscard(Folds.use((registry) => Effect.forEach(folds, registry.register, { discard: true })))
