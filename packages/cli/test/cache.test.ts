import { assert, describe, it } from "@effect/vitest"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterEach, beforeEach } from "vitest"
import { type Folder, makeFolder } from "./program.ts"

let folder: Folder

beforeEach(() => {
  folder = makeFolder()
  folder.write("docs/a.md", "# a\n\nsome text")
  folder.write("docs/b.html", "<title>b</title><p>more text")
  folder.write("docs/c.txt", "plain text")
  folder.run(["index", "docs"])
})

afterEach(() => folder.remove())

const corrupt = (statement: string) => {
  const database = new DatabaseSync(join(folder.path, ".strata", "strata.db"))
  database.exec(statement)
  database.close()
}

describe("strata cache", () => {
  it("counts what was extracted, and is told apart from what is cut only", () => {
    const stats = folder.json(["cache", "stats"])
    assert.deepInclude(stats, { code: 0, entries: 2, ledger: 2, results: 2, artifacts: 0 })
    assert.deepStrictEqual(stats.origins, [{ from: null, entries: 2 }])
    assert.isAbove(stats.resultBytes, 0)
    assert.match(folder.run(["cache", "stats"]).out, /^entries +2$/m)
  })

  it("agrees with the journal, and says when it does not", () => {
    assert.deepInclude(folder.json(["cache", "verify"]), { code: 0, ok: true })
    corrupt("UPDATE strata_cache_result SET value = '\"other\"' WHERE id = 1")
    const damaged = folder.json(["cache", "verify"])
    assert.deepInclude(damaged, { code: 1, ok: false })
    assert.strictEqual(damaged.corrupt.length, 1)
    // A row that is damaged is not served: the file is extracted again.
    folder.write("docs/copy.md", "# a\n\nsome text")
    folder.write("docs/copy.html", "<title>b</title><p>more text")
    const { cache } = folder.json(["index", "docs"])
    assert.deepStrictEqual([cache.extracted, cache.localHits], [1, 1])
    assert.deepInclude(folder.json(["cache", "verify"]), { code: 0, ok: true })
    assert.include(folder.run(["journal"]).out, "cache-quarantined")
  })

  it("says what it would take out, and takes out just that", () => {
    const planned = folder.json(["cache", "gc", "--max-size", "0", "--dry-run"])
    assert.deepInclude(planned, { code: 0, dryRun: true, entries: 2 })
    assert.deepInclude(folder.json(["cache", "stats"]), { entries: 2 })
    const done = folder.json(["cache", "gc", "--max-size", "0"])
    assert.deepStrictEqual(done, { ...planned, dryRun: false })
    assert.deepInclude(folder.json(["cache", "stats"]), { entries: 0 })
    assert.deepInclude(folder.json(["cache", "verify"]), { ok: true })
    assert.deepInclude(folder.json(["cache", "gc"]), { entries: 0 })
    assert.strictEqual(folder.run(["cache", "gc", "--max-age", "-1"]).code, 2)
  })
})
