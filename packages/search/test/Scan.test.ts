import { assert, it } from "@effect/vitest"
import { maxNameBytes, maxPathBytes, Path } from "@strata/dirty-queue/Path"
import { incompressible } from "@strata/dirty-queue/testing/fixture"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { join } from "node:path"
import { execFileSync } from "node:child_process"
import * as FileTree from "@strata/search/FileTree"
import { asOrdinaryUser, makeWorkspace, openWorkspace, temporaryFolder } from "./workspace.ts"
import { onTiers } from "./tiers.ts"

/** Times so old that they can be trusted. */
const age = (file: string, seconds = 3600) => {
  const time = Date.now() / 1000 - seconds
  fs.utimesSync(file, time, time)
}

onTiers("Scan", (tier) => {
  it.live("processes exactly what was added, changed and removed", () =>
    Effect.gen(function* () {
      const { paths, remove, root, sync, write } = yield* makeWorkspace(tier)
      for (let i = 0; i < 30; i++) yield* write(`d${i % 3}/f${i}.txt`, `common word${i}`)
      const first = yield* sync()
      assert.deepStrictEqual([first.files, first.changed, first.processed], [30, 30, 30])
      yield* write("d0/f0.txt", "common changed")
      yield* remove("d1/f1.txt")
      yield* write("d9/new.txt", "common new")
      const second = yield* sync()
      // Files written within two seconds of the scan are looked at again; their digests show that nothing changed.
      assert.deepStrictEqual([second.files, second.removed, second.processed], [30, 1, 2])
      assert.deepStrictEqual(yield* paths("changed"), ["d0/f0.txt"])
      assert.deepStrictEqual(yield* paths("word0"), [])
      assert.deepStrictEqual(yield* paths("word1"), [])
      assert.deepStrictEqual(yield* paths("new"), ["d9/new.txt"])
      assert.strictEqual((yield* paths("common")).length, 30)
      assert.isTrue(fs.existsSync(root))
    })
  )

  it.live("records nothing for a tree whose times can be trusted", () =>
    Effect.gen(function* () {
      const { root, scan, scope, sql, sync, write } = yield* makeWorkspace(tier)
      yield* write("a.txt", "one")
      yield* write("b/c.txt", "two")
      yield* sync()
      // As if the first scan had come long after the files.
      yield* sql`UPDATE strata_search_folder SET entries = replace(entries, '/?', '/')`
      const again = yield* scan.run({ scope })
      assert.deepStrictEqual([again.files, again.changed, again.removed], [2, 0, 0])
      assert.isTrue(fs.existsSync(join(root, "a.txt")))
    })
  )

  it.live("D3: a file with an old modification time that is moved into the tree is found", () =>
    Effect.gen(function* () {
      const { base, paths, root, sync, write } = yield* makeWorkspace(tier)
      yield* write("a.txt", "one")
      yield* sync()
      fs.writeFileSync(join(base, "outside.txt"), "moved")
      age(join(base, "outside.txt"), 100_000)
      fs.renameSync(join(base, "outside.txt"), join(root, "b.txt"))
      yield* sync()
      assert.deepStrictEqual(yield* paths("moved"), ["b.txt"])
      fs.writeFileSync(join(base, "over.txt"), "over!")
      const { atime, mtime } = fs.statSync(join(root, "b.txt"))
      fs.utimesSync(join(base, "over.txt"), atime, mtime)
      fs.renameSync(join(base, "over.txt"), join(root, "b.txt"))
      yield* sync()
      assert.deepStrictEqual(yield* paths("over"), ["b.txt"])
    })
  )

  it.live("D4: a rewrite of the same size within one tick of the clock is found", () =>
    Effect.gen(function* () {
      const { paths, sync, write } = yield* makeWorkspace(tier)
      for (let i = 0; i < 20; i++) {
        yield* write("a.txt", `before${i + 10}`)
        yield* sync()
        yield* write("a.txt", `laters${i + 10}`)
        yield* sync()
        assert.deepStrictEqual(yield* paths(`laters${i + 10}`), ["a.txt"])
      }
    })
  )

  it.live("D6: a loop of links, a link to a parent and a dangling link: one document per real file", () =>
    Effect.gen(function* () {
      const { paths, root, sync, write } = yield* makeWorkspace(tier)
      yield* write("a/real.txt", "linked")
      fs.symlinkSync(".", join(root, "loop"))
      fs.symlinkSync("..", join(root, "a/parent"))
      fs.symlinkSync("nowhere", join(root, "dangling"))
      yield* sync()
      assert.deepStrictEqual(yield* paths("linked"), ["a/real.txt"])
    })
  )

  it.live("D7: a root that is suddenly empty, or gone, removes nothing unless forced", () =>
    Effect.gen(function* () {
      const { paths, root, scan, scope, sync, write } = yield* makeWorkspace(tier)
      yield* write("a/b.txt", "kept")
      yield* write("c.txt", "kept")
      yield* sync()
      fs.renameSync(root, `${root}-away`)
      assert.strictEqual((yield* Effect.flip(scan.run({ scope })))._tag, "FileTreeError")
      fs.mkdirSync(root)
      const error = yield* Effect.flip(scan.run({ scope }))
      assert.strictEqual(error._tag, "SuddenlyEmpty")
      assert.strictEqual((yield* paths("kept")).length, 2)
      fs.mkdirSync(join(root, "a"))
      assert.strictEqual((yield* Effect.flip(scan.run({ scope })))._tag, "SuddenlyEmpty")
      const forced = yield* sync({ force: true })
      assert.strictEqual(forced.removed, 2)
      assert.deepStrictEqual(yield* paths("kept"), [])
      assert.strictEqual((yield* sync()).removed, 0)
    })
  )

  it.live("D8: what cannot be indexed is reported by path and reason, and the rest is indexed", () =>
    Effect.gen(function* () {
      const { compare, index, paths, root, scope, sync, write } = yield* makeWorkspace(tier, { maxBytes: 1_000_000 })
      yield* write("good.txt", "good")
      yield* write("empty.txt", "")
      yield* write("binary.dat", new Uint8Array([0, 1, 2, 0, 255, 254, 0, 7]))
      yield* write("latin.txt", new Uint8Array([99, 97, 102, 0xe9, 10, 99, 97, 102, 101, 10]))
      fs.closeSync(fs.openSync(join(root, "huge.txt"), "w"))
      fs.truncateSync(join(root, "huge.txt"), 2 * 1024 ** 3)
      fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/bad`), Buffer.from([0xff]), Buffer.from(".txt")]), "x")
      execFileSync("mkfifo", [join(root, "pipe")])
      const scanned = yield* sync()
      assert.deepStrictEqual(scanned.problems.map((problem) => problem.reason._tag).toSorted(), [
        "NotUtf8",
        "SpecialFile"
      ])
      assert.deepStrictEqual((yield* compare).unreadable, [{ path: "bad\\xff.txt", reason: "the name is not UTF-8" }])
      const skipped = yield* index.skipped()
      assert.strictEqual(skipped.total, 4)
      assert.deepStrictEqual(
        skipped.documents.map((one) => `${one.path}: ${one.reason._tag}`),
        ["binary.dat: Binary", "empty.txt: Empty", "huge.txt: TooLarge", "latin.txt: NotText"]
      )
      const some = yield* index.skipped({ scope, except: ["empty.txt"], limit: 1 })
      assert.deepStrictEqual([some.total, some.documents.map(({ path }) => path as string)], [3, ["binary.dat"]])
      assert.strictEqual((yield* index.skipped({ scope, prefix: "e" })).total, 1)
      assert.strictEqual((yield* index.skipped({ among: ["huge.txt", "good.txt"] })).total, 1)
      assert.deepStrictEqual(yield* paths("good"), ["good.txt"])
      assert.deepStrictEqual(yield* index.documents, { indexed: 1, skipped: 4 })
    })
  )

  it.live("D8: a file that cannot be read is retried and named, and its folder's other files are indexed", () =>
    Effect.gen(function* () {
      const { paths, queue, root, sync, write } = yield* makeWorkspace(tier)
      yield* write("a/locked.txt", "secret")
      yield* write("a/open.txt", "open")
      fs.chmodSync(join(root, "a/locked.txt"), 0)
      yield* asOrdinaryUser(sync())
      const [failing] = yield* queue.failing()
      assert.deepStrictEqual(
        [failing?.path as string, failing?.lastError],
        ["a/locked.txt", "the file cannot be read (EACCES)"]
      )
      assert.deepStrictEqual(yield* paths("open"), ["a/open.txt"])
    })
  )

  it.live("D8: a path that is too long is reported as it is, and one as long as can be is indexed", () =>
    Effect.gen(function* () {
      const folder = incompressible(maxNameBytes).replaceAll(/(.{200})./g, "$1/")
      const { compare, paths, remove, root, scan, scope, sync, write } = yield* openWorkspace({
        base: yield* temporaryFolder,
        database: yield* tier.own,
        folder
      })
      assert.strictEqual(scope, folder)
      const name = incompressible(240)
      const deep = `${incompressible(1810).replaceAll(/.{240}/g, "$&/")}/`
      const longest = `${deep}${incompressible(maxPathBytes - deep.length)}`
      yield* write(longest, "word")
      yield* write(`${longest}a`, "word")
      yield* write(`${deep}${name}/a.txt`, "word")
      yield* write("b.txt", "word")
      // Each of its bytes is shown by four characters.
      const unprintable = Buffer.from(incompressible(250)).map((byte) => byte | 0x80)
      fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/${deep}`), unprintable]), "word")
      const { files, problems } = yield* sync()
      assert.strictEqual(files, 2)
      const tooLong = [`${deep}${name}/`, `${longest}a`].toSorted()
      const faults = problems.filter(({ reason }) => reason._tag === "PathTooLong")
      assert.deepStrictEqual(faults.map(({ path }) => path).toSorted(), tooLong)
      const shown = problems.find(({ reason }) => reason._tag === "NotUtf8")?.path
      assert.isAbove(shown?.length ?? 0, 2704)
      assert.deepStrictEqual(
        (yield* scan.problems(scope)).map(({ path }) => path),
        problems.map(({ path }) => path).toSorted()
      )
      assert.deepStrictEqual(yield* paths("word"), [longest, "b.txt"].toSorted())
      assert.deepInclude(yield* sync(), { files: 2, removed: 0, problems })
      assert.deepInclude((yield* compare).unreadable, {
        path: `${longest}a`,
        reason: `the path has more than ${maxPathBytes} bytes`
      })
      yield* remove(deep.slice(0, name.length))
      assert.deepInclude(yield* sync(), { files: 1, removed: 1, problems: [] })
      assert.deepStrictEqual(yield* scan.problems(scope), [])
      assert.deepStrictEqual(yield* paths("word"), ["b.txt"])
    })
  )

  it.live("keeps what is below folders that cannot be listed, or whose entries cannot be looked at", () =>
    Effect.gen(function* () {
      const { compare, paths, root, sync, write } = yield* makeWorkspace(tier)
      for (const path of ["listless/a.txt", "listless/b/c.txt", "blind/d.txt", "blind/e/f.txt", "open/g.txt"]) {
        yield* write(path, "word")
      }
      yield* sync()
      fs.chmodSync(join(root, "listless"), 0o711)
      fs.chmodSync(join(root, "blind"), 0o744)
      const scanned = yield* asOrdinaryUser(sync())
      assert.strictEqual(scanned.removed, 0)
      assert.deepStrictEqual(scanned.problems.map((problem) => problem.path).toSorted(), [
        "blind/d.txt",
        "blind/e",
        "listless/"
      ])
      assert.strictEqual((yield* paths("word")).length, 5)
      const differences = yield* asOrdinaryUser(compare)
      assert.deepStrictEqual([differences.missing, differences.orphaned], [[], []])
      assert.deepStrictEqual(differences.unreadable.map(({ path }) => path as string).toSorted(), [
        "blind/d.txt",
        "blind/e",
        "listless/"
      ])
      fs.rmSync(join(root, "blind"), { recursive: true })
      assert.strictEqual((yield* sync()).removed, 2)
    })
  )

  it.live("D7: a scan of a part does not take an empty root for an empty part", () =>
    Effect.gen(function* () {
      const { remove, root, scan, scope, sync, write } = yield* makeWorkspace(tier)
      yield* write("a/one.txt", "word")
      yield* write("two.txt", "word")
      yield* sync()
      fs.renameSync(root, `${root}-away`)
      fs.mkdirSync(root)
      assert.strictEqual((yield* Effect.flip(scan.run({ scope, under: "a/" })))._tag, "SuddenlyEmpty")
      fs.rmdirSync(root)
      fs.renameSync(`${root}-away`, root)
      yield* remove("a")
      assert.strictEqual((yield* sync({ under: "a/" })).removed, 1)
    })
  )

  it.live("D7: a part that was asked for by its name has to have files as well", () =>
    Effect.gen(function* () {
      const { paths, remove, root, scan, scope, sync, write } = yield* makeWorkspace(tier)
      yield* write("disk/one.txt", "word")
      yield* write("two.txt", "word")
      yield* sync()
      yield* remove("disk/one.txt")
      const named = { scope, under: "disk/", guard: "part" } as const
      const error = yield* Effect.flip(scan.run(named))
      assert.strictEqual(error.message, `${root}/disk/ is suddenly empty: nothing was removed from the index`)
      yield* remove("disk")
      assert.strictEqual((yield* Effect.flip(scan.run(named)))._tag, "SuddenlyEmpty")
      assert.strictEqual((yield* paths("word")).length, 2)
      assert.strictEqual((yield* sync({ ...named, force: true })).removed, 1)
      assert.strictEqual((yield* scan.run(named)).removed, 0)
    })
  )

  it.live("remembers what it could not use, part by part, until that is mended", () =>
    Effect.gen(function* () {
      const { root, scan, scope, sync, write } = yield* makeWorkspace(tier)
      yield* write("a/open.txt", "word")
      yield* write("b/open.txt", "word")
      fs.writeFileSync(join(root, "a/bad\nname"), "x")
      execFileSync("mkfifo", [join(root, "b/pipe")])
      const known = (under?: string) =>
        Effect.map(scan.problems(scope, under), (problems) =>
          problems.map(({ path, reason }) => `${path}: ${FileTree.describe(reason)}`)
        )
      yield* sync()
      const bad = "a/bad\\x0aname: the name has a control character"
      const pipe = "b/pipe: it is a FIFO, not a regular file"
      assert.deepStrictEqual(yield* known(), [bad, pipe])
      assert.deepStrictEqual(yield* known("b/"), [pipe])
      fs.rmSync(join(root, "a/bad\nname"))
      fs.rmSync(join(root, "b/pipe"))
      yield* sync({ under: "b/" })
      assert.deepStrictEqual(yield* known(), [bad])
      yield* sync()
      assert.deepStrictEqual(yield* known(), [])
    })
  )

  it.live("knows what it listed, whatever the size of a folder and however often it changes", () =>
    Effect.gen(function* () {
      const { drain, find, follower, queue, remove, scan, scope, sync, write } = yield* makeWorkspace(tier)
      const names = Array.from({ length: 1_200 }, (_, i) => `d/${i}.txt`)
      for (const name of names) yield* write(name, "word")
      assert.strictEqual((yield* sync()).processed, names.length)
      const lists = (path: string) => scan.lists(scope, Path.make(path))
      assert.deepStrictEqual(
        yield* Effect.all([lists("d/7.txt"), lists("d/7.tx"), lists("7.txt"), lists("d/no.txt")]),
        [true, false, false, false]
      )
      yield* write(".gitignore", "7.txt\n")
      yield* remove("d/8.txt")
      yield* scan.run({ scope })
      assert.deepStrictEqual(yield* Effect.all([lists("d/7.txt"), lists("d/8.txt"), lists("d/9.txt")]), [
        false,
        false,
        true
      ])
      yield* drain
      yield* queue.enqueue({ follower: follower.name, scope, paths: names.map((name) => Path.make(name)) })
      yield* drain
      assert.strictEqual((yield* find("word")).total, names.length - 2)
    })
  )

  it.live("Q10: removing a folder removes what starts with exactly its name", () =>
    Effect.gen(function* () {
      const { paths, remove, sync, write } = yield* makeWorkspace(tier)
      for (const path of ["a_b/x.txt", "a_b/😀.md", "a_b/deep/y.txt", "aXb/x.txt", "A_B/x.txt", "a_b2/x.txt"]) {
        yield* write(path, "word")
      }
      yield* sync()
      yield* remove("a_b")
      const { removed } = yield* sync()
      assert.strictEqual(removed, 3)
      assert.deepStrictEqual(yield* paths("word"), ["A_B/x.txt", "aXb/x.txt", "a_b2/x.txt"])
    })
  )

  it.live("scans a part of a root without touching the rest", () =>
    Effect.gen(function* () {
      const { paths, remove, scan, scope, sync, write } = yield* makeWorkspace(tier)
      yield* write("a/one.txt", "word")
      yield* write("b/two.txt", "word")
      // A root without any file would be refused.
      yield* write("stays.txt", "nothing")
      yield* sync()
      yield* remove("b/two.txt")
      yield* write("a/three.txt", "word")
      const part = yield* scan.run({ scope, under: "a/" })
      assert.deepStrictEqual([part.files, part.removed], [2, 0])
      yield* sync({ under: "a/" })
      assert.deepStrictEqual(yield* paths("word"), ["a/one.txt", "a/three.txt", "b/two.txt"])
      yield* remove("a")
      yield* sync({ under: "a/" })
      assert.deepStrictEqual(yield* paths("word"), ["b/two.txt"])
      yield* sync({ force: true })
      assert.deepStrictEqual(yield* paths("word"), [])
    })
  )

  it.live("goes by byte order where JavaScript's differs", () =>
    Effect.gen(function* () {
      const { scan, scope, sql, sync, write } = yield* makeWorkspace(tier)
      for (const folder of ["a-b", "a", "a/c", "\uFFFD!", "😀", "z"]) yield* write(`${folder}/f.txt`, "word")
      yield* sync()
      yield* sql`UPDATE strata_search_folder SET entries = replace(entries, '/?', '/')`
      const again = yield* scan.run({ scope })
      assert.deepStrictEqual([again.changed, again.removed], [0, 0])
    })
  )

  it.live("forgets a root and removes its documents", () =>
    Effect.gen(function* () {
      const { drain, paths, scan, scope, sync, write } = yield* makeWorkspace(tier)
      yield* write("a.txt", "word")
      yield* write("b/c.txt", "word")
      yield* sync()
      assert.strictEqual(yield* scan.forget(scope), 2)
      yield* drain
      assert.deepStrictEqual(yield* paths("word"), [])
      assert.strictEqual((yield* sync()).changed, 2)
    })
  )

  it.live("finds nothing new, and forgets nothing, where a .gitignore cannot be read", () =>
    Effect.gen(function* () {
      const { paths, sync, write } = yield* makeWorkspace(tier)
      yield* write("part/.gitignore", "secret.txt\n")
      yield* write("part/secret.txt", "word")
      yield* write("part/in/secret.txt", "word")
      yield* write("part/in/known.txt", "word")
      yield* write("beside.txt", "word")
      yield* sync()
      yield* write("part/.gitignore", `secret.txt\n${"#".repeat(1024 * 1024)}`)
      yield* write("part/in/new.txt", "word")
      const scanned = yield* sync()
      assert.deepStrictEqual(scanned.problems, [
        { path: "part/.gitignore", reason: { _tag: "Unreadable", code: "EFBIG" } }
      ])
      assert.deepStrictEqual(yield* paths("word"), ["beside.txt", "part/in/known.txt"])
      assert.deepStrictEqual((yield* sync({ under: "part/in/" })).problems, [
        { path: "part/in/", reason: { _tag: "Unreadable", code: "EFBIG" } }
      ])
      assert.deepStrictEqual(yield* paths("word"), ["beside.txt", "part/in/known.txt"])
      yield* write("part/.gitignore", "secret.txt\n")
      assert.deepStrictEqual((yield* sync()).problems, [])
      assert.deepStrictEqual(yield* paths("word"), ["beside.txt", "part/in/known.txt", "part/in/new.txt"])
      yield* write(".gitignore", "#".repeat(1024 * 1024 + 1))
      yield* write("late.txt", "word")
      assert.deepStrictEqual(
        (yield* sync()).problems.map(({ path }) => path),
        [".gitignore"]
      )
      assert.strictEqual((yield* paths("word")).length, 3)
    })
  )

  it.live("honours .gitignore when it changes", () =>
    Effect.gen(function* () {
      const { paths, sync, write } = yield* makeWorkspace(tier)
      yield* write("keep.txt", "word")
      yield* write("build/out.txt", "word")
      yield* sync()
      yield* write(".gitignore", "build/\n")
      yield* sync()
      assert.deepStrictEqual(yield* paths("word"), ["keep.txt"])
    })
  )
})

onTiers("Verify", (tier) => {
  it.live("finds what is missing, stale and orphaned, and mends it", () =>
    Effect.gen(function* () {
      const { compare, drain, index, repair, sql, sync, write } = yield* makeWorkspace(tier)
      for (const name of ["a", "b", "c"]) yield* write(`${name}.txt`, `word ${name}`)
      yield* sync()
      assert.deepStrictEqual(yield* compare, { missing: [], stale: [], orphaned: [], unreadable: [] })
      yield* sql`UPDATE strata_search_document SET digest = 'wrong' WHERE path = 'a.txt'`
      yield* sql.unsafe(tier.deletePassages("b.txt"))
      yield* sql`DELETE FROM strata_search_document WHERE path = 'b.txt'`
      yield* sql`UPDATE strata_search_document SET path = 'gone.txt' WHERE path = 'c.txt'`
      const differences = yield* compare
      assert.deepStrictEqual(
        [differences.missing, differences.stale, differences.orphaned],
        [["b.txt", "c.txt"], ["a.txt"], ["gone.txt"]]
      )
      yield* repair(differences)
      yield* drain
      assert.deepStrictEqual(yield* compare, { missing: [], stale: [], orphaned: [], unreadable: [] })
      yield* index.check
    })
  )
})
