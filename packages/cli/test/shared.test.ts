import { assert, describe, it } from "@effect/vitest"
import * as Nginx from "@strata/cache/testing/nginx"
import * as Redis from "@strata/cache/testing/redis"
import * as S3 from "@strata/cache/testing/s3"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterEach, beforeEach } from "vitest"
import { blackHole } from "./blackHole.ts"
import { type Folder, makeFolder } from "./program.ts"
import { urlOf } from "./s3.ts"

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

const writeTree = (folder: Folder, files = 60) => {
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

/** The tiers that the command line can name, each on a server that lives as long as the scope. */
const tiers = [
  {
    name: "HTTP",
    isAvailable: () => Effect.runSync(Nginx.isInstalled),
    url: Effect.map(Nginx.make(), ({ url }) => url)
  },
  {
    name: "Redis",
    isAvailable: () => Effect.runSync(Redis.isInstalled),
    url: Effect.map(Redis.make(), ({ url }) => url)
  },
  {
    name: "Postgres",
    isAvailable: Postgres.isAvailable,
    url: Effect.map(Postgres.schema, (schema) => `${process.env["STRATA_TEST_POSTGRES"]}?schema=${schema}`)
  },
  {
    name: "S3",
    isAvailable: () => Effect.runSync(S3.isInstalled),
    url: Effect.map(S3.make, ({ options }) => urlOf(options))
  }
] as const

for (const { isAvailable, name, url } of tiers) {
  describe.skipIf(!isAvailable())(`two machines with a shared cache on ${name}`, { timeout: 120_000 }, () => {
    it.live("extract what either has seen once", () =>
      Effect.gen(function* () {
        const shared = yield* url
        const files = 16
        writeTree(a, files)
        const first = a.json(["index", "docs", "--shared", shared])
        assert.deepInclude(first, { code: 0, scanned: files, failed: 0 })
        assert.strictEqual(first.cache.sharedHits, 0)
        assert.strictEqual(first.cache.extracted + first.cache.localHits, files)
        for (let attempt = 0; ; attempt++) {
          const b = machine()
          writeTree(b, files)
          const second = b.json(["index", "docs"], { STRATA_SHARED: shared })
          assert.deepInclude(second, { code: 0, indexed: first.indexed, skipped: first.skipped })
          assert.strictEqual(second.cache.extracted + second.cache.sharedHits + second.cache.localHits, files)
          assert.isAbove(indexed(a).length, 10)
          assert.deepStrictEqual(indexed(b), indexed(a))
          if (second.cache.extracted === 0) break
          // What a busy machine could not send, or get, in time.
          assert.isBelow(attempt, 3, "not everything is shared in the end")
          a.json(["index", "docs", "--shared", shared])
        }
      })
    )
  })
}

describe.skipIf(!Effect.runSync(Nginx.isInstalled))("a machine that only reads", () => {
  it.live("sends nothing to the shared cache, and knows what it extracted itself", () =>
    Effect.gen(function* () {
      const server = yield* Nginx.make()
      writeTree(a)
      a.run(["index", "docs", "--shared", server.url, "--read-only"])
      assert.deepStrictEqual(fs.readdirSync(server.root), [])
      // Another name for the same content.
      a.write("docs/moved/other.md", "# Title 4\n\ncommon markdown4\n\n## Part\n\n" + "more text ".repeat(80) + "\n")
      assert.deepStrictEqual(a.json(["index", "docs"]).cache, { extracted: 0, localHits: 1, sharedHits: 0 })
    })
  )
})

describe.skipIf(!Effect.runSync(Redis.isInstalled))("every command that extracts", { timeout: 120_000 }, () => {
  /** Entries that came from the shared cache. */
  const fromAfar = (folder: Folder): number =>
    folder
      .json(["cache", "stats"])
      .origins.filter(({ from }: { from: string | null }) => from !== null)
      .reduce((sum: number, { entries }: { entries: number }) => sum + entries, 0)

  it.live("takes from the shared cache: rebuild, search --sync, verify --repair, retry and watch", () =>
    Effect.gen(function* () {
      const { url } = yield* Redis.make()
      const shared = ["--shared", url]
      const write = (folder: Folder, name: string) => folder.write(`docs/${name}.txt`, `common ${name}\n`)
      for (const name of ["one", "two", "three", "four"]) write(a, name)
      a.json(["index", "docs", ...shared])
      // Plain text is not kept unless there is a shared cache.
      write(b, "one")
      b.json(["index", "docs"])
      assert.strictEqual(fromAfar(b), 0)
      assert.deepInclude(b.json(["rebuild", ...shared]), { code: 0, indexed: 1 })
      assert.strictEqual(fromAfar(b), 1)
      write(b, "two")
      assert.deepInclude(b.json(["search", "common", "--sync", ...shared]), { code: 0, total: 2 })
      assert.strictEqual(fromAfar(b), 2)
      write(b, "three")
      assert.deepInclude(b.json(["verify", "--repair", ...shared]), { code: 0, ok: true })
      assert.strictEqual(fromAfar(b), 3)
      assert.deepInclude(b.json(["retry", ...shared]), { code: 0, revived: 0 })
      const child = b.start(["watch", "docs", "--json", ...shared])
      const ended = new Promise((resolve) => child.once("exit", resolve))
      yield* Effect.promise(() => new Promise((resolve) => child.stdout!.once("data", resolve)))
      write(b, "four")
      while (b.json(["search", "four"]).total === 0) yield* Effect.sleep("50 millis")
      child.kill("SIGINT")
      yield* Effect.promise(() => ended)
      assert.strictEqual(fromAfar(b), 4)
    })
  )
})

/** A server that answers every request with a status, for the life of the scope; its address. */
const answering = (status: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const code = `require("node:http").createServer((q, r) => { q.resume(); r.writeHead(${status}).end() })
          .listen(0, "127.0.0.1", function () { console.log(this.address().port) })`
        const child = spawn(process.execPath, ["-e", code], { stdio: ["ignore", "pipe", "inherit"] })
        const [port] = await once(child.stdout, "data")
        return { child, url: `http://127.0.0.1:${String(port).trim()}` }
      }),
      ({ child }) => Effect.sync(() => child.kill())
    ),
    ({ url }) => url
  )

