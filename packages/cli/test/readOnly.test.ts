import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach } from "vitest"
import { type Folder, launcher, makeFolder } from "./program.ts"

let folder: Folder
/** The database of an index of `docs`. */
let database: string

beforeEach(() => {
  folder = makeFolder()
  folder.write("docs/a.txt", "alpha")
  database = join(folder.path, ".strata/strata.db")
  assert.strictEqual(folder.run(["index", "docs"]).code, 0)
})

afterEach(() => {
  fs.chmodSync(join(folder.path, ".strata"), 0o755)
  folder.remove()
})

const run = (...args: ReadonlyArray<string>) => folder.runHeeding(args)

const refused = (file: string, why: string) => ({
  code: 3,
  err: `strata: the index ${file} cannot be used: ${why}\n`,
  out: ""
})

const canMount = spawnSync("unshare", ["-rm", "true"]).status === 0

describe("an index that may only be read", { timeout: 60_000 }, () => {
  it("is named as one, with what may not be written", () => {
    fs.chmodSync(database, 0o444)
    fs.chmodSync(join(folder.path, ".strata"), 0o555)
    const ofFolder = "its folder is read-only for this user, and SQLite writes there even to read"
    for (const args of [["search", "alpha"], ["status"], ["index", "docs"]]) {
      assert.deepStrictEqual(run(...args), refused(database, ofFolder))
    }
    const { checks } = JSON.parse(run("doctor", "--json").out)
    assert.deepInclude(checks[0], { subject: "database", check: "open", status: "fails", reason: "ReadOnly" })
    const other = join(folder.path, ".strata/new/index.db")
    assert.deepStrictEqual(run("index", "docs", "--database", other), refused(other, ofFolder))

    fs.chmodSync(join(folder.path, ".strata"), 0o755)
    assert.strictEqual(run("search", "alpha").code, 0)
    assert.deepStrictEqual(run("index", "docs"), refused(database, "it is read-only for this user"))
  })

  it.skipIf(!canMount)("is named as one when its file system is", () => {
    const ofFileSystem = "its file system is read-only, and SQLite writes there even to read"
    const mount = 'mount --bind . . && mount -o remount,ro,bind . && cd "$PWD" && exec "$@"'
    for (const [args, file] of [
      [["search", "alpha"], database],
      [["index", "docs"], database],
      [["index", "docs", "--database", "new.db"], join(folder.path, "new.db")],
      [["index", "docs", "--database", "new/index.db"], join(folder.path, "new/index.db")]
    ] as const) {
      const command = ["-rm", "sh", "-c", mount, "sh", process.execPath, launcher, ...args]
      const { status, stderr, stdout } = spawnSync("unshare", command, { cwd: folder.path, encoding: "utf8" })
      assert.deepStrictEqual({ code: status, err: stderr, out: stdout }, refused(file, ofFileSystem))
    }
  })
})
