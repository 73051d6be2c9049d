import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"

const script = fileURLToPath(new URL("../../../scripts/crash-workflows.mjs", import.meta.url))

it(
  "57: gives every run its result, and runs nothing again that was committed, over 8 kills",
  { timeout: 180_000 },
  () => {
    const { status, stderr, stdout } = spawnSync(
      process.execPath,
      ["--conditions=@strata/source", "--no-warnings", script, "--kills", "8", "--seed", "3"],
      { encoding: "utf8" }
    )
    assert.strictEqual(status, 0, stderr + stdout)
    assert.isAbove(Number(/ (\d+) runs/.exec(stdout)?.[1]), 8)
  }
)
