/** What the program says of itself where something is not as one expects. */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterEach, beforeEach } from "vitest"
import { type Folder, launcher, makeFolder } from "./program.ts"

let folder: Folder

beforeEach(() => {
  folder = makeFolder()
  folder.write("docs/a.md", "word alpha")
  folder.write("docs/b.md", "word beta")
})

afterEach(() => folder.remove())

const remove = (path: string): void => fs.rmSync(join(folder.path, path), { recursive: true })

describe("strata", { timeout: 60_000 }, () => {
  it("prints one object with --json when it is interrupted", async () => {
    for (let i = 0; i < 3000; i++)
      folder.write(`many/${i % 30}/f${i}.md`, `# Title ${i}\n\n${`word${i} `.repeat(300)}\n`)
    const child = folder.start(["index", "many", "--json"])
    let out = ""
    child.stdout!.on("data", (chunk: Buffer) => (out += chunk.toString()))
    const closed = once(child, "close")
    const database = join(folder.path, ".strata/strata.db-wal")
    while (!fs.existsSync(database) || fs.statSync(database).size < 1_000_000) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    child.kill("SIGINT")
    assert.strictEqual((await closed)[0], 130)
    const { error } = JSON.parse(out)
    assert.strictEqual(error.tag, "Interrupted")
    assert.match(error.message, /^interrupted: [1-9]\d* files wait; the same command goes on$/)
  })

  it("tells what a repair has mended", () => {
    folder.run(["index", "docs"])
    const nothing = { missing: [], stale: [], orphaned: [], failed: [], damaged: false }
    assert.deepInclude(folder.json(["verify", "--repair"]), { code: 0, repaired: nothing })
    assert.match(folder.run(["verify", "--repair"]).out, /^nothing was to be repaired\n/)
    remove("docs/a.md")
    folder.write("docs/b.md", "other words")
    folder.write("docs/c.md", "word gamma")
    const broken = { missing: ["docs/c.md"], stale: ["docs/b.md"], orphaned: ["docs/a.md"] }
    assert.deepInclude(folder.json(["verify"]), { code: 1, ...broken })
    assert.notProperty(folder.json(["verify"]), "repaired")
    assert.deepInclude(folder.json(["verify", "--repair"]), { code: 0, repaired: { ...nothing, ...broken } })
    folder.write("docs/d.md", "word delta")
    const { code, out } = folder.run(["verify", "--repair"])
    const lines = ["repaired  missing   docs/d.md", "repaired: 1 missing", "the index agrees with the directories", ""]
    assert.deepStrictEqual([code, out], [0, lines.join("\n")])
  })

  it("counts in status what failed for its name, too", () => {
    folder.write("docs/c\u0007.md", "word")
    folder.run(["index", "docs"])
    const { out } = folder.run(["status"])
    assert.match(out, /^failed +1$/m)
    assert.match(out, /^failed +docs\/c.*: the name has a control character$/m)
  })

  it("advises --force only for a directory that was indexed", () => {
    const missing = join(folder.path, "nosuch")
    const plain = [2, `strata: ${missing} does not exist\n`]
    const forced = [3, `strata: ${missing} does not exist, and nothing of it is in the index\n`]
    const said = (...args: ReadonlyArray<string>) => {
      const { code, err } = folder.run(["index", ...args])
      return [code, err]
    }
    assert.deepStrictEqual(said("nosuch"), plain)
    assert.deepStrictEqual(said("nosuch", "--force"), forced)
    assert.isFalse(fs.existsSync(join(folder.path, ".strata")))
    folder.run(["index", "."])
    assert.deepStrictEqual(said("nosuch"), plain)
    assert.deepStrictEqual(said("nosuch", "--force"), forced)
    remove("docs")
    assert.match(String(said("docs")[1]), /docs does not exist; if it is gone for good, --force takes it out/)
  })

  it("names the database that doctor did not find", () => {
    const file = join(folder.path, "none.db")
    assert.deepInclude(folder.json(["doctor", "--database", file]), { code: 0, database: file })
    const { out } = folder.run(["doctor", "--database", file])
    assert.strictEqual(out.split("\n")[0], `database  ${file}`)
    assert.include(out, "there is none yet: strata index DIR --database FILE creates it")
    assert.deepInclude(folder.json(["doctor"]), { code: 0, database: null })
  })

  it("says that there is no stream of a name", () => {
    folder.run(["index", "docs"])
    const { code, err, out } = folder.run(["journal", "--stream", "nosuch"])
    assert.deepStrictEqual([code, err, out], [0, "there is no stream nosuch\n", ""])
    assert.strictEqual(folder.run(["journal", "--stream", "cache"]).err, "")
  })

  it("says that it uses a database where it is not about an index", () => {
    folder.run(["index", "docs"])
    const inside = (...args: ReadonlyArray<string>) =>
      spawnSync(process.execPath, [launcher, ...args], { cwd: join(folder.path, "docs"), encoding: "utf8" }).stderr
    const using = `using the database ${join(folder.path, ".strata/strata.db")}\n`
    assert.strictEqual(inside("journal"), using)
    assert.isTrue(inside("runs", "list").startsWith(using))
    assert.isTrue(inside("rebuild-state").startsWith(using))
  })

  it("takes 0 for a limit wherever there is one", () => {
    folder.run(["index", "docs"])
    assert.deepInclude(folder.json(["search", "word", "--limit", "0"]), { code: 0, total: 2, hits: [] })
    assert.strictEqual(folder.run(["search", "word", "--limit", "0"]).err, "2 passages found\n")
    assert.deepStrictEqual(folder.json(["journal", "--limit", "0"]), { code: 0, entries: [] })
  })

  it("says what to do about results and a file that are damaged", () => {
    folder.run(["index", "docs"])
    const file = join(folder.path, ".strata/strata.db")
    const database = new DatabaseSync(file)
    database.exec("UPDATE strata_cache_result SET value = '\"other\"' WHERE id = 1")
    database.close()
    assert.match(folder.run(["cache", "verify"]).out, /^corrupt .*\nwhat is corrupt is not served, .*cache gc/)
    const bytes = fs.readFileSync(file)
    fs.writeFileSync(file, bytes.fill(0xab, 100, 60_000))
    const { code, err } = folder.run(["status"])
    assert.strictEqual(code, 3)
    assert.match(err, /malformed; delete it and index again, unless an app keeps its own data there\n$/)
  })

  it("does not call removed what a directory around it has", () => {
    const around = dirname(join(folder.path, "docs"))
    const database = ["--database", join(around, "index.db")]
    folder.run(["index", "docs", ...database])
    remove("docs/a.md")
    assert.deepInclude(folder.json(["index", ".", ...database]), { code: 0, indexed: 1, removed: 1 })
    assert.deepInclude(folder.json(["status", ...database]), { documents: 1, directories: ["."] })
    folder.write("more/c.md", "word gamma")
    const other = ["--database", "other/index.db"]
    folder.run(["index", "more", ...other])
    assert.deepInclude(folder.json(["index", ".", ...other]), { code: 0, removed: 0, failed: 0 })
  })
})
