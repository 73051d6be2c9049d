import * as Postgres from "../../durable/src/testing/postgres.ts"
import { execFileSync } from "node:child_process"
import { cpSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const fileOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/**
 * The tests that start the program start one that is laid out as it is published, in a folder of its own: built from the
 * sources under test as they are now, whatever is edited or built meanwhile. All share one server of Postgres.
 */
export const setup = async (): Promise<() => Promise<void>> => {
  const folder = mkdtempSync(join(tmpdir(), "strata-program-"))
  execFileSync(process.execPath, [fileOf("../../../scripts/bundle.mjs"), join(folder, "dist", "bundle")])
  cpSync(fileOf("../bin"), join(folder, "bin"), { recursive: true })
  cpSync(fileOf("../package.json"), join(folder, "package.json"))
  process.env["STRATA_TEST_PROGRAM"] = folder
  const stop = await Postgres.globalSetup()
  return async () => {
    await stop?.()
    delete process.env["STRATA_TEST_PROGRAM"]
    rmSync(folder, { recursive: true, force: true })
  }
}
