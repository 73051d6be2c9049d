import { execFileSync } from "node:child_process"
import { fileURLToPath } from "node:url"

/** The tests that start the program start its bundle, which is built from the sources under test. */
export const setup = (): void => {
  execFileSync(process.execPath, [fileURLToPath(new URL("../../../scripts/bundle.mjs", import.meta.url))])
}
