import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterEach, beforeEach } from "vitest"
import { type Folder, makeFolder } from "./program.ts"

let folder: Folder

beforeEach(() => {
  folder = makeFolder()
  folder.write("docs/a.md", "word alpha")
  folder.write("docs/b.md", "word beta")
  fs.chmodSync(join(folder.path, "docs/a.md"), 0)
  const { code, err } = folder.runHeeding(["index", "docs"])
  assert.deepStrictEqual([code, err], [1, "docs/a.md: the file cannot be read (EACCES)\n"])
  fs.chmodSync(join(folder.path, "docs/a.md"), 0o644)
})

afterEach(() => folder.remove())

describe("a file that can be read again", { timeout: 60_000 }, () => {
  for (const command of ["index docs", "verify --repair", "watch docs"]) {
    it(`is read at once by ${command}`, async () => {
      if (command === "watch docs") {
        const child = folder.start(["watch", "docs", "--json"])
        const [line] = await new Promise<ReadonlyArray<string>>((resolve) =>
          child.stdout!.once("data", (chunk: Buffer) => resolve(chunk.toString().split("\n")))
        )
        assert.deepInclude(JSON.parse(line!), { indexed: 1, failed: 0 })
        child.kill("SIGTERM")
      } else {
        assert.deepInclude(folder.json(command.split(" ")), { code: 0, failed: 0 })
      }
      assert.strictEqual(folder.json(["search", "word"]).total, 2)
    })
  }

  it("is read at once by index although it was given up, and nothing tells that it changed", () => {
    folder.run(["index", "docs"])
    const database = new DatabaseSync(join(folder.path, ".strata/strata.db"))
    database.exec(`INSERT INTO strata_changelog (scope, path, op, recorded_at) VALUES ('docs', 'a.md', 'put', 1000)`)
    database.exec(`UPDATE strata_dirty SET ready_at = NULL, last_error = 'broken', failed_at = 1, attempts = 8`)
    database.close()
    assert.deepInclude(folder.json(["status"]), { deadLetters: 1 })
    assert.deepInclude(folder.json(["index", "docs"]), { code: 0, failed: 0 })
    assert.deepInclude(folder.json(["status"]), { failing: 0, deadLetters: 0 })
  })
})
