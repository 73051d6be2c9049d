/**
 * What is derived from entries and has to follow when they are rewound: a projection takes back the rows that the
 * rewound entries explain, in the same write.
 *
 * @since 0.1.0
 */
import type { WriteTransaction } from "@strata/durable/DurableWriter"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import type * as Stream from "effect/Stream"
import * as Registry from "./internal/registry.ts"
import type { Entry } from "./Journal.ts"
import type { JournalError } from "./JournalError.ts"
import type { StreamName } from "./StreamName.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What was rewound.
 *
 * @since 0.1.0
 * @category models
 */
export interface RewoundEntries {
  readonly stream: StreamName
  /** The entries up to and with this seq have stayed. */
  readonly after: number
  /** Those that have not, newest first. */
  readonly entries: Stream.Stream<Entry, SqlError>
}

/**
 * A projection.
 *
 * @since 0.1.0
 * @category models
 */
export interface Projection {
  readonly name: string
  /**
   * Makes the rows what the entries that remain explain. What it reads of the journal, in this write, is what remains.
   * When it fails, nothing was rewound.
   */
  readonly rewind: (rewound: RewoundEntries) => Effect.Effect<void, unknown, WriteTransaction>
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The projections that are registered.
 *
 * @since 0.1.0
 * @category services
 */
export class Projections extends Context.Service<
  Projections,
  {
    /** Registers a projection for the life of the scope. Fails with `DuplicateRegistration` when its name is taken. */
    readonly register: (projection: Projection) => Effect.Effect<void, JournalError, Scope.Scope>
    /** In the order of registration, which is the order in which they are rewound. */
    readonly all: Effect.Effect<ReadonlyArray<Projection>>
  }
>()("@strata/journal/Projections") {}

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A registry, empty.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Projections> = Layer.sync(Projections, () =>
  Projections.of(Registry.make<Projection>("projection", (projection) => projection.name))
)

/**
 * Registers projections in the registry in context.
 *
 * @since 0.1.0
 * @category layers
 */
export const register = (...projections: ReadonlyArray<Projection>): Layer.Layer<never, JournalError, Projections> =>
  Layer.effectDiscard(Projections.use((registry) => Effect.forEach(projections, registry.register, { discard: true })))
