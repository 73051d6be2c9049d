import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"

/** The program under test, as it is published; see `globalSetup.ts`. */
export const programFolder = process.env["STRATA_TEST_PROGRAM"]!

export const launcher = join(programFolder, "bin", "strata.js")

/** Root may read and write everything. Without these capabilities it may do what an owner may. */
const heeding = process.getuid?.() === 0 ? ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] : []

/** A folder of its own, in which the program is run as people run it. */
export const makeFolder = () => {
  const path = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "strata-cli-")))
  const children: Array<ChildProcess> = []

  const spawnOptions = (env: Record<string, string>) => ({ cwd: path, env: { ...process.env, ...env } })

  const run = (args: ReadonlyArray<string>, env: Record<string, string> = {}) => {
    const { status, stderr, stdout } = spawnSync(process.execPath, [launcher, ...args], {
      ...spawnOptions(env),
      encoding: "utf8",
      maxBuffer: 64 * 1024 * 1024
    })
    return { code: status, out: stdout, err: stderr }
  }

  /** As {@link run}, for one who may not read or write what its mode forbids, whoever runs the tests. */
  const runHeeding = (args: ReadonlyArray<string>) => {
    const [command = "", ...rest] = [...heeding, process.execPath, launcher, ...args]
    const { status, stderr, stdout } = spawnSync(command, rest, { ...spawnOptions({}), encoding: "utf8" })
    return { code: status, out: stdout, err: stderr }
  }

  return {
    path,
    runHeeding,
    write: (file: string, content: string) => {
      fs.mkdirSync(dirname(join(path, file)), { recursive: true })
      fs.writeFileSync(join(path, file), content)
    },
    run,
    /** What a command prints with `--json`, and its exit code. */
    json: (args: ReadonlyArray<string>, env?: Record<string, string>) => {
      const { code, err, out } = run([...args, "--json"], env)
      const line = out.trim().split("\n").at(-1)
      if (line === undefined || line === "") throw new Error(`nothing was printed; on stderr: ${err}`)
      return { code, ...JSON.parse(line) }
    },
    start: (args: ReadonlyArray<string>, env: Record<string, string> = {}) => {
      const child = spawn(process.execPath, [launcher, ...args], {
        ...spawnOptions(env),
        stdio: ["ignore", "pipe", "pipe"]
      })
      children.push(child)
      return child
    },
    remove: () => {
      for (const child of children) child.kill("SIGKILL")
      fs.rmSync(path, { recursive: true, force: true })
    }
  }
}

export type Folder = ReturnType<typeof makeFolder>
