import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"

const script = fileURLToPath(new URL("../../../scripts/crash-writes.mjs", import.meta.url))

it(
  "has every write whole or not at all, as it was reported, after each of 15 kills under load",
  { timeout: 120_000 },
  () => {
    const { status, stderr, stdout } = spawnSync(
      process.execPath,
      ["--conditions=@strata/source", "--no-warnings", script, "--kills", "15", "--seed", "7"],
      { encoding: "utf8" }
    )
    assert.strictEqual(status, 0, stderr + stdout)
    const reported = Number(/(\d+) writes reported/.exec(stdout)?.[1])
    assert.isAbove(reported, 15)
  }
)
