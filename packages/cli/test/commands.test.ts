import { assert, describe, it } from "@effect/vitest"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterEach, beforeEach } from "vitest"
import { launcher } from "./program.ts"

let folder: string
const children: Array<ChildProcess> = []

beforeEach(() => {
  folder = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "strata-cli-")))
})

afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL")
  fs.rmSync(folder, { recursive: true, force: true })
})

const write = (path: string, content: string) => {
  fs.mkdirSync(join(folder, path, ".."), { recursive: true })
  fs.writeFileSync(join(folder, path), content)
}

const run = (args: ReadonlyArray<string>, cwd = folder) => {
  const { status, stderr, stdout } = spawnSync(process.execPath, [launcher, ...args], { cwd, encoding: "utf8" })
  return { code: status, out: stdout, err: stderr }
}

const json = (args: ReadonlyArray<string>, cwd = folder) => {
  const { code, out } = run([...args, "--json"], cwd)
  return { code, ...JSON.parse(out.trim().split("\n").at(-1)!) }
}

const start = (args: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [launcher, ...args], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] })
  children.push(child)
  return child
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** How long it takes, in ms, until `check` holds; fails after a minute. */
const until = async (check: () => boolean) => {
  const begin = performance.now()
  while (!check()) {
    if (performance.now() - begin > 60_000) assert.fail("did not come true in a minute")
    await sleep(20)
  }
  return performance.now() - begin
}

/** How many documents the database has by now. */
const documents = (): number => {
  const file = join(folder, ".strata/strata.db")
  if (!fs.existsSync(file)) return 0
  const database = new DatabaseSync(file, { readOnly: true, timeout: 1000 })
  try {
    const name = "strata_search_document"
    const tables = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?").all(name)
    return tables.length === 0 ? 0 : Number(database.prepare(`SELECT count(*) AS n FROM ${name}`).get()?.["n"])
  } finally {
    database.close()
  }
}

const found = (query: string): ReadonlyArray<string> =>
  json(["search", query, "--limit", "1000"]).hits.map((hit: { path: string }) => hit.path)

