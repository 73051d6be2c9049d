/**
 * The services of the platform that `effect/cli` asks for. A search is a whole
 * process, so nothing is loaded that no command uses: this program neither
 * prompts nor starts other programs.
 *
 * @since 0.1.0
 */
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeStdio from "@effect/platform-node-shared/NodeStdio"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as Path from "effect/Path"
import * as Stdio from "effect/Stdio"
import * as Terminal from "effect/Terminal"
import * as TerminalCapabilities from "effect/cli/TerminalCapabilities"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import { isatty } from "node:tty"

/** Asking `process.stdin` whether it is a terminal would open it. */
const stdio = Layer.effect(
  Stdio.Stdio,
  Effect.map(Stdio.Stdio, (stdio) =>
    Stdio.Stdio.of({
      ...stdio,
      stdinIsTerminal: Effect.sync(() => isatty(0)),
      stdoutIsTerminal: Effect.sync(() => isatty(1)),
      stderrIsTerminal: Effect.sync(() => isatty(2))
    })
  )
).pipe(Layer.provide(NodeStdio.layer))

const unused = Effect.die("strata neither prompts nor starts other programs")

const terminal = Layer.succeed(
  Terminal.Terminal,
  Terminal.make({
    columns: Effect.sync(() => process.stdout.columns ?? 80),
    rows: Effect.sync(() => process.stdout.rows ?? 24),
    size: unused,
    readInput: unused,
    readLine: unused,
    display: () => unused
  })
)

const spawner = Layer.succeed(
  ChildProcessSpawner.ChildProcessSpawner,
  ChildProcessSpawner.make(() => unused)
)

/**
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<
  FileSystem.FileSystem | Path.Path | Stdio.Stdio | Terminal.Terminal | ChildProcessSpawner.ChildProcessSpawner
> = Layer.mergeAll(
  NodeFileSystem.layer,
  NodePath.layer,
  terminal,
  spawner,
  TerminalCapabilities.layer.pipe(Layer.provideMerge(stdio))
)
