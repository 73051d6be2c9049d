/**
 * `npm run bench -- NAME… [--json] [--runs N] [--case CASE] [--check] [--out FILE]`, or `all` for NAME.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { appendFileSync, writeFileSync } from "node:fs"
import { parseArgs } from "node:util"
import type { Bench, Figure, Skipped } from "./Harness.ts"
import * as Harness from "./Harness.ts"
import * as Report from "./Report.ts"
import { targets } from "./targets.ts"

/** Each is loaded when it is run, so that it measures nothing but what it needs. */
const benches: Readonly<Record<string, () => Promise<Bench>>> = {
  durable: () => import("./durable.ts").then((module) => module.durable),
  "dirty-queue": () => import("./dirtyQueue.ts").then((module) => module.dirtyQueue),
  "queue-pg": () => import("./queuePg.ts").then((module) => module.queuePg),
  journal: () => import("./journal.ts").then((module) => module.journal),
  cache: () => import("./cache.ts").then((module) => module.cache),
  workflow: () => import("./workflow.ts").then((module) => module.workflow),
  growth: () => import("./growth.ts").then((module) => module.bench),
  index: () => import("./index.ts").then((module) => module.index),
  cli: () => import("./cli.ts").then((module) => module.cli)
}

interface Options {
  readonly json: boolean
  readonly runs: number
  readonly only: string | undefined
  readonly check: boolean
  /** The file that gets the tables too. */
  readonly out: string | undefined
}

const runBench = Effect.fnUntraced(function* (name: string, options: Options) {
  const bench = yield* Effect.promise(benches[name]!)
  const cases = bench.cases.filter((self) => options.only === undefined || self.name === options.only)
  if (cases.length === 0) return
  const figures: Array<Figure> = []
  const skipped: Array<Skipped> = []
  for (const self of cases) {
    const measured = yield* Effect.scoped(Harness.measure(bench.name, self, options.runs))
    figures.push(...measured.figures)
    skipped.push(...measured.skipped)
    if (options.json) {
      for (const figure of measured.figures) console.log(Report.jsonLine(figure))
      for (const skip of measured.skipped) console.error(Report.skippedLine(skip))
    }
  }
  if (options.check) checkTargets(figures)
  const table = Report.table({ ...bench, cases }, figures, skipped).join("\n")
  if (!options.json) console.log(table)
  if (options.out !== undefined) appendFileSync(options.out, `${table}\n`)
})

const checkTargets = (figures: ReadonlyArray<Figure>): void => {
  for (const figure of figures) {
    const target = targets.find(
      (target) => target.bench === figure.bench && target.case === figure.case && target.rival === figure.rival
    )
    if (target === undefined || figure.ratio >= target.atLeast) continue
    console.error(
      `missed: ${figure.bench} ${figure.case} against ${figure.rival} is ${figure.ratio.toFixed(3)} of ${target.atLeast.toFixed(3)}`
    )
    process.exitCode = 1
  }
}

const usage = (message: string): Effect.Effect<void> =>
  Effect.sync(() => {
    console.error(`${message}\nusage: npm run bench -- NAME… [--json] [--runs N] [--case CASE] [--check] [--out FILE]`)
    console.error(`NAME is all or one of: ${Object.keys(benches).join(", ")}`)
    process.exitCode = 2
  })

const parse = Effect.try({
  try: () =>
    parseArgs({
      allowPositionals: true,
      options: {
        json: { type: "boolean" },
        check: { type: "boolean" },
        runs: { type: "string", default: "7" },
        case: { type: "string" },
        out: { type: "string" }
      }
    }),
  catch: (cause) => (cause instanceof Error ? cause.message : String(cause))
})

const program = Effect.gen(function* () {
  const parsed = yield* Effect.result(parse)
  if (Result.isFailure(parsed)) return yield* usage(parsed.failure)
  const { positionals, values } = parsed.success
  const runs = Number(values.runs)
  if (!Number.isInteger(runs) || runs < 1) return yield* usage("--runs is a whole number from 1")
  const unknown = positionals.filter((name) => name !== "all" && benches[name] === undefined)
  if (unknown.length > 0) return yield* usage(`there is no bench ${unknown.join(", ")}`)
  if (positionals.length === 0) return yield* usage("which bench?")
  console.error(Report.machine())
  if (values.out !== undefined) writeFileSync(values.out, `${Report.machine()}\n\n`)
  for (const name of positionals.includes("all") ? Object.keys(benches) : positionals) {
    yield* runBench(name, {
      json: values.json === true,
      runs,
      only: values.case,
      check: values.check === true,
      out: values.out
    })
  }
})

await Effect.runPromise(program)
// Rivals leave timers behind.
process.exit()
