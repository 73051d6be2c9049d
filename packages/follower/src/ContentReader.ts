/**
 * Where a follower gets content from: it asks for a path and is given what is there now. A reader is asked after the
 * path was claimed, so that what is indexed is current and never what a change once carried.
 *
 * @since 0.1.0
 */
import type { Path, Scope } from "@strata/dirty-queue/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Digest from "@strata/durable/Digest"
import type { ProcessingError } from "./ProcessingError.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The content of a path as it is now.
 *
 * @since 0.1.0
 * @category models
 */
export interface Content<A> {
  /** Digest of all that the indexed value depends on. A path whose digest is in the index already is not loaded. */
  readonly digest: string
  /** Makes the value to be indexed, as by extracting text. Runs outside of any transaction. */
  readonly load: Effect.Effect<A, ProcessingError>
}

/**
 * A change's address: the scope and the path in it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Key {
  readonly scope: Scope
  readonly path: Path
  /**
   * What the newest change known when the path was claimed said, absent on a backfilled path. It may save a reader work;
   * if it is out of date the path is dirty again. It is never content.
   */
  readonly op?: "put" | "delete" | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Reads current content.
 *
 * @since 0.1.0
 * @category services
 */
export interface ContentReader<A> {
  /** The content of a path now; `None` when there is none, which removes the path from the index. */
  readonly read: (key: Key) => Effect.Effect<Option.Option<Content<A>>, ProcessingError>
}

/**
 * A tag for the reader of one kind of content. An app with several followers has a tag for each.
 *
 * @since 0.1.0
 * @category services
 */
export const Tag = <A>(key: string): Context.Service<ContentReader<A>, ContentReader<A>> =>
  Context.Service<ContentReader<A>>(key)

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A reader over text values that an effect looks up, digested as they are.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromLookup = (
  lookup: (key: Key) => Effect.Effect<Option.Option<string>, ProcessingError>
): ContentReader<string> => ({
  read: (key) =>
    Effect.map(
      lookup(key),
      Option.map((text) => ({ digest: Digest.sha256(text), load: Effect.succeed(text) }))
    )
})

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A reader over a map that the caller changes, keyed by `scope/path`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = <I>(
  tag: Context.Service<I, ContentReader<string>>,
  contents: ReadonlyMap<string, string>
): Layer.Layer<I> =>
  Layer.succeed(
    tag,
    fromLookup(({ path, scope }) => Effect.sync(() => Option.fromUndefinedOr(contents.get(`${scope}/${path}`))))
  )