describe("what index could not share", () => {
  it.live("is told, with the reason, and is no failure", () =>
    Effect.gen(function* () {
      const refusing = yield* answering(403)
      for (const [url, name, reason] of [
        [refusing, refusing, "refuses access (Forbidden)"],
        ["redis://:hunter2@127.0.0.1:1", "redis://127.0.0.1:1", "cannot be reached: ECONNREFUSED (Unreachable)"]
      ] as const) {
        const folder = machine()
        writeTree(folder)
        const { code, err } = folder.run(["index", "docs", "--shared", url])
        assert.strictEqual(code, 0)
        assert.match(err, /^[^\n]+\d+ results? [^\n]+\n$/)
        assert.isTrue(err.startsWith(`shared cache ${name} ${reason}; `), err)
        const { unpublished, ...again } = folder.json(["index", "docs"], { STRATA_SHARED: url })
        assert.deepInclude(again, { code: 0, failed: 0 })
        assert.deepInclude(unpublished, { tier: name, reason: `${name} ${reason}` })
        // One for each content: 8 of the 60 files are empty.
        assert.strictEqual(unpublished.pending + unpublished.dead, 53)
        assert.isFalse("unpublished" in folder.json(["index", "docs"]))
        for (const command of [["status"], ["cache", "stats"]]) {
          const [waiting] = folder.json(command).unpublished
          assert.strictEqual(waiting.tier, name)
          assert.strictEqual(waiting.pending + waiting.dead, 53)
          assert.match(folder.run(command).out, /^to be shared {2}\d+ with (http|redis):/m)
        }
        assert.strictEqual(folder.run(["index", "docs", "--shared", url, "--read-only"]).err, "")
      }
    })
  )

  it.live.skipIf(!Effect.runSync(Nginx.isInstalled))("is nothing when all was sent", () =>
    Effect.gen(function* () {
      const { url } = yield* Nginx.make()
      writeTree(a, 16)
      const { code, err } = a.run(["index", "docs", "--shared", url])
      assert.deepStrictEqual({ code, err }, { code: 0, err: "" })
    })
  )
})

describe("the shared cache of a command", () => {
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
  const { system, user } = JSON.parse(fs.readFileSync(report, "utf8"))
  return { code, ms, cpuMs: (system + user) / 1000 }
}
