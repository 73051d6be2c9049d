import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { launcher } from "./program.ts"

const script = fileURLToPath(new URL("../../../scripts/memory-check.mjs", import.meta.url))

describe("memory", () => {
  it("does not grow with the rows that are drained and the files that are indexed", { timeout: 120_000 }, () => {
    const { status, stderr, stdout } = spawnSync(
      process.execPath,
      [script, "--rows", "100000", "--files", "10000", "--heap", "64", "--launcher", launcher],
      { encoding: "utf8" }
    )
    assert.deepStrictEqual({ status, stderr }, { status: 0, stderr: "" })
    assert.match(stdout, /^drain 100000 rows: peak heap .*\nindex 10000 files: peak heap .*\n$/)
  })
})
