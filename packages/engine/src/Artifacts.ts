/**
 * The files that a body makes. They go into the artifact store while the body runs, in a stream each, and belong to its
 * result under the names that it gives them. Only the body of an action has this service.
 *
 * @since 0.1.0
 */
import { ArtifactStore } from "@strata/cache/ArtifactStore"
import type { Artifact } from "@strata/cache/CacheEntry"
import { CacheError } from "@strata/cache/CacheError"
import * as Text from "@strata/durable/Text"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import { ActionError, ArtifactFailed, ArtifactNameInvalid } from "./ActionError.ts"

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The artifacts of the body that runs.
 *
 * @since 0.1.0
 * @category services
 */
export class Artifacts extends Context.Service<
  Artifacts,
  {
    /** See the function {@link add}. */
    readonly add: <E, R>(
      name: string,
      content: Stream.Stream<Uint8Array, E, R>
    ) => Effect.Effect<Artifact, E | ActionError, R | ArtifactStore>
  }
>()("@strata/engine/Artifacts") {}

// ---------------------------------------------------------------------------------------------------------------------
// accessors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Stores content as an artifact of the result. Names are unique within a result; two artifacts with the same content
 * are one blob. Fails when the name is taken or the store does not take the content, and the name is free again then.
 *
 * @since 0.1.0
 * @category accessors
 */
export const add = <E, R>(
  name: string,
  content: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<Artifact, E | ActionError, R | Artifacts | ArtifactStore> =>
  Artifacts.use((artifacts) => artifacts.add(name, content))

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Collects what one body adds.
 *
 * @internal
 */
export const collect = (
  action: string
): { readonly service: Artifacts["Service"]; readonly all: () => ReadonlyArray<Artifact> } => {
  const byName = new Map<string, Artifact | undefined>()
  const service = Artifacts.of({
    add: (name, content) =>
      Effect.suspend(() => {
        if (name === "" || !Text.isStorable(name) || byName.has(name)) {
          return Effect.fail(new ActionError({ action, reason: new ArtifactNameInvalid({ name }) }))
        }
        // Taken at once: a second stream under this name would else race this one.
        byName.set(name, undefined)
        return store(action, name, content).pipe(
          Effect.tap((artifact) => Effect.sync(() => byName.set(name, artifact))),
          Effect.onError(() => Effect.sync(() => byName.delete(name)))
        )
      })
  })
  const all = () =>
    Text.sortedBy(
      [...byName.values()].filter((artifact) => artifact !== undefined),
      (artifact) => artifact.name
    )
  return { service, all }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Errors of the content itself are those of the body. */
const store = Effect.fnUntraced(function* <E, R>(
  action: string,
  name: string,
  content: Stream.Stream<Uint8Array, E, R>
) {
  const artifacts = yield* ArtifactStore
  const blob = yield* artifacts
    .add(content)
    .pipe(
      Effect.mapError((error) =>
        error instanceof CacheError
          ? new ActionError({ action, reason: new ArtifactFailed({ name, cause: error }) })
          : error
      )
    )
  return { name, digest: blob.digest, size: blob.size }
})
