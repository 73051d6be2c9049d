/**
 * Workers in several processes work off a queue on Postgres while paths are written, and processes are killed at random;
 * at the end the tables tell whether a change was lost, and whether two workers were at one path at a time.
 */
import * as Changelog from "@strata/dirty-queue/Changelog"
import { DirtyQueue } from "@strata/dirty-queue/DirtyQueue"
import * as P from "@strata/dirty-queue/Path"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as DurableMetrics from "@strata/durable/Metrics"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as Random from "effect/Random"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import * as SqlClient from "effect/sql/SqlClient"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { follower, layer, scope, tables } from "./drainStore.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

export interface Options {
  readonly paths: number
  readonly processes: number
  readonly workersEach: number
  readonly leaseMillis: number
  /** Bounds of the pause before each kill, in milliseconds. */
  readonly killEvery: readonly [least: number, most: number]
  /** Writes and kills go on until at least so many claims were left by workers that died at them. */
  readonly unfinished: number
  /** After which the run is given up, in milliseconds. */
  readonly deadline: number
}

export interface Report {
  /** What must not be, in words. */
  readonly wrong: ReadonlyArray<string>
  readonly paths: number
  /** Changes recorded, the first of each path included. */
  readonly changes: number
  readonly kills: number
  /** Claims that a worker began to process; those whose worker died at it; and states that one was acknowledged for. */
  readonly attempts: number
  readonly unfinished: number
  readonly processed: number
  /** Deadlocks that the server resolved, and writes of the writers that were replayed for whichever conflict. */
  readonly deadlocks: number
  readonly replayed: number
  readonly seconds: number
}

// ---------------------------------------------------------------------------------------------------------------------
// processes
// ---------------------------------------------------------------------------------------------------------------------

const program = fileURLToPath(new URL("../fixtures/drainWorker.ts", import.meta.url))

interface Running {
  readonly child: ChildProcess
  readonly errors: Array<string>
  isWorking: boolean
}

const start = (schema: string, name: string, options: Options): Running => {
  const child = spawn(
    process.execPath,
    [
      "--conditions=@strata/source",
      "--no-warnings",
      program,
      schema,
      name,
      String(options.workersEach),
      String(options.leaseMillis)
    ],
    { stdio: ["ignore", "pipe", "inherit"] }
  )
  const running: Running = { child, errors: [], isWorking: false }
  let rest = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) {
      if (line === "working") running.isWorking = true
      // Others are its log, as of a write that held its transaction for long.
      else if (line.startsWith("error ")) running.errors.push(line)
    }
  })
  return running
}

const kill = ({ child }: Running) =>
  Effect.promise(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill("SIGKILL")
    await once(child, "close")
  })

// ---------------------------------------------------------------------------------------------------------------------
// writes
// ---------------------------------------------------------------------------------------------------------------------

const nameOf = (i: number) => P.Path.make(`folder-${i % 97}/page-${i}.md`)

const putContent = `
INSERT INTO content (path, value)
SELECT p, nextval('content_value') FROM jsonb_array_elements_text($1::JSONB) AS p ORDER BY p COLLATE "C"
ON CONFLICT (path) DO UPDATE SET value = excluded.value`

const removeContent = `
WITH gone AS MATERIALIZED (
  SELECT path FROM content WHERE path IN (SELECT jsonb_array_elements_text($1::JSONB)) ORDER BY path FOR UPDATE
)
DELETE FROM content AS c USING gone WHERE c.path = gone.path`

/** Writes or removes paths, and records that in two steps, so that writes can meet in opposite orders. */
const change = Effect.fnUntraced(function* (paths: ReadonlyArray<P.Path>, op: "put" | "delete") {
  const sql = yield* SqlClient.SqlClient
  const log = yield* Changelog.Changelog
  const half = Math.ceil(paths.length / 2)
  yield* sql.unsafe(op === "put" ? putContent : removeContent, [JSON.stringify(paths)])
  for (const part of [paths.slice(0, half), paths.slice(half)]) {
    yield* log.record(
      part.map((path) => (op === "put" ? Changelog.put({ scope, path }) : Changelog.remove({ scope, path })))
    )
  }
})

const fill = Effect.fnUntraced(function* (count: number, changes: Ref.Ref<number>) {
  for (let from = 0; from < count; from += 500) {
    const paths = Array.from({ length: Math.min(500, count - from) }, (_, i) => nameOf(from + i))
    yield* DurableWriter.write(change(paths, "put"), { isolation: "read committed" })
    yield* Ref.update(changes, (n) => n + paths.length)
  }
})

/** So few paths that writes of them meet. */
const hot = 50

const rewrite = Effect.fnUntraced(function* (count: number, changes: Ref.Ref<number>) {
  const size = yield* Random.nextIntBetween(1, 40)
  const among = (yield* Random.next) < 0.3 ? hot : count
  const paths = new Set<P.Path>()
  for (let i = 0; i < size; i++) paths.add(nameOf(yield* Random.nextIntBetween(0, among - 1)))
  const op = (yield* Random.next) < 0.1 ? "delete" : "put"
  const isolation = (yield* Random.nextBoolean) ? "serializable" : "read committed"
  yield* DurableWriter.write(change([...paths], op), { isolation })
  yield* Ref.update(changes, (n) => n + paths.size)
  yield* Effect.sleep(yield* Random.nextIntBetween(1, 20))
})