// Each test starts programs by the dozen, which have to share the machine with whatever else it does.
describe("strata", { timeout: 120_000 }, () => {
  it("indexes, searches, and processes exactly what changed", () => {
    for (let i = 0; i < 20; i++) write(`docs/d${i % 3}/f${i}.md`, `# File ${i}\n\ncommon unique${i}\n`)
    const first = json(["index", "docs"])
    assert.deepInclude(first, { code: 0, scanned: 20, indexed: 20, unchanged: 0, removed: 0, failed: 0, skipped: 0 })
    assert.isAtLeast(first.elapsedMs, 0)
    assert.deepInclude(json(["index", "docs"]), { scanned: 20, indexed: 0, unchanged: 20, removed: 0, failed: 0 })
    write("docs/d0/f0.md", "# File 0\n\ncommon changed\n")
    fs.rmSync(join(folder, "docs/d1/f1.md"))
    write("docs/d9/new.md", "common added\n")
    assert.deepInclude(json(["index", "docs"]), { scanned: 20, indexed: 2, unchanged: 18, removed: 1, failed: 0 })
    assert.deepStrictEqual(found("changed"), ["docs/d0/f0.md"])
    assert.deepStrictEqual(found("unique0"), [])
    assert.deepStrictEqual(found("unique1"), [])
    assert.strictEqual(found("common").length, 20)
    const { hits, query, total } = json(["search", "unique7"])
    assert.deepStrictEqual([query, total], ["unique7", 1])
    assert.deepStrictEqual(Object.keys(hits[0]).toSorted(), ["heading", "line", "path", "score", "snippet"])
    assert.deepInclude(hits[0], { path: "docs/d1/f7.md", line: 3, heading: "File 7" })
    write("docs/lines.txt", "one\ntwo\n\nthree\nhere is zebra\n")
    run(["index", "docs"])
    assert.match(run(["search", "zebra"]).out, /^docs\/lines\.txt:5/)
  })

  it("shows paths as they can be opened from the working directory, and takes prefixes the same way", () => {
    write("docs/a/one.txt", "word")
    write("docs/b/two.txt", "word")
    run(["index", "docs"])
    const inDocs = join(folder, "docs")
    const from = (args: ReadonlyArray<string>, cwd: string) =>
      json(["search", "word", ...args], cwd)
        .hits.map((hit: { path: string }) => hit.path)
        .toSorted()
    assert.deepStrictEqual(from([], inDocs), ["a/one.txt", "b/two.txt"])
    assert.deepStrictEqual(from(["--path-prefix", "b/"], inDocs), ["b/two.txt"])
    assert.deepStrictEqual(from(["--path-prefix", "docs/a"], folder), ["docs/a/one.txt"])
    assert.deepStrictEqual(from(["--path-prefix", "doc"], folder), ["docs/a/one.txt", "docs/b/two.txt"])
    assert.deepStrictEqual(from(["--path-prefix", "../docs/a/"], join(folder, "docs")), ["a/one.txt"])
    assert.deepStrictEqual(from(["--path-prefix", "elsewhere/"], folder), [])
  })

  it("keeps one document a file when a directory is indexed inside of another, or around it", () => {
    write("a/b/c.txt", "word")
    write("a/d.txt", "word")
    run(["index", "a/b"])
    run(["index", "a"])
    assert.deepStrictEqual([...found("word")].toSorted(), ["a/b/c.txt", "a/d.txt"])
    write("a/b/e.txt", "word")
    assert.deepInclude(json(["index", "a/b"]), { scanned: 2, indexed: 1 })
    assert.deepStrictEqual([...found("word")].toSorted(), ["a/b/c.txt", "a/b/e.txt", "a/d.txt"])
    assert.deepStrictEqual(json(["status"]).directories, ["a"])
  })

  it("answers or refuses odd queries in one line", () => {
    write("a.txt", "col val AND OR NOT foo_bar C++ don't 😀 naïve")
    run(["index", "."])
    const queries = [
      '"',
      '"unbalanced',
      "(((",
      ")",
      "AND",
      "OR NOT",
      "-",
      "*",
      "col:val",
      "😀",
      "a* -",
      "NEAR(a, b)",
      "\\",
      "'; DROP TABLE x; --"
    ]
    for (const query of queries) {
      const { code, err, out } = run(["search", "--", query])
      if (code === 0) assert.notInclude(err, "at ", query)
      else {
        assert.strictEqual(code, 2, query)
        assert.strictEqual(out, "", query)
        assert.match(err, /^strata: [^\n]+\n$/, query)
      }
    }
    assert.deepStrictEqual(found("col:val"), ["a.txt"])
    assert.deepStrictEqual(found("foo_bar"), ["a.txt"])
    assert.deepStrictEqual(json(["search", "val", "foo"]).total, 1)
  })

  it("brings the index up to date before a search, if told to", () => {
    write("a.txt", "before")
    run(["index", "."])
    write("b.txt", "later")
    assert.strictEqual(json(["search", "later"]).total, 0)
    assert.strictEqual(json(["search", "later", "--sync"]).total, 1)
  })

  it("D7: refuses to empty an index for a directory that is suddenly empty, unless forced", () => {
    write("docs/a.txt", "word")
    run(["index", "docs"])
    fs.rmSync(join(folder, "docs/a.txt"))
    const refused = run(["index", "docs"])
    assert.strictEqual(refused.code, 3)
    assert.match(refused.err, /suddenly empty.*--force/)
    assert.strictEqual(found("word").length, 1)
    assert.deepInclude(json(["index", "docs", "--force"]), { code: 0, removed: 1 })
    assert.strictEqual(found("word").length, 0)
  })

  it("D7: guards whichever directory was named, also a part of one that is indexed", () => {
    for (const path of ["docs/a.txt", "docs/disk/b.txt", "docs/disk/c.txt", "docs/other/d.txt"]) write(path, "word")
    run(["index", "docs"])
    fs.rmSync(join(folder, "docs/disk/b.txt"))
    fs.rmSync(join(folder, "docs/disk/c.txt"))
    const refused = run(["index", "docs/disk"])
    assert.strictEqual(refused.code, 3)
    assert.match(refused.err, /docs\/disk.* is suddenly empty.*--force/)
    assert.strictEqual(found("word").length, 4)
    assert.deepInclude(json(["index", "docs/disk", "--force"]), { code: 0, scanned: 0, removed: 2 })
    // What is merely below a directory that was named may be emptied.
    fs.rmSync(join(folder, "docs/other/d.txt"))
    assert.deepInclude(json(["index", "docs"]), { code: 0, scanned: 1, removed: 1 })
    write("docs/gone/e.txt", "word")
    run(["index", "docs"])
    fs.rmSync(join(folder, "docs/gone"), { recursive: true })
    assert.strictEqual(run(["index", "docs/gone"]).code, 2)
    assert.deepInclude(json(["index", "docs/gone", "--force"]), { code: 0, removed: 1 })
    assert.deepStrictEqual(found("word"), ["docs/a.txt"])
  })

  it("D7: guards a directory that was indexed by itself when one around it is", () => {
    write("docs/a.txt", "word")
    write("docs/disk/b.txt", "word")
    run(["index", "docs/disk"])
    fs.rmSync(join(folder, "docs/disk/b.txt"))
    const refused = run(["index", "docs"])
    assert.strictEqual(refused.code, 3)
    assert.match(refused.err, /docs\/disk is suddenly empty.*--force/)
    fs.rmdirSync(join(folder, "docs/disk"))
    const gone = run(["index", "docs"])
    assert.strictEqual(gone.code, 3)
    const disk = join(folder, "docs/disk")
    const reason = `${disk} was indexed and does not exist: nothing was removed from the index`
    assert.strictEqual(gone.err, `strata: ${reason}; with --force its documents are removed\n`)
    assert.deepStrictEqual(found("word"), ["docs/disk/b.txt"])
    assert.deepInclude(json(["index", "docs", "--force"]), { code: 0, indexed: 1, removed: 1 })
    assert.deepStrictEqual(found("word"), ["docs/a.txt"])
    assert.deepStrictEqual(json(["status"]).directories, ["docs"])
  })

  it("leaves its own files out, wherever they lie and by whatever name the directory is given", () => {
    write("docs/a.txt", "word")
    fs.symlinkSync("docs", join(folder, "link"))
    const database = ["--database", "link/index.db"]
    assert.deepInclude(json(["index", "docs", ...database]), { code: 0, scanned: 1, indexed: 1, skipped: 0 })
    assert.deepInclude(json(["index", "link", ...database]), { code: 0, scanned: 1, unchanged: 1 })
    assert.deepInclude(json(["verify", ...database]), { code: 0, ok: true, skipped: 0 })
    write("docs/other.db", "not an index")
    assert.deepInclude(json(["index", "docs", ...database]), { scanned: 2, indexed: 1 })
  })

  it("says which index it uses when that is one of a folder above", () => {
    write("docs/a.txt", "word")
    assert.strictEqual(run(["index", "docs"]).err, "")
    const { err } = run(["index", "."], join(folder, "docs"))
    assert.strictEqual(err, `using the index ${join(folder, ".strata/strata.db")}\n`)
    assert.strictEqual(run(["index", ".", "--json"], join(folder, "docs")).err, "")
    assert.strictEqual(run(["index", ".", "--database", "../.strata/strata.db"], join(folder, "docs")).err, "")
  })

  it("takes a directory that is gone out of the index, only if told to", () => {
    write("docs/a.txt", "word")
    write("more/b.txt", "word")
    run(["index", "docs", "more"])
    fs.rmSync(join(folder, "docs"), { recursive: true })
    const refused = run(["index", "docs"])
    assert.strictEqual(refused.code, 2)
    assert.match(refused.err, /does not exist.*--force/)
    assert.strictEqual(found("word").length, 2)
    assert.deepInclude(json(["index", "docs", "--force"]), { code: 0, removed: 1 })
    assert.deepStrictEqual(found("word"), ["more/b.txt"])
    assert.deepStrictEqual(json(["status"]).directories, ["more"])
  })

  it("creates nothing for a directory that does not exist, and leaves other databases alone", () => {
    assert.strictEqual(run(["index", "nowhere"]).code, 2)
    assert.deepStrictEqual(fs.readdirSync(folder), [])
    const file = join(folder, "other.db")
    const database = new DatabaseSync(file)
    database.exec("CREATE TABLE mine (id INTEGER)")
    database.close()
    const before = fs.readFileSync(file)
    for (const command of ["status", "retry", "rebuild", "verify", "search x"]) {
      const { code, err } = run([...command.split(" "), "--database", "other.db"])
      assert.deepStrictEqual([code, err], [3, `strata: there is no search index in the database ${file}\n`], command)
    }
    write("text.db", "no database at all, but a text of some length that SQLite does not take for one")
    for (const command of ["status", "search x", "index docs"]) {
      write("docs/a.txt", "word")
      const { code, err } = run([...command.split(" "), "--database", "text.db"])
      assert.strictEqual(code, 3, command)
      assert.strictEqual(err, `strata: the index ${join(folder, "text.db")} cannot be used: file is not a database\n`)
    }
    assert.isTrue(before.equals(fs.readFileSync(file)))
  })

  it("refuses a database that is no file, without waiting for one who writes into it", () => {
    const pipe = join(folder, "pipe")
    spawnSync("mkfifo", [pipe])
    for (const args of [["status"], ["search", "word"], ["doctor"], ["index", "."]]) {
      const command = [launcher, ...args, "--database", pipe]
      const options = { cwd: folder, encoding: "utf8", timeout: 20_000, killSignal: "SIGKILL" } as const
      const { status, stderr } = spawnSync(process.execPath, command, options)
      assert.deepStrictEqual(
        { status, stderr },
        { status: 2, stderr: `strata: --database: ${pipe} is a pipe, not a file\n` }
      )
    }
    assert.match(run(["status", "--database", "/dev/null"]).err, /\/dev\/null is a device, not a file/)
  })

  it("D8: lists what has nothing to search, and fails for what cannot be read, with reasons, in every command", () => {
    write("docs/good.txt", "word")
    write("docs/sub/empty.txt", "")
    write("docs/sub/good.txt", "word")
    fs.writeFileSync(Buffer.concat([Buffer.from(join(folder, "docs/bad")), Buffer.from([0xff])]), "x")
    spawnSync("mkfifo", [join(folder, "docs/pipe")])
    const failures = [{ path: "docs/bad\\xff", reason: "the name is not UTF-8" }]
    const skips = [
      { path: "docs/sub/empty.txt", reason: "the file is empty" },
      { path: "docs/pipe", reason: "it is a FIFO, not a regular file" }
    ]
    const listed = { failed: 1, failures, skipped: 2, skips }
    const counts = (result: Readonly<Record<string, number>>) => {
      const { failed, indexed, scanned, skipped, unchanged } = result
      assert.strictEqual(scanned, indexed! + unchanged! + skipped! + failed!)
      return [scanned, indexed, unchanged, skipped, failed]
    }
    const first = json(["index", "docs"])
    assert.deepInclude(first, { code: 1, removed: 0, ...listed })
    assert.deepStrictEqual(counts(first), [5, 2, 0, 2, 1])
    const again = json(["index", "docs"])
    assert.deepInclude(again, { code: 1, removed: 0, ...listed })
    assert.deepStrictEqual(counts(again), [5, 0, 2, 2, 1])
    const part = json(["index", "docs/sub", "docs/sub"])
    assert.deepInclude(part, { code: 0, failed: 0, skipped: 1 })
    assert.deepStrictEqual(counts(part), [2, 0, 1, 1, 0])
    assert.deepInclude(json(["status"]), { code: 0, documents: 2, ...listed })
    assert.deepInclude(json(["verify"]), { code: 1, ok: false, missing: [], stale: [], orphaned: [], ...listed })
    const rebuilt = json(["rebuild"])
    assert.deepInclude(rebuilt, { code: 1, ...listed })
    assert.deepStrictEqual(counts(rebuilt), [5, 2, 0, 2, 1])
    for (const command of ["index docs", "status", "verify", "rebuild"]) {
      const { err, out } = run(command.split(" "))
      assert.match(err + out, /docs\/bad\\xff: the name is not UTF-8/, command)
      assert.match(out, /skipped +docs\/sub\/empty\.txt: the file is empty/, command)
    }
    fs.rmSync(Buffer.concat([Buffer.from(join(folder, "docs/bad")), Buffer.from([0xff])]))
    assert.deepInclude(json(["index", "docs"]), { code: 0, scanned: 4, failed: 0 })
    assert.deepInclude(json(["verify"]), { code: 0, ok: true })
  })

  it("says what waits and what failed, and tries again", () => {
    write("a.txt", "word")
    run(["index", "."])
    const database = new DatabaseSync(join(folder, ".strata/strata.db"))
    database.exec(`INSERT INTO strata_changelog (scope, path, op, recorded_at) VALUES ('.', 'a.txt', 'put', 1000)`)
    database.exec(`UPDATE strata_dirty SET ready_at = NULL, last_error = 'broken', failed_at = 1, attempts = 8`)
    database.close()
    const status = json(["status"])
    assert.deepInclude(status, { documents: 1, dirty: 0, deadLetters: 1 })
    assert.deepStrictEqual(status.failures, [{ path: "a.txt", reason: "broken" }])
    // Only what failed is tried again.
    write("later.txt", "word")
    assert.deepInclude(json(["retry"]), { code: 0, revived: 1, scanned: 1, indexed: 0, unchanged: 1, failed: 0 })
    assert.deepStrictEqual(found("word"), ["a.txt"])
    assert.deepInclude(json(["status"]), { deadLetters: 0, dirty: 0, oldestDirtyMs: 0 })
  })

  it("verifies, repairs and rebuilds", () => {
    for (const name of ["a", "b", "c"]) write(`${name}.txt`, `word ${name}`)
    run(["index", "."])
    assert.deepInclude(json(["verify"]), { code: 0, ok: true, missing: [], stale: [], orphaned: [] })
    fs.rmSync(join(folder, "a.txt"))
    write("b.txt", "other words")
    write("d.txt", "word d")
    assert.deepInclude(json(["verify"]), {
      code: 1,
      ok: false,
      missing: ["d.txt"],
      stale: ["b.txt"],
      orphaned: ["a.txt"]
    })
    assert.deepInclude(json(["verify", "--repair"]), { code: 0, ok: true })
    assert.deepStrictEqual([...found("word")].toSorted(), ["c.txt", "d.txt"])
    const database = new DatabaseSync(join(folder, ".strata/strata.db"))
    database.exec("DELETE FROM strata_search_fts_1 WHERE rowid = (SELECT max(rowid) FROM strata_search_fts_1)")
    database.close()
    assert.deepInclude(json(["verify"]), { code: 1, ok: false, damaged: true })
    assert.deepInclude(json(["rebuild"]), { code: 0, indexed: 3, failed: 0 })
    assert.deepInclude(json(["verify"]), { code: 0, ok: true })
    assert.deepStrictEqual([...found("word")].toSorted(), ["c.txt", "d.txt"])
  })

  it("lets two processes index into one database", async () => {
    for (let i = 0; i < 300; i++) {
      write(`one/f${i}.txt`, `common one${i}`)
      write(`two/f${i}.txt`, `common two${i}`)
    }
    const both = [start(["index", "one", "--json"]), start(["index", "two", "--json"])]
    const codes = await Promise.all(both.map(async (child) => (await once(child, "exit"))[0]))
    assert.deepStrictEqual(codes, [0, 0])
    assert.strictEqual(json(["search", "common"]).total, 600)
    assert.deepInclude(json(["verify"]), { ok: true })
  })

  it("resumes after it was killed", async () => {
    const total = 1500
    for (let i = 0; i < total; i++) write(`docs/d${i % 20}/f${i}.txt`, `common text number${i} ${"filler ".repeat(50)}`)
    let killed = 0
    for (let i = 0; i < 3; i++) {
      const before = documents()
      const child = start(["index", "docs"])
      const exit = once(child, "exit")
      // When it has written something, and most likely has claimed more.
      await until(() => child.exitCode !== null || documents() > before)
      child.kill("SIGKILL")
      const [, signal] = await exit
      if (signal === "SIGKILL" && documents() < total) killed++
    }
    assert.isAbove(killed, 0)
    assert.strictEqual(json(["index", "docs"]).failed, 0)
    assert.deepInclude(json(["verify"]), { ok: true, damaged: false })
    assert.strictEqual(json(["search", "common"]).total, total)
  })

  it("D5: indexes within a second what is created, changed and removed while it watches", async () => {
    write("docs/start.txt", "initial")
    const child = start(["watch", "docs", "--json"])
    let out = ""
    child.stdout!.on("data", (chunk: Buffer) => (out += chunk.toString()))
    await until(() => out.includes("\n"))
    assert.deepStrictEqual(found("initial"), ["docs/start.txt"])
    const search = 150
    write("docs/a/b/c/f", "nested")
    assert.isBelow(await until(() => found("nested").length === 1), 1000 + search)
    write("docs/a/b/c/f", "rewritten")
    assert.isBelow(await until(() => found("rewritten").length === 1), 1000 + search)
    fs.rmSync(join(folder, "docs/a"), { recursive: true })
    assert.isBelow(await until(() => found("rewritten").length === 0), 1000 + search)
    child.kill("SIGINT")
    const [code] = await once(child, "exit")
    assert.strictEqual(code, 130)
    assert.deepInclude(json(["status"]), { documents: 1, dirty: 0 })
  })

  it("says how to go on when indexing is interrupted", async () => {
    for (let i = 0; i < 3000; i++) write(`docs/${i % 30}/f${i}.md`, `# Title ${i}\n\n${`word${i} `.repeat(500)}\n`)
    const child = start(["index", "docs"])
    let err = ""
    child.stderr!.on("data", (chunk: Buffer) => (err += chunk.toString()))
    const closed = once(child, "close")
    await until(() => documents() > 0)
    child.kill("SIGINT")
    const [code] = await closed
    assert.strictEqual(code, 130)
    assert.match(err, /^interrupted: [1-9]\d* files wait; the same command goes on\n$/)
    assert.deepInclude(json(["index", "docs"]), { code: 0, scanned: 3000 })
    assert.deepInclude(json(["status"]), { documents: 3000, dirty: 0 })
  })

  it("ends quietly when its reader has enough, and with 130 on SIGINT", async () => {
    for (let i = 0; i < 400; i++) write(`docs/f${i}.txt`, `common ${"x".repeat(300)}`)
    run(["index", "docs"])
    const child = start(["search", "common", "--limit", "400"])
    let err = ""
    child.stderr!.on("data", (chunk: Buffer) => (err += chunk.toString()))
    child.stdout!.once("data", () => child.stdout!.destroy())
    const [code] = await once(child, "exit")
    assert.deepStrictEqual([code, err], [0, ""])
  })
})
