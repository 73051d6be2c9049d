import { assert, describe, it } from "@effect/vitest"
import * as Postgres from "@strata/durable/testing/postgres"
import { maxNameBytes, maxPathBytes } from "@strata/dirty-queue/Path"
import { incompressible } from "@strata/dirty-queue/testing/fixture"
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import { chmodSync } from "node:fs"
import { join } from "node:path"
import { type Folder, launcher, makeFolder } from "./program.ts"

const folder = Effect.acquireRelease(Effect.sync(makeFolder), (folder) => Effect.sync(() => folder.remove()))

/** An index in a schema of its own of the server of this run. */
const index = Effect.map(Postgres.schema, (schema) => `${process.env["STRATA_TEST_POSTGRES"]}?schema=${schema}`)

const password = () => new URL(process.env["STRATA_TEST_POSTGRES"]!).password

const writeTree = ({ write }: Folder) => {
  write("docs/a.md", "# Alpha\n\nfirst words\n")
  write("docs/deep/b.html", "<title>Beta</title><p>second words")
  write("docs/c.txt", "third words\n")
  write("docs/empty.txt", "")
}

const until = async (isTrue: () => boolean): Promise<void> => {
  const end = performance.now() + 15_000
  while (!isTrue()) {
    assert.isBelow(performance.now(), end, "it takes too long")
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

describe.skipIf(!Postgres.isAvailable())("an index in Postgres", { timeout: 120_000 }, () => {
  it.live("is made, searched, checked, built anew and looked after as one in a file is", () =>
    Effect.gen(function* () {
      const machine = yield* folder
      const database = yield* index
      const json = (...args: ReadonlyArray<string>) => machine.json([...args, "--database", database])
      writeTree(machine)
      assert.deepInclude(json("search", "words"), { code: 3 })
      assert.deepInclude(json("index", "docs"), { code: 0, scanned: 4, indexed: 3, skipped: 1, failed: 0 })
      const found = json("search", "words")
      assert.deepStrictEqual(
        [found.total, found.hits.map(({ path }: { path: string }) => path).toSorted()],
        [3, ["docs/a.md", "docs/c.txt", "docs/deep/b.html"]]
      )
      const status = json("status")
      assert.deepInclude(status, { code: 0, documents: 3, dirty: 0, skipped: 1, directories: ["docs"] })
      assert.isAbove(status.databaseBytes, 0)
      assert.notInclude(JSON.stringify(status), password())
      machine.write("docs/c.txt", "changed words\n")
      assert.deepInclude(json("verify"), { code: 1, ok: false, stale: ["docs/c.txt"] })
      assert.deepInclude(json("verify", "--repair"), { code: 0, ok: true })
      assert.deepInclude(json("rebuild"), { code: 0, indexed: 3, failed: 0 })
      machine.write("docs/d.md", "# Delta\n\nfourth words\n")
      assert.deepInclude(json("search", "fourth", "--sync"), { total: 1 })
      assert.deepInclude(json("retry"), { code: 0, revived: 0 })
      assert.isAbove(json("cache", "stats").entries, 0)
      assert.isAbove(json("journal").entries.length, 0)
      // The database of the environment, whose password is in no list of processes.
      assert.deepInclude(machine.json(["status"], { STRATA_DATABASE: database }), { code: 0, documents: 4 })
    })
  )

  it.live("lists a file with a path that is too long, and has all others", () =>
    Effect.gen(function* () {
      const machine = yield* folder
      const database = yield* index
      const json = (...args: ReadonlyArray<string>) => machine.json([...args, "--database", database])
      writeTree(machine)
      // More than a row of an index holds.
      const long = `docs/${incompressible(2750).replaceAll(/.{250}/g, "$&/")}a.txt`
      machine.write(long, "fourth words\n")
      const found = json("index", "docs")
      assert.deepInclude(found, { code: 1, scanned: 5, indexed: 3, skipped: 1, failed: 1 })
      const [failure] = found.failures
      assert.strictEqual(failure.reason, `the path has more than ${maxPathBytes} bytes`)
      assert.isTrue(long.startsWith(failure.path))
      assert.strictEqual(json("search", "words").total, 3)
      assert.deepInclude(json("status"), { documents: 3, dirty: 0, failures: found.failures })
      assert.deepInclude(json("index", "docs"), { code: 1, indexed: 0, unchanged: 3, failed: 1 })
      // So is the name of a directory that is indexed by itself.
      const root = long.slice("docs/".length, 800).replace(/[^/]*$/, "")
      machine.write(`${root}b.txt`, "fifth words\n")
      const { code, err } = machine.run(["index", root, "--database", database])
      assert.strictEqual(code, 3)
      assert.match(err, new RegExp(`^strata: The scope "[^"]*"… has more than ${maxNameBytes} bytes\n$`))
    })
  )

  it.live("serves on where a rebuild would lose a file that cannot be read now", () =>
    Effect.gen(function* () {
      const machine = yield* folder
      const database = yield* index
      writeTree(machine)
      machine.run(["index", "docs", "--database", database])
      const file = join(machine.path, "docs/c.txt")
      chmodSync(file, 0)
      const { code, out } = machine.runHeeding(["rebuild", "--json", "--database", database])
      assert.strictEqual(code, 1)
      assert.deepInclude(JSON.parse(out), { lost: 1, failed: 1 })
      assert.strictEqual(machine.json(["search", "words", "--database", database]).total, 3)
      chmodSync(file, 0o644)
      assert.deepInclude(machine.json(["rebuild", "--database", database]), { code: 0, lost: 0, failed: 0 })
      assert.strictEqual(machine.json(["search", "words", "--database", database]).total, 3)
    })
  )

  it.live("is kept current by watch, also with what another process records", () =>
    Effect.gen(function* () {
      const machine = yield* folder
      const database = yield* index
      writeTree(machine)
      const child = machine.start(["watch", "docs", "--database", database, "--json"])
      let out = ""
      child.stdout!.on("data", (chunk) => (out += String(chunk)))
      yield* Effect.promise(async () => {
        await until(() => out.includes("\n"))
        machine.write("docs/e.md", "# Epsilon\n\nfifth words\n")
        await until(() => machine.json(["search", "fifth", "--database", database]).total === 1)
        child.kill("SIGINT")
        await until(() => child.exitCode !== null)
      })
      assert.strictEqual(child.exitCode, 130)
      assert.notInclude(out, password())
    })
  )

  it.live("that cannot be used is one line of why, with exit code 3 and without a password", () =>
    Effect.gen(function* () {
      const machine = yield* folder
      const database = yield* index
      writeTree(machine)
      const away = new URL(database)
      away.port = "1"
      const stranger = new URL(database)
      stranger.password = "hunter2"
      const elsewhere = new URL(database)
      elsewhere.pathname = "/none"
      for (const [url, words] of [
        [away, /cannot be reached \(ECONNREFUSED\)/],
        [stranger, /refuses this user, or the password/],
        [elsewhere, /database "none" does not exist/]
      ] as const) {
        for (const args of [
          ["index", "docs"],
          ["search", "words"]
        ]) {
          const { code, err, out } = machine.run([...args, "--database", url.href])
          assert.strictEqual(code, 3)
          assert.match(err, words)
          assert.match(err, /^strata: the index postgres:\/\/[^@]*\?schema=\w+ cannot be used: .*\n$/)
          assert.notInclude(err + out, url.password)
        }
      }
      // As psql does, the user of the system is taken where none is named.
      const nobody = `postgres://127.0.0.1:1/none`
      const user = { ...process.env, USER: undefined, USERNAME: undefined }
      const { status, stderr } = spawnSync(process.execPath, [launcher, "search", "words", "--database", nobody], {
        env: user,
        encoding: "utf8"
      })
      assert.strictEqual(status, 3)
      assert.match(stderr, /^strata: the index postgres:\/\/127[^@]*cannot be reached \(ECONNREFUSED\)\n$/)
      // A search creates nothing.
      assert.match(
        machine.run(["search", "words", "--database", database]).err,
        /no search index in the database postgres:/
      )
    })
  )
})