// ---------------------------------------------------------------------------------------------------------------------
// run
// ---------------------------------------------------------------------------------------------------------------------

/** Runs it all in a schema of its own in the server that the environment names. */
export const run = Effect.fnUntraced(
  function* (options: Options) {
    const schema = yield* Postgres.schema
    return yield* Effect.provide(runIn(schema, options), layer(schema, options.leaseMillis))
  },
  Effect.provideService(Metric.MetricRegistry, new Map())
)

const runIn = Effect.fnUntraced(function* (schema: string, options: Options) {
  const sql = yield* SqlClient.SqlClient
  const queue = yield* DirtyQueue
  const began = yield* Clock.currentTimeMillis
  for (const statement of tables) yield* sql.unsafe(statement)
  yield* queue.register({ follower, scope })
  const deadlocksBefore = yield* deadlocks

  const wrong: Array<string> = []
  const started: Array<Running> = []
  const running = Array.from({ length: options.processes }, (_, i) => start(schema, `${i}`, options))
  started.push(...running)
  yield* Effect.addFinalizer(() => Effect.forEach(started, kill, { discard: true }))

  const changes = yield* Ref.make(0)
  const filling = yield* Effect.forkScoped(fill(options.paths, changes))
  const writing = yield* Effect.forkScoped(
    Effect.all(
      [1, 2].map(() => Effect.forever(rewrite(options.paths, changes))),
      { concurrency: 2, discard: true }
    )
  )

  let kills = 0
  const [least, most] = options.killEvery
  const killOne = Effect.gen(function* () {
    yield* Effect.sleep(yield* Random.nextIntBetween(least, most))
    const i = yield* Random.nextIntBetween(0, options.processes - 1)
    // One that has not come to work yet may be killed too, but not for ever.
    if (!running[i]!.isWorking && (yield* Random.next) < 0.8) return
    yield* kill(running[i]!)
    kills++
    running[i] = start(schema, `${i}+${kills}`, options)
    started.push(running[i])
  })
  const killing = yield* Effect.forkScoped(Effect.forever(killOne))

  const count = (statement: string) => Effect.map(sql.unsafe(statement).values, ([row]) => Number(row?.[0]))
  const until = (statement: string, isEnough: (found: number) => boolean) =>
    Effect.repeat(count(statement), { until: isEnough, schedule: Schedule.spaced("500 millis") })

  const drained = yield* Effect.gen(function* () {
    yield* Fiber.join(filling)
    yield* Effect.raceFirst(
      Effect.andThen(
        until("SELECT count(DISTINCT path) FROM processed", (n) => n === options.paths),
        until(unfinished, (n) => n >= options.unfinished)
      ),
      Effect.andThen(Fiber.join(writing), Effect.never)
    )
    yield* Fiber.interrupt(writing)
    yield* until("SELECT count(*) FROM strata_dirty", (n) => n === 0)
  }).pipe(Effect.timeoutOption(options.deadline), Effect.exit)
  if (drained._tag === "Failure") wrong.push(`a writer failed: ${Cause.pretty(drained.cause)}`)
  else if (drained.value._tag === "None") wrong.push(`not drained within ${options.deadline} ms`)
  const seconds = ((yield* Clock.currentTimeMillis) - began) / 1000

  yield* Fiber.interrupt(killing)
  yield* Effect.forEach(started, kill, { discard: true })
  for (const { child, errors } of started) {
    wrong.push(...errors)
    if (child.signalCode !== "SIGKILL") wrong.push(`a process ended by itself, with ${child.exitCode}`)
  }
  for (const [what, statement] of mustBeNone) {
    const found = yield* count(statement)
    if (found > 0) wrong.push(`${found} ${what}`)
  }
  return {
    wrong,
    paths: options.paths,
    changes: yield* Ref.get(changes),
    kills,
    attempts: yield* count("SELECT count(*) FROM attempt"),
    unfinished: yield* count(unfinished),
    processed: yield* count("SELECT count(*) FROM processed"),
    deadlocks: (yield* deadlocks) - deadlocksBefore,
    replayed: (yield* Metric.value(DurableMetrics.writeConflicts)).count,
    seconds
  } satisfies Report
})

const deadlocks = SqlClient.SqlClient.use((sql) =>
  Effect.map(sql`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`.values, ([row]) =>
    Number(row?.[0])
  )
)

const unfinished = `SELECT count(*) FROM attempt
WHERE ended IS NULL AND lease_until < extract(epoch FROM clock_timestamp()) * 1000`

const mustBeNone: ReadonlyArray<readonly [what: string, statement: string]> = [
  [
    "paths whose last content was not processed",
    `SELECT count(*) FROM content AS c FULL JOIN derived AS d USING (path) WHERE c.value IS DISTINCT FROM d.value`
  ],
  [
    "times two workers were at one path at once",
    `SELECT count(*) FROM (
      SELECT least(ended, lease_until) AS until, lead(began) OVER (PARTITION BY path ORDER BY began, lease) AS next
      FROM attempt
    ) AS a WHERE next < until`
  ],
  ["rows are left", "SELECT count(*) FROM strata_dirty"],
  [
    "acknowledged states that no worker had begun with",
    `SELECT count(*) FROM processed AS p
    WHERE NOT EXISTS (SELECT 1 FROM attempt AS a WHERE a.path = p.path AND a.worker = p.worker AND a.lease > p.version)`
  ]
]
