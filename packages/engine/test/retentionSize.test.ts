import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"

const script = fileURLToPath(new URL("../../../scripts/retention-size.mjs", import.meta.url))

it("the database stops growing under constant load", { timeout: 120_000 }, () => {
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    ["--conditions=@strata/source", "--no-warnings", script, "--generations", "8", "--runs", "40", "--keep", "40"],
    { encoding: "utf8" }
  )
  assert.strictEqual(status, 0, stderr + stdout)
  assert.match(stdout, /explains all 40 runs/)
  assert.match(stdout, /has stopped growing/)
})
