/**
 * Turns the bytes of a file into searchable passages.
 *
 * The format is chosen by the file's extension, for a name without one also by
 * how its content starts; whatever else is text counts as plain text. Parsers
 * are imported when the first file needs them, so a process that only searches
 * never loads one.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as PlainText from "./extract/PlainText.ts"
import { decode } from "./internal/decode.ts"
import * as Title from "./internal/title.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A piece of a document: what one hit of a search shows.
 *
 * @since 0.1.0
 * @category models
 */
export interface Passage {
  /** The 1-based line of the source in which the body starts. */
  readonly line: number
  /** The source line of each line of the body, where they do not simply follow one another. */
  readonly lines?: ReadonlyArray<number> | undefined
  /** The headings above it, outermost first, joined with ` > `; empty where there are none. At most 1,215 characters. */
  readonly heading: string
  /** The text: never blank, about 1,200 UTF-16 code units, at most 2,000. */
  readonly body: string
}

/**
 * What a format finds in a text. Every visible word of it is in exactly one
 * passage's body, or in the headings of the passages below it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Document {
  /** The title the document gives itself, if it does. */
  readonly title: string | undefined
  readonly passages: ReadonlyArray<Passage>
}

/**
 * What is searchable of a file.
 *
 * @since 0.1.0
 * @category models
 */
export interface Extracted {
  /** The document's own title, cut to 200 characters, else the file's name. */
  readonly title: string
  /** In the order of the source; at least one. */
  readonly passages: ReadonlyArray<Passage>
}

/**
 * A format that {@link Extractor} can read.
 *
 * @since 0.1.0
 * @category models
 */
