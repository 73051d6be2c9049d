/**
 * `strata runs list|show|rewind|fork|resume|cancel`
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Database from "../Database.ts"
import { Output } from "../Output.ts"
import { root } from "../Root.ts"
import * as Integer from "../internal/integer.ts"
import { runLine, showLines } from "../internal/runLines.ts"

const existing = Effect.gen(function* () {
  const { database: named } = yield* root
  const database = yield* Database.existing(named)
  yield* Database.tellElsewhere(named, database, "database")
  return database
})

const load = Effect.promise(() => import("../operations/Runs.ts"))

const run = Argument.String("RUN").pipe(Argument.withDescription("The execution id of a run"))

const seq = Integer.argument("SEQ", { least: 0, most: Number.MAX_SAFE_INTEGER }).pipe(
  Argument.withDescription("The last entry of its journal that stays")
)

const andGoOn = Flag.Boolean("resume").pipe(
  Flag.withoutNegation,
  Flag.withDescription("Let it go on at once. Default: it is held until it is resumed"),
  Flag.withDefault(false)
)

const list = Command.make(
  "list",
  {
    state: Flag.Literals("state", ["running", "suspended", "completed"]).pipe(
      Flag.withDescription("Only runs in this state. Default: all"),
      Flag.optional
    ),
    workflow: Flag.String("workflow").pipe(
      Flag.withMetavar("NAME"),
      Flag.withDescription("Only runs of this workflow. Default: of all"),
      Flag.optional
    ),
    limit: Integer.flag("limit", { least: 0, most: 100_000 }).pipe(
      Flag.withMetavar("N"),
      Flag.withDescription("How many of the newest runs to show (20)"),
      Flag.withDefault(20)
    )
  },
  Effect.fnUntraced(function* ({ limit, state, workflow }) {
    const output = yield* Output
    const database = yield* existing
    const operation = yield* load
    const options = {
      database,
      limit,
      state: Option.getOrUndefined(state),
      workflow: Option.getOrUndefined(workflow)
    }
    const result = yield* Database.naming(database, operation.list(options))
    yield* output.result(result, (style) => result.runs.map((run) => runLine(run, style)))
  })
).pipe(Command.withDescription("List runs of workflows, newest first"))

const show = Command.make(
  "show",
  { executionId: run },
  Effect.fnUntraced(function* ({ executionId }) {
    const output = yield* Output
    const database = yield* existing
    const operation = yield* load
    const result = yield* Database.naming(database, operation.show({ database, executionId }))
    yield* output.result(result, (style) => showLines(result, style))
  })
).pipe(Command.withDescription("Show how a run stands, and what happened to it"))

const rewind = Command.make(
  "rewind",
  {
    executionId: run,
    seq,
    resume: andGoOn,
    force: Flag.Boolean("force").pipe(
      Flag.withoutNegation,
      Flag.withDescription("Take it from another process that runs it at the moment"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* (options) {
    const output = yield* Output
    const database = yield* existing
    const operation = yield* load
    const result = yield* Database.naming(database, operation.rewind({ database, ...options }))
    yield* output.result(result, (style) => [
      runLine(result, style),
      `${result.archived === 1 ? "1 entry" : `${result.archived} entries`} taken back`
    ])
  })
).pipe(
  Command.withDescription(
    "Take a run back to an entry of its journal: what it did since is as if it had not been, and is archived"
  )
)

const fork = Command.make(
  "fork",
  {
    executionId: run,
    seq: seq.pipe(Argument.optional),
    to: Flag.String("to").pipe(
      Flag.withMetavar("ID"),
      Flag.withDescription("The execution id of the new run. Default: that of the first one, with something behind it"),
      Flag.optional
    ),
    resume: andGoOn
  },
  Effect.fnUntraced(function* ({ executionId, resume, seq, to }) {
    const output = yield* Output
    const database = yield* existing
    const operation = yield* load
    const options = {
      database,
      executionId,
      resume,
      seq: Option.getOrUndefined(seq),
      to: Option.getOrUndefined(to)
    }
    const result = yield* Database.naming(database, operation.fork(options))
    yield* output.result(result, (style) => [runLine(result, style)])
  })
).pipe(Command.withDescription("Start a run with what another one had done up to an entry, or up to its result"))

const resume = Command.make(
  "resume",
  { executionId: run },
  Effect.fnUntraced(function* ({ executionId }) {
    const output = yield* Output
    const database = yield* existing
    const operation = yield* load
    const result = yield* Database.naming(database, operation.resume({ database, executionId }))
    yield* output.result(result, (style) => [runLine(result, style)])
  })
).pipe(
  Command.withDescription(
    "Let a run go on that is held, as it was rewound or forked, or suspended on a failure. One that has ended goes on after " +
      "runs rewind RUN SEQ --resume"
  )
)

const cancel = Command.make(
  "cancel",
  {
    executionId: run,
    unsafe: Flag.Boolean("unsafe").pipe(
      Flag.withoutNegation,
      Flag.withDescription("Cut off what it does at the moment, too"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ executionId, unsafe }) {
    const output = yield* Output
    const database = yield* existing
    const operation = yield* load
    const result = yield* Database.naming(database, operation.cancel({ database, executionId, unsafe }))
    yield* output.result(result, (style) => [runLine(result, style)])
  })
).pipe(Command.withDescription("Ask a run to end, and to compensate what it has done"))

/**
 * @since 0.1.0
 * @category commands
 */
export const runs = Command.make("runs").pipe(
  Command.withDescription("Look after runs of workflows. The process that has their workflow picks up what is changed"),
  Command.withSubcommands([list, show, rewind, fork, resume, cancel])
)
