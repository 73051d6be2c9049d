import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { launcher } from "./program.ts"

const script = fileURLToPath(new URL("../../../scripts/crash-index.mjs", import.meta.url))

describe("strata index", () => {
  it("leaves no trace of being killed at random moments", { timeout: 120_000 }, () => {
    const { status, stderr, stdout } = spawnSync(
      process.execPath,
      [script, "--kills", "6", "--files", "400", "--seed", "7", "--launcher", launcher],
      { encoding: "utf8" }
    )
    assert.deepStrictEqual({ status, stderr }, { status: 0, stderr: "" })
    assert.match(stdout, /^6 kills .* no difference to an index that was never killed\n$/)
  })
})