export interface Format {
  /** Extensions in lower case, without the dot. */
  readonly extensions: ReadonlyArray<string>
  /**
   * Tells from the first 1,000 characters whether a file whose name has no extension is of this format. Default: it is
   * not.
   */
  readonly recognises?: ((start: string) => boolean) | undefined
  /** A longer text, in UTF-16 code units, is taken as plain text. Default: no limit. */
  readonly maxLength?: number | undefined
  /**
   * Gives the function that reads a text. It runs for every file, so it should remember what it loaded, as `import`
   * does. A text for which the function throws is taken as plain text.
   */
  readonly load: Effect.Effect<(text: string) => Document>
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Why a file has nothing to search: it is empty or blank, it is binary, it is
 * neither UTF-8 nor UTF-16 with a byte order mark, or it is larger than the
 * limit (both in bytes).
 *
 * @since 0.1.0
 * @category errors
 */
export const SkipReason = Schema.TaggedUnion({
  Empty: {},
  Binary: {},
  NotText: {},
  TooLarge: { size: Schema.Finite, limit: Schema.Finite }
})

/**
 * @since 0.1.0
 * @category errors
 */
export type SkipReason = typeof SkipReason.Type

/**
 * A file that is not indexed, and why.
 *
 * @since 0.1.0
 * @category errors
 */
export class Skip extends Schema.TaggedError<Skip>("@strata/search/Skip")("Skip", {
  path: Schema.String,
  reason: SkipReason
}) {
  override get message(): string {
    return SkipReason.match(this.reason, {
      Empty: () => "the file is empty",
      Binary: () => "the file is binary",
      NotText: () => "the file is not UTF-8 text",
      TooLarge: ({ size, limit }) => `the file has ${size} bytes, the limit is ${limit}`
    })
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category services
 */
export class Extractor extends Context.Service<
  Extractor,
  {
    /** The largest file that is read, in bytes, so that a caller can refuse one by its size before reading it. */
    readonly maxBytes: number
    /**
     * The passages of a file. `path` is slash-separated and decides the format; its last part is the title of a file
     * that has none. Fails for a file that has nothing to search, never for malformed markup.
     */
    readonly extract: (path: string, bytes: Uint8Array) => Effect.Effect<Extracted, Skip>
  }
>()("@strata/search/Extractor") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Markdown: `.md`, `.markdown`, `.mdx`, up to 1 MiB: its parser needs seconds for
 * a longer text made to be slow.
 *
 * @since 0.1.0
 * @category formats
 */
export const markdown: Format = {
  extensions: ["md", "markdown", "mdx"],
  maxLength: 1024 * 1024,
  load: Effect.promise(() => import("./extract/Markdown.ts").then((module) => module.extract))
}

/**
 * HTML: `.html`, `.htm`, `.xhtml`, and what starts like a page, up to 8 MiB.
 *
 * @since 0.1.0
 * @category formats
 */
export const html: Format = {
  extensions: ["html", "htm", "xhtml"],
  maxLength: 8 * 1024 * 1024,
  recognises: (start) => /^\s*<(?:!doctype\s+html|html)[\s>]/i.test(start),
  load: Effect.promise(() => import("./extract/Html.ts").then((module) => module.extract))
}

/**
 * @since 0.1.0
 * @category models
 */
export interface ExtractorOptions {
  /** The largest file that is read, in bytes. Default 16 MiB. */
  readonly maxBytes?: number | undefined
  /** Formats beside plain text, the first that fits is taken. Default {@link markdown} and {@link html}. */
  readonly formats?: ReadonlyArray<Format> | undefined
}

/**
 * @since 0.1.0
 * @category constructors
 */
export const make = (options?: ExtractorOptions): Extractor["Service"] => {
  const maxBytes = options?.maxBytes ?? 16 * 1024 * 1024
  const formatOf = selectFormat(options?.formats ?? [markdown, html])

  const extract = Effect.fnUntraced(function* (path: string, bytes: Uint8Array) {
    const skip = (reason: SkipReason) => new Skip({ path, reason })
    if (bytes.length > maxBytes) {
      return yield* skip({ _tag: "TooLarge", size: bytes.length, limit: maxBytes })
    }
    const decoded = decode(bytes)
    if (decoded._tag !== "Text") return yield* skip(decoded)
    const name = path.slice(path.lastIndexOf("/") + 1)
    const format = formatOf(name, decoded.text)
    const document =
      format === undefined || decoded.text.length > (format.maxLength ?? Infinity)
        ? PlainText.extract(decoded.text)
        : yield* extractStructured(format, path, decoded.text)
    const passages = withLongTitle(document)
    return passages.length === 0 ? yield* skip({ _tag: "Empty" }) : { title: titleOf(document, name), passages }
  })

  return { maxBytes, extract }
}

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category layers
 */
export const layer = (options?: ExtractorOptions): Layer.Layer<Extractor> =>
  Layer.sync(Extractor, () => Extractor.of(make(options)))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const selectFormat = (formats: ReadonlyArray<Format>) => {
  const byExtension = new Map(
    formats.toReversed().flatMap((format) => format.extensions.map((extension) => [extension, format] as const))
  )
  return (name: string, text: string): Format | undefined => {
    const dot = name.lastIndexOf(".")
    if (dot > 0) return byExtension.get(name.slice(dot + 1).toLowerCase())
    const start = text.slice(0, 1_000)
    return formats.find((format) => format.recognises?.(start))
  }
}

/** Parsers recurse, and some input nests deeper than the stack: its text is still searchable. */
const extractWith = (format: Format, path: string, text: string): Effect.Effect<Document> =>
  Effect.flatMap(format.load, (extract) =>
    Effect.suspend(() => {
      try {
        return Effect.succeed(extract(text))
      } catch (cause) {
        return Effect.as(Effect.logDebug("taken as plain text", path, cause), PlainText.extract(text))
      }
    })
  )

/** Of a text within the default limits, only one that was made to be slow has more. */
const structuredPassages = 100_000

/** Headings without a text below them are passages too, so that markup alone could make millions of them. */
const extractStructured = (format: Format, path: string, text: string): Effect.Effect<Document> =>
  Effect.map(extractWith(format, path, text), (document) =>
    document.passages.length > structuredPassages ? PlainText.extract(text) : document
  )

const titleOf = ({ title }: Document, name: string): string =>
  Title.cut(title === undefined || title === "" ? name : title)

/** What a long title loses stays searchable as text. */
const withLongTitle = ({ title, passages }: Document): ReadonlyArray<Passage> =>
  title === undefined || !Title.isLong(title) ? passages : [...PlainText.extract(title).passages, ...passages]
