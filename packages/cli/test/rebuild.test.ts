import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach } from "vitest"
import { type Folder, makeFolder } from "./program.ts"

let folder: Folder

beforeEach(() => {
  folder = makeFolder()
  folder.write("docs/a.md", "word alpha")
  folder.write("docs/b.md", "word beta")
  folder.write("more/c.md", "word gamma")
  assert.strictEqual(folder.run(["index", "docs", "more"]).code, 0)
})

afterEach(() => {
  for (const one of ["docs", "docs/a.md", "docs/sub"]) {
    if (fs.existsSync(join(folder.path, one))) fs.chmodSync(join(folder.path, one), 0o755)
  }
  folder.remove()
})

const mode = (path: string, mode: number): void => fs.chmodSync(join(folder.path, path), mode)

const heeding = (...args: ReadonlyArray<string>) => {
  const { code, out } = folder.runHeeding([...args, "--json"])
  return { code, ...JSON.parse(out.trim().split("\n").at(-1)!) }
}

const found = (): ReadonlyArray<string> =>
  folder
    .json(["search", "word"])
    .hits.map(({ path }: { readonly path: string }) => path)
    .toSorted()

const everything = ["docs/a.md", "docs/b.md", "more/c.md"]

describe("a rebuild keeps what can be found", { timeout: 60_000 }, () => {
  it("of a directory that is gone", () => {
    fs.renameSync(join(folder.path, "docs"), join(folder.path, "elsewhere"))
    const { code, err } = folder.run(["rebuild"])
    const docs = join(folder.path, "docs")
    const advice = `the index was not rebuilt. If it is gone for good, strata index ${docs} --force takes it out`
    assert.deepStrictEqual([code, err], [3, `strata: ${docs} does not exist; ${advice}\n`])
    assert.deepStrictEqual(found(), everything)
    fs.renameSync(join(folder.path, "elsewhere"), docs)
    assert.deepInclude(folder.json(["rebuild"]), { code: 0, indexed: 3, failed: 0, lost: 0 })
    assert.deepStrictEqual(found(), everything)
  })

  it("of a directory that is suddenly empty, or may not be read", () => {
    mode("docs", 0)
    const refused = heeding("rebuild")
    assert.strictEqual(refused.code, 3)
    assert.match(refused.error.message, /docs cannot be read \(EACCES\); the index was not rebuilt/)
    mode("docs", 0o755)
    for (const file of ["docs/a.md", "docs/b.md"]) fs.rmSync(join(folder.path, file))
    const empty = folder.run(["rebuild"])
    assert.strictEqual(empty.code, 3)
    assert.match(empty.err, /docs is suddenly empty/)
    assert.deepStrictEqual(found(), everything)
  })

  it("of a file that cannot be read, and goes on when it can", () => {
    mode("docs/a.md", 0)
    const failures = [{ path: "docs/a.md", reason: "the file cannot be read (EACCES)" }]
    const first = heeding("rebuild")
    assert.deepInclude(first, { code: 1, lost: 1, failed: 1, failures, indexed: 2, scanned: 3 })
    assert.deepStrictEqual(found(), everything)
    const { code, err } = folder.runHeeding(["rebuild"])
    assert.strictEqual(code, 1)
    assert.match(err, /^docs\/a\.md: the file cannot be read.*\nthe old index serves on: 1 file that it has/)
    mode("docs/a.md", 0o644)
    assert.deepInclude(heeding("rebuild"), { code: 0, lost: 0, failed: 0 })
    assert.deepStrictEqual(found(), everything)
    assert.deepInclude(folder.json(["verify"]), { code: 0, ok: true })
  })

  it("of a folder that cannot be read, and is not kept up by a file that could not be read before", () => {
    folder.write("docs/sub/d.md", "word delta")
    assert.strictEqual(folder.run(["index", "docs"]).code, 0)
    mode("docs/sub", 0)
    assert.deepInclude(heeding("rebuild"), { code: 1, lost: 1 })
    assert.deepStrictEqual(found(), [...everything.slice(0, 2), "docs/sub/d.md", "more/c.md"])
    mode("docs/sub", 0o755)
    folder.write("docs/never.md", "word")
    mode("docs/never.md", 0)
    const failures = [{ path: "docs/never.md", reason: "the file cannot be read (EACCES)" }]
    assert.deepInclude(heeding("rebuild"), { code: 1, lost: 0, failed: 1, failures })
    assert.strictEqual(found().length, 4)
    assert.deepInclude(heeding("status"), { failed: 1, failures })
  })
})
