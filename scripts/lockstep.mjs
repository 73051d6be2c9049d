/**
 * The model of the queue in lockstep over memory, SQLite, Postgres and D1: the same random operations on all of them, the
 * same answers. The tests run a few hundred operations; this runs as many as wanted.
 *
 *     npx node scripts/lockstep.mjs [OPERATIONS] [SEED] [STATE_EVERY]
 *
 * 10,000 operations, seed 1, and everything that can be read compared after every tenth unless said otherwise. Fails when
 * a server cannot be started.
 */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"

const [operations = "10000", seed = "1", stateEvery = "10"] = process.argv.slice(2)
const child = spawn(
  "npx",
  ["vitest", "run", "--config", "vitest.workspace.ts", "--project", "dirty-queue", "test/lockstep.test.ts"],
  {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    stdio: "inherit",
    env: {
      ...process.env,
      LOCKSTEP_OPERATIONS: operations,
      LOCKSTEP_SEED: seed,
      LOCKSTEP_STATE_EVERY: stateEvery,
      LOCKSTEP_RUNS: "1",
      STRATA_TEST_POSTGRES_REQUIRED: "1",
      STRATA_TEST_D1_REQUIRED: "1"
    }
  }
)
child.on("exit", (code) => {
  process.exitCode = code ?? 1
})
