/**
 * An extractor that remembers: extraction as an action, so that content that was seen before, under whatever path, on
 * this machine or, with a shared tier, on another one, is not extracted again. What is remembered depends on the bytes
 * of a file and on the extension of its name. The bytes themselves are not kept, nor are names.
 *
 * @since 0.1.0
 */
import { Digest, sha256 } from "@strata/durable/Digest"
import * as Action from "@strata/engine/Action"
import type { Decision } from "@strata/engine/Metrics"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { basename } from "node:path"
import * as Extractor from "./Extractor.ts"
import * as Title from "./internal/title.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Which files go through the cache.
 *
 * - `structured`: those of a format that takes longer to parse than a result takes to be looked up and committed: Markdown
 *   and HTML. Plain text and code are cut into passages faster than that.
 * - `all`: every file, so that another machine has nothing to extract.
 *
 * @since 0.1.0
 * @category models
 */
export type Which = "structured" | "all"

/**
 * How an extractor remembers.
 *
 * @since 0.1.0
 * @category models
 */
export interface CachedExtractorOptions {
  /** What extracts. Default: one with the default options of `Extractor`. */
  readonly extractor?: Extractor.Extractor["Service"] | undefined
  /** Names what `extractor` does: it must change when that gives other passages. Default: {@link version}. */
  readonly version?: string | undefined
  /** Default `structured`. */
  readonly which?: Which | undefined
}

/**
 * What an extractor has done so far, in files. Files that did not go through the cache are not in it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Counts {
  readonly extracted: number
  readonly localHits: number
  readonly sharedHits: number
}

/**
 * An extractor that remembers.
 *
 * @since 0.1.0
 * @category models
 */
export interface CachedExtractor {
  readonly extractor: Extractor.Extractor["Service"]
  readonly counts: Effect.Effect<Counts>
}

/**
 * Names what the default extractor does: to be changed whenever it, or one of its parsers, gives other passages.
 *
 * @since 0.1.0
 * @category models
 */
export const version = "1"

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * An extractor over the cache in context. A cache that fails costs time only: files are then extracted, with a warning.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  options: CachedExtractorOptions = {}
): Effect.fn.Return<CachedExtractor, never, Action.Services> {
  const services = yield* Effect.context<Action.Services>()
  const inner = options.extractor ?? Extractor.make()
  const action = makeAction(inner, options.version ?? version)
  const counting = makeCounting()

  const extract = Effect.fnUntraced(function* (path: string, bytes: Uint8Array) {
    const extension = extensionOf(path)
    if (bytes.length > inner.maxBytes || !isCached(options.which, extension)) return yield* inner.extract(path, bytes)
    const outcome = yield* action.result({ extension, content: sha256(bytes) }).pipe(
      Effect.provideService(Source, { path: nameless(extension), bytes }),
      Effect.provideContext(services),
      Effect.catch((error) => Effect.as(Effect.logWarning("A file was extracted without the cache", error), undefined))
    )
    if (outcome === undefined) return yield* inner.extract(path, bytes)
    counting.add(outcome.decision)
    return yield* toExtracted(outcome.value, path)
  })

  return { extractor: { maxBytes: inner.maxBytes, extract }, counts: counting.counts }
})

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * As {@link make}, for those who do not ask what it has done.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options?: CachedExtractorOptions): Layer.Layer<Extractor.Extractor, never, Action.Services> =>
  Layer.effect(
    Extractor.Extractor,
    Effect.map(make(options), ({ extractor }) => extractor)
  )

// ---------------------------------------------------------------------------------------------------------------------
// action
// ---------------------------------------------------------------------------------------------------------------------

/** The file that is extracted. The input of the action only names it. */
class Source extends Context.Service<Source, { readonly path: string; readonly bytes: Uint8Array }>()(
  "@strata/search/CachedExtractor/Source"
) {}

/** What all that is not in the name of a file, but for its extension, gives. */
const Remembered = Schema.TaggedUnion({
  Text: {
    /** Absent when the name of the file is its title. */
    title: Schema.optionalKey(Schema.String),
    passages: Schema.Array(
      Schema.Struct({
        line: Schema.Int,
        lines: Schema.optionalKey(Schema.Array(Schema.Int)),
        heading: Schema.String,
        body: Schema.String
      })
    )
  },
  Skipped: { reason: Extractor.SkipReason }
})
type Remembered = typeof Remembered.Type

const makeAction = (inner: Extractor.Extractor["Service"], version: string) =>
  Action.make({
    name: "strata-extract",
    version,
    input: Schema.Struct({ extension: Schema.NullOr(Schema.String), content: Digest }),
    success: Remembered,
    // Extraction does not depend on the cache: it goes on without one.
    whenCacheFails: "serve",
    run: () =>
      Effect.gen(function* () {
        const { bytes, path } = yield* Source
        return yield* inner.extract(path, bytes).pipe(
          Effect.map(toRemembered),
          Effect.catchTag("Skip", ({ reason }) => Effect.succeed<Remembered>({ _tag: "Skipped", reason }))
        )
      })
  })

const toRemembered = ({ passages, title }: Extractor.Extracted): Remembered => ({
  _tag: "Text",
  ...(title.startsWith(noName) ? {} : { title }),
  passages: passages.map(({ body, heading, line, lines }) => ({
    line,
    ...(lines === undefined ? {} : { lines }),
    heading,
    body
  }))
})

const toExtracted = (remembered: Remembered, path: string): Effect.Effect<Extractor.Extracted, Extractor.Skip> =>
  remembered._tag === "Text"
    ? Effect.succeed({ title: remembered.title ?? Title.cut(basename(path)), passages: remembered.passages })
    : Effect.fail(new Extractor.Skip({ path, reason: remembered.reason }))

// ---------------------------------------------------------------------------------------------------------------------
// names
// ---------------------------------------------------------------------------------------------------------------------

/** No text has it, so no document gives itself this title. */
const noName = "\0"

/** A path that has nothing of a file's but its extension. */
const nameless = (extension: string | null): string => (extension === null ? noName : `${noName}.${extension}`)

/** What the name of a file says about its format: `null` when the content decides. */
const extensionOf = (path: string): string | null => {
  const name = path.slice(path.lastIndexOf("/") + 1)
  const dot = name.lastIndexOf(".")
  return dot > 0 ? name.slice(dot + 1).toLowerCase() : null
}

const structured = new Set([...Extractor.markdown.extensions, ...Extractor.html.extensions])

const isCached = (which: Which | undefined, extension: string | null): boolean =>
  which === "all" || (extension !== null && structured.has(extension))

// ---------------------------------------------------------------------------------------------------------------------
// counting
// ---------------------------------------------------------------------------------------------------------------------

const makeCounting = () => {
  let extracted = 0
  let localHits = 0
  let sharedHits = 0
  return {
    counts: Effect.sync((): Counts => ({ extracted, localHits, sharedHits })),
    add: (decision: Decision) => {
      if (decision === "local-hit") localHits++
      else if (decision === "shared-hit") sharedHits++
      else extracted++
    }
  }
}
