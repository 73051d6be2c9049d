import { assert, describe, it } from "@effect/vitest"
import * as Nginx from "@strata/cache/testing/nginx"
import * as Effect from "effect/Effect"
import { readdirSync, readFileSync } from "node:fs"
import { createServer, type Socket } from "node:net"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterEach, beforeEach } from "vitest"
import { type Folder, makeFolder } from "./program.ts"

const folders: Array<Folder> = []

/** A machine: a folder with a tree of its own, and an index of it. */
const machine = (): Folder => {
  const folder = makeFolder()
  folders.push(folder)
  return folder
}

let a: Folder
let b: Folder

beforeEach(() => {
  a = machine()
  b = machine()
})

afterEach(() => {
  for (const folder of folders.splice(0)) folder.remove()
})

const files = 60

const writeTree = (folder: Folder) => {
  for (let i = 0; i < files; i++) {
    const kind = i % 4
    const name = `docs/d${i % 5}/f${i}`
    if (kind === 0)
      folder.write(`${name}.md`, `# Title ${i}\n\ncommon markdown${i}\n\n## Part\n\n${"more text ".repeat(i * 20)}\n`)
    if (kind === 1) folder.write(`${name}.html`, `<html><title>Page ${i}</title><body><h1>Head</h1><p>common page${i}`)
    if (kind === 2) folder.write(`${name}.ts`, `export const common = ${i}\n`)
    if (kind === 3) folder.write(`${name}.txt`, i % 8 === 3 ? "" : `common text ${i}\n`)
  }
}

/** All that a search can find, in the order of paths and places. */
const indexed = (folder: Folder): ReadonlyArray<unknown> => {
  const database = new DatabaseSync(join(folder.path, ".strata", "strata.db"), { readOnly: true })
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE name GLOB 'strata_search_fts_[0-9]'").all()
  const rows = database
    .prepare(
      `SELECT title, heading, body, line FROM ${String(tables[0]?.["name"])} ORDER BY title, heading, line, body`
    )
    .all()
  database.close()
  return rows.map((row) => ({ ...row }))
}

const withNginx = <A, E>(use: (server: Nginx.Nginx) => Effect.Effect<A, E>) => Effect.flatMap(Nginx.make(), use)

describe.skipIf(!Effect.runSync(Nginx.isInstalled))("two machines with a shared cache", () => {
  it.live("extract what either has seen once", () =>
    withNginx((server) =>
      Effect.sync(() => {
        writeTree(a)
        writeTree(b)
        const first = a.json(["index", "docs", "--shared", server.url])
        assert.deepInclude(first, { code: 0, scanned: files, failed: 0 })
        assert.deepStrictEqual(first.cache.sharedHits, 0)
        assert.strictEqual(first.cache.extracted + first.cache.localHits, files)
        const second = b.json(["index", "docs"], { STRATA_SHARED: server.url })
        assert.strictEqual(second.cache.extracted, 0)
        assert.strictEqual(second.cache.sharedHits + second.cache.localHits, files)
        assert.strictEqual(second.cache.sharedHits, first.cache.extracted)
        assert.deepInclude(second, { indexed: first.indexed, skipped: first.skipped })
        assert.isAbove(indexed(a).length, 40)
        assert.deepStrictEqual(indexed(b), indexed(a))
        assert.deepStrictEqual(
          b.json(["search", "common", "--limit", "100"]).hits,
          a.json(["search", "common", "--limit", "100"]).hits
        )
        // Another name for the same content, and the index built anew: both are known here.
        b.write("docs/moved/other.md", "# Title 4\n\ncommon markdown4\n\n## Part\n\n" + "more text ".repeat(80) + "\n")
        assert.deepStrictEqual(b.json(["index", "docs"]).cache, { extracted: 0, localHits: 1, sharedHits: 0 })
      })
    )
  )

  it.live("send nothing when they only read", () =>
    withNginx((server) =>
      Effect.sync(() => {
        writeTree(a)
        a.run(["index", "docs", "--shared", server.url, "--read-only"])
        assert.deepStrictEqual(readdirSync(server.root), [])
      })
    )
  )
})

describe("the shared cache of a command", () => {
  it("is told when it is none, without a word of what was given", () => {
    a.write("docs/a.md", "# a")
    for (const url of ["nonsense", "ftp://host/x", "http://user:hunter2@host/", "http://host/?token=hunter2"]) {
      const { code, error } = a.json(["index", "docs", "--shared", url])
      assert.deepStrictEqual([code, error.tag], [2, "SharedTierInvalid"])
      assert.notInclude(error.message, "hunter2")
    }
  })

  it.live("does not hold it up for long when it does not answer", () =>
    Effect.gen(function* () {
      const { port } = yield* blackHole
      writeTree(a)
      writeTree(b)
      const shared = ["--shared", `http://127.0.0.1:${port}/`]
      // Side by side, so that both have the same share of a machine that is busy.
      const [without, withHole] = yield* Effect.promise(() => Promise.all([measure(a, []), measure(b, shared)]))
      assert.deepStrictEqual([without.code, withHole.code], [0, 0])
      // What it computes more is charged at the pace at which the other came by its time on the processor.
      const computed = withHole.cpuMs - without.cpuMs
      const pace = Math.max(1, without.ms / without.cpuMs)
      const waited = withHole.ms - without.ms - computed * pace
      assert.isBelow(computed + waited, 3000)
      assert.deepStrictEqual(indexed(b), indexed(a))
    })
  )
})

/** Runs `index`, and tells how long it took and how much time on the processor it had. */
const measure = async (folder: Folder, args: ReadonlyArray<string>) => {
  const report = join(folder.path, "cpu.json")
  const onExit = `import { writeFileSync } from "node:fs"
    process.on("exit", () => writeFileSync(${JSON.stringify(report)}, JSON.stringify(process.cpuUsage())))`
  const begin = performance.now()
  const child = folder.start(["index", "docs", ...args], {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(onExit)}`
  })
  const code = await new Promise((resolve) => child.once("exit", resolve))
  const ms = performance.now() - begin
  const { system, user } = JSON.parse(readFileSync(report, "utf8"))
  return { code, ms, cpuMs: (system + user) / 1000 }
}

/** Accepts, and never answers. */
const blackHole = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly close: () => void }>((resume) => {
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      sockets.add(socket)
      socket.on("error", () => sockets.delete(socket))
    })
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const close = () => {
        for (const socket of sockets) socket.destroy()
        server.close()
      }
      resume(Effect.succeed({ port, close }))
    })
  }),
  ({ close }) => Effect.sync(close)
)
