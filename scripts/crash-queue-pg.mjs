// Kills processes of workers at random moments while they work off a queue on Postgres that is written all the time, and
// looks in the database afterwards: no change was lost, no two workers were at one path at once, and no worker or writer
// saw a deadlock or any other error.
//
//   node --conditions=@strata/source --no-warnings scripts/crash-queue-pg.mjs [--paths 100000] [--processes 4]
//     [--workers 2] [--lease 3000] [--kill-every 500,4000] [--unfinished 1000] [--seed 1] [--deadline 1800]
//
// Starts a server of its own whose commits wait for the disk, unless STRATA_TEST_POSTGRES names one.
import * as Postgres from "@strata/durable/testing/postgres"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import { parseArgs } from "node:util"
import * as CrashDrain from "../packages/dirty-queue/test/support/crashDrain.ts"

const { values } = parseArgs({
  options: {
    paths: { type: "string", default: "100000" },
    processes: { type: "string", default: "4" },
    workers: { type: "string", default: "2" },
    lease: { type: "string", default: "3000" },
    "kill-every": { type: "string", default: "500,4000" },
    unfinished: { type: "string", default: "1000" },
    seed: { type: "string", default: "1" },
    deadline: { type: "string", default: "1800" }
  }
})

const [least, most] = values["kill-every"].split(",").map(Number)

const program = Effect.gen(function* () {
  if (!Postgres.isAvailable()) {
    const { url } = yield* Postgres.make({ durable: true })
    process.env["STRATA_TEST_POSTGRES"] = Redacted.value(url)
  }
  return yield* CrashDrain.run({
    paths: Number(values.paths),
    processes: Number(values.processes),
    workersEach: Number(values.workers),
    leaseMillis: Number(values.lease),
    killEvery: [least, most],
    unfinished: Number(values.unfinished),
    deadline: Number(values.deadline) * 1000
  })
}).pipe(Random.withSeed(values.seed), Effect.scoped)

const { wrong, ...figures } = await Effect.runPromise(program)
for (const line of wrong) console.error(line)
console.log(
  `${JSON.stringify(figures)}: ${wrong.length === 0 ? "none lost, none at once, no error" : `${wrong.length} wrong`}`
)
process.exitCode = wrong.length === 0 ? 0 : 1
