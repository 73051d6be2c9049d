/**
 * The runs of workflows in a database. Their workflows are not known here: what is changed of a run is picked up by the
 * process that has registered its workflow.
 *
 * @since 0.1.0
 */
import * as ClockStore from "@strata/engine/ClockStore"
import * as DeferredStore from "@strata/engine/DeferredStore"
import * as RunHistory from "@strata/engine/RunHistory"
import * as RunStore from "@strata/engine/RunStore"
import * as Folds from "@strata/journal/Folds"
import * as Projections from "@strata/journal/Projections"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Database } from "./Database.ts"
import * as Reader from "./Reader.ts"
import * as Workspace from "./Workspace.ts"

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The database was never used for workflows.
 *
 * @since 0.1.0
 * @category errors
 */
export class NoRuns extends Schema.TaggedError<NoRuns>("@strata/cli/NoRuns")("NoRuns", { database: Schema.String }) {
  override get message(): string {
    return `there are no runs of workflows in the database ${this.database}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// accessors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Whether a database has runs, or had some.
 *
 * @since 0.1.0
 * @category accessors
 */
export const areIn = (database: Database) => Effect.scoped(Effect.flatMap(Reader.make(database), RunStore.isIn))

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The runs of a database that has some. Another database is left as it is.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerExisting = (database: Database) =>
  Layer.unwrap(
    Effect.flatMap(areIn(database), (found) =>
      found ? Effect.succeed(layer(database)) : Effect.fail(new NoRuns({ database: database.name }))
    )
  )

const layer = (database: Database) =>
  RunHistory.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(RunStore.layerSql, ClockStore.layerSql())),
    Layer.provideMerge(DeferredStore.layerSql),
    Layer.provideMerge(Layer.mergeAll(Folds.layer, Projections.layer)),
    Layer.provideMerge(Workspace.layerStore(database))
  )
