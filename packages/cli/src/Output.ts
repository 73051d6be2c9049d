/**
 * What a command prints. Results go to stdout: as lines for people or, with
 * `--json`, as one JSON object on the last line. Everything else goes to
 * stderr, so that a pipe carries results only.
 *
 * Text from files and file names is shown with its control characters made
 * visible, so that indexed content cannot drive the terminal.
 *
 * @since 0.1.0
 */
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TerminalCapabilities } from "effect/cli/TerminalCapabilities"
import { styleText } from "node:util"
import type { Failure, Listed } from "./Results.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Marks up text for people. Without colours each function returns its text.
 *
 * @since 0.1.0
 * @category models
 */
export interface Style {
  readonly strong: (text: string) => string
  readonly faint: (text: string) => string
  readonly path: (text: string) => string
  readonly match: (text: string) => string
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category services
 */
export class Output extends Context.Service<
  Output,
  {
    /** Whether results are printed as JSON. */
    readonly json: boolean
    /** Prints the result of a command: `result` as JSON, or what `render` makes of it for people. */
    readonly result: (result: object, render: (style: Style) => ReadonlyArray<string>) => Effect.Effect<void>
    /** Lists on stderr what failed, a line each; with `--json` it is in the result too. */
    readonly failures: (failed: Pick<Listed, "failed" | "failures">) => Effect.Effect<void>
    /** Reports an error that ended the command: on stderr or, with `--json`, as `{ "error": { tag, message } }`. */
    readonly error: (error: { readonly tag: string; readonly message: string }) => Effect.Effect<void>
    /** Tells people something on stderr; silent with `--json`. */
    readonly notice: (line: string) => Effect.Effect<void>
    /** Tells that the command was interrupted: people on stderr or, with `--json` and before any result, as an error. */
    readonly interrupted: (line?: string) => Effect.Effect<void>
  }
>()("@strata/cli/Output") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: { readonly json: boolean; readonly colors: boolean }): Effect.Effect<Output["Service"]> =>
  Effect.map(Console.Console, (console) => {
    const style = options.colors ? colored : plain
    let hasPrinted = false
    const print = (line: string) =>
      Effect.sync(() => {
        hasPrinted = true
        console.log(line)
      })
    const report = (line: string) => Effect.sync(() => console.error(line))
    return Output.of({
      json: options.json,
      result: (result, render) =>
        options.json ? print(JSON.stringify(result)) : Effect.forEach(render(style), print, { discard: true }),
      failures: ({ failed, failures }) => Effect.forEach(failedPaths(failures, failed), report, { discard: true }),
      error: ({ message, tag }) =>
        options.json
          ? print(JSON.stringify({ error: { tag, message: withoutUserInfo(message) } }))
          : report(`strata: ${visible(withoutUserInfo(message))}`),
      interrupted: (line) =>
        Effect.suspend(() => {
          if (options.json) {
            const error = { tag: "Interrupted", message: line ?? "interrupted" }
            return hasPrinted ? Effect.void : print(JSON.stringify({ error }))
          }
          return line === undefined ? Effect.void : report(visible(line))
        }),
      notice: (line) => (options.json ? Effect.void : report(visible(line)))
    })
  })

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Colours are used where `TerminalCapabilities` allows them: on a terminal, without `NO_COLOR`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: { readonly json: boolean }): Layer.Layer<Output> =>
  Layer.effect(
    Output,
    Effect.flatMap(TerminalCapabilities, ({ canColor }) => make({ json: options.json, colors: canColor }))
  )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const failedPaths = (failures: ReadonlyArray<Failure>, failed: number): ReadonlyArray<string> => [
  ...failures.map(({ path, reason }) => `${visible(path)}: ${visible(reason)}`),
  ...(failed > failures.length ? [`and ${failed - failures.length} more`] : [])
]

/** An argument in the wrong place is repeated, and may be a URL with a password. */
const withoutUserInfo = (text: string): string => text.replaceAll(/(?<=:\/\/)[^\s/?#]*@/g, "…@")

/**
 * `text` on one line: control characters, which a terminal would act on, become visible escapes.
 *
 * @since 0.1.0
 * @category helpers
 */
export const visible = (text: string): string =>
  text.replace(controls, (character) =>
    character === "\t" ? " " : `\\u{${character.codePointAt(0)!.toString(16).padStart(2, "0")}}`
  )

/** Control characters, and the marks that change the direction of what follows. */
const controls = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

const paint =
  (format: Parameters<typeof styleText>[0]) =>
  (text: string): string =>
    styleText(format, text, { validateStream: false })

const colored: Style = {
  strong: paint("bold"),
  faint: paint("dim"),
  path: paint("magenta"),
  match: paint(["bold", "yellow"])
}

const plain: Style = {
  strong: (text) => text,
  faint: (text) => text,
  path: (text) => text,
  match: (text) => text
}
