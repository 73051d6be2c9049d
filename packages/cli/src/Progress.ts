/**
 * Progress of a long command, as a bar on stderr with count, rate and time
 * left. Where stderr is no terminal nothing is shown, and the library that
 * draws the bar is not loaded.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stdio from "effect/Stdio"

/**
 * @since 0.1.0
 * @category models
 */
export interface Progress {
  /** Shows that `done` of `total` files, as far as they are known by now, are processed. */
  readonly update: (state: { readonly done: number; readonly total: number }) => Effect.Effect<void>
}

/**
 * A bar for the life of the scope, which is cleared when the scope closes.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  label: string
): Effect.fn.Return<Progress, never, Scope.Scope | Stdio.Stdio> {
  const stdio = yield* Stdio.Stdio
  return (yield* stdio.stderrIsTerminal) ? yield* makeBar(label) : silent
})

/**
 * Shows nothing.
 *
 * @since 0.1.0
 * @category constructors
 */
export const silent: Progress = { update: () => Effect.void }

const makeBar = Effect.fnUntraced(function* (label: string): Effect.fn.Return<Progress, never, Scope.Scope> {
  const { SingleBar, Presets } = yield* Effect.promise(() => import("cli-progress")).pipe(
    Effect.map((module) => module.default)
  )
  const start = yield* Clock.currentTimeMillis
  const bar = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const bar = new SingleBar(
        {
          stream: process.stderr,
          format: `${label} {bar} {value}/{total} {rate}/s, {eta_formatted} left`,
          clearOnComplete: true,
          hideCursor: true,
          // Signals end the command by interruption, which closes the scope and with it the bar.
          gracefulExit: false
        },
        Presets.shades_classic
      )
      bar.start(0, 0, { rate: 0 })
      return bar
    }),
    (bar) => Effect.sync(() => bar.stop())
  )
  return {
    update: ({ done, total }) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        bar.setTotal(total)
        bar.update(done, { rate: Math.round((done * 1000) / Math.max(1, now - start)) })
      })
  }
})
