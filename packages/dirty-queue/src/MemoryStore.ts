/**
 * The tables of the memory tier: what `Changelog.layerMemory` and `DirtyQueue.layerMemory` share, as their SQL
 * counterparts share a database. Goes with `DurableWriter.layerMemory`.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import * as State from "./internal/memoryState.ts"

/**
 * An opaque store in memory.
 *
 * @since 0.1.0
 * @category services
 */
export class MemoryStore extends Context.Service<MemoryStore, { readonly state: State.MemoryState }>()(
  "@strata/dirty-queue/MemoryStore"
) {}

/**
 * A store that is empty.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<MemoryStore> = Layer.sync(MemoryStore, () => MemoryStore.of({ state: State.make() }))
