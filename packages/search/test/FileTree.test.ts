import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Net from "node:net"
import * as Os from "node:os"
import * as Path from "node:path"
import * as FileTree from "../src/FileTree.ts"
import { type FileSystem, nodeFileSystem } from "../src/internal/fileSystem.ts"

const temporary = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "strata-tree-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

/** Writes files, given as path and content, into a new directory. */
const tree = (files: Readonly<Record<string, string>>) =>
  Effect.tap(temporary, (root) =>
    Effect.sync(() => {
      for (const [path, content] of Object.entries(files)) {
        Fs.mkdirSync(Path.dirname(Path.join(root, path)), { recursive: true })
        if (!path.endsWith("/")) Fs.writeFileSync(Path.join(root, path), content)
        else Fs.mkdirSync(Path.join(root, path), { recursive: true })
      }
    })
  )

const walk = (root: string, options?: FileTree.WalkOptions, fileSystem: FileSystem = nodeFileSystem) =>
  Stream.runCollect(FileTree.walkWith(fileSystem, root, options))

const filePaths = (directories: ReadonlyArray<FileTree.Directory>) =>
  directories.flatMap(({ files }) => files.map(({ path }) => path))

const problems = (directories: ReadonlyArray<FileTree.Directory>) =>
  directories.flatMap(({ problems }) => problems.map(({ path, reason }) => [path, reason] as const))

const walkFiles = (root: string, options?: FileTree.WalkOptions) => Effect.map(walk(root, options), filePaths)

const fileAt = (root: string, path: string) =>
  Effect.map(walk(root), (found) => found.flatMap(({ files }) => files).find((file) => file.path === path)!)

const listening = (path: string) =>
  Effect.acquireRelease(
    Effect.callback<Net.Server>((resume) => {
      const server = Net.createServer().listen(path, () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  )

const isRoot = process.getuid?.() === 0

describe("FileTree", () => {
  describe("walk", () => {
    it.live("answers each directory with its files, in byte order", () =>
      Effect.gen(function* () {
        const names = ["Z", "a", "a-b/f", "a.b/f", "a/f", "a/b/f", "a0/f", ".hidden", "é", "\uffee", "😀"]
        const root = yield* tree(Object.fromEntries(names.map((name) => [name === "a" ? "A" : name, "x"])))
        const found = yield* walk(root)
        assert.deepStrictEqual(
          found.map(({ path }) => path),
          ["", "a-b/", "a.b/", "a/", "a/b/", "a0/"]
        )
        assert.deepStrictEqual(
          found[0]!.files.map(({ path }) => path),
          [".hidden", "A", "Z", "é", "\uffee", "😀"]
        )
        assert.deepStrictEqual(found[0]!.directories, ["a-b/", "a.b/", "a/", "a0/"])
        assert.deepStrictEqual(
          found[3]!.files.map(({ name, path, size }) => [name, path, size]),
          [["f", "a/f", 1]]
        )
        assert.isTrue(found.every(({ complete, problems }) => complete && problems.length === 0))
      })
    )

    it.live("leaves out exactly the files it is told to, by whatever path it comes to them", () =>
      Effect.gen(function* () {
        const root = yield* tree({ "a/index.db": "x", "b/index.db": "x", "a/index.db-wal": "x" })
        Fs.symlinkSync("a", Path.join(root, "link"))
        const exclude = [Path.join(root, "link/index.db"), Path.join(root, "nowhere/index.db-wal")]
        assert.deepStrictEqual(yield* walkFiles(root, { exclude }), ["a/index.db-wal", "b/index.db"])
        assert.deepStrictEqual(yield* walkFiles(`${root}/link`, { exclude }), ["index.db-wal"])
        assert.isTrue(yield* FileTree.isIgnored(root, "a/index.db", { exclude }))
        assert.isFalse(yield* FileTree.isIgnored(root, "b/index.db", { exclude }))
      })
    )

    it.live("walks an empty directory, by any name of it", () =>
      Effect.gen(function* () {
        const root = yield* temporary
        const empty = { path: "", files: [], directories: [], links: 0, problems: [], complete: true }
        assert.deepStrictEqual(yield* walk(root), [empty])
        assert.deepStrictEqual(yield* walk(`${root}/`), [empty])
        Fs.symlinkSync(root, `${root}-link`)
        yield* Effect.addFinalizer(() => Effect.sync(() => Fs.rmSync(`${root}-link`)))
        assert.deepStrictEqual(yield* walk(`${root}-link`), [empty])
      })
    )

    it.live("refuses a root that is missing or no directory", () =>
      Effect.gen(function* () {
        const root = yield* tree({ file: "x" })
        const missing = yield* Effect.flip(walk(`${root}/none`))
        assert.strictEqual(missing.reason._tag, "RootMissing")
        assert.strictEqual(missing.message, `${root}/none does not exist`)
        assert.strictEqual((yield* Effect.flip(walk(`${root}/file`))).reason._tag, "RootNotDirectory")
      })
    )

    it.live("walks a directory of 5,000 files", () =>
      Effect.gen(function* () {
        const root = yield* temporary
        for (let index = 0; index < 5_000; index++) Fs.writeFileSync(`${root}/${index}`, "")
        assert.strictEqual((yield* walkFiles(root)).length, 5_000)
      })
    )

    it.live("lets other fibers run after about 1,000 entries", () =>
      Effect.gen(function* () {
        const root = yield* temporary
        for (let index = 0; index < 5_000; index++) {
          if (index % 500 === 0) Fs.mkdirSync(`${root}/${index / 500}`)
          Fs.writeFileSync(`${root}/${Math.floor(index / 500)}/${index}`, "")
        }
        let turns = 0
        yield* Effect.forkChild(
          Effect.forever(
            Effect.andThen(
              Effect.sync(() => turns++),
              Effect.yieldNow
            )
          )
        )
        const synchronous: FileSystem = {
          ...nodeFileSystem,
          listAsync: (path) => Promise.resolve(nodeFileSystem.list(path))
        }
        assert.strictEqual(filePaths(yield* walk(root, {}, synchronous)).length, 5_000)
        assert.isAtLeast(turns, 3)
      })
    )

    it.live("leaves out what is to be skipped, wherever it is", () =>
      Effect.gen(function* () {
        const root = yield* tree({
          ".git/x": "",
          "a/.git": "",
          ".strata/db": "",
          "a/.strata/x": "",
          "a/f": "",
          "skip/f": ""
        })
        assert.deepStrictEqual(yield* walkFiles(root), ["a/f", "skip/f"])
        assert.deepStrictEqual(yield* walkFiles(root, { skip: ["skip", ".git", "a"] }), [".strata/db"])
      })
    )
  })

  describe("signature", () => {
    it.live("differs after any change, and only then", () =>
      Effect.gen(function* () {
        const root = yield* tree({ f: "one", g: "x" })
        const file = `${root}/f`
        const signature = Effect.map(fileAt(root, "f"), ({ signature }) => signature)
        const seen = new Set([yield* signature])
        const changes = [
          () => Fs.writeFileSync(file, "longer"),
          () => Fs.writeFileSync(file, "LONGER"),
          () => Fs.utimesSync(file, 1, 1),
          () => Fs.chmodSync(file, 0o600),
          () => {
            Fs.writeFileSync(`${root}/new`, "LONGER")
            Fs.utimesSync(`${root}/new`, 1, 1)
            Fs.renameSync(`${root}/new`, file)
          }
        ]
        for (const [index, change] of changes.entries()) {
          yield* Effect.sleep(20)
          change()
          assert.strictEqual(yield* signature, yield* signature)
          seen.add(yield* signature)
          assert.strictEqual(seen.size, index + 2, `change ${index}`)
        }
      })
    )

    it.live("warns of a change that the clock may not tell from the next", () =>
      Effect.gen(function* () {
        const root = yield* tree({ fresh: "x", old: "x", future: "x" })
        Fs.utimesSync(`${root}/old`, 1, 1)
        assert.isTrue((yield* fileAt(root, "fresh")).racy)
        assert.isTrue((yield* fileAt(root, "old")).racy, "its time of change is fresh")
        yield* Effect.sleep(60)
        const racy = Effect.map(walk(root, { racyWindow: 50 }), ([directory]) =>
          directory!.files.filter((file) => file.racy).map((file) => file.name)
        )
        assert.deepStrictEqual(yield* racy, [])
        Fs.utimesSync(`${root}/future`, 1, Date.now() / 1000 + 60)
        Fs.writeFileSync(`${root}/fresh`, "y")
        assert.deepStrictEqual(yield* racy, ["fresh", "future"])
      })
    )
  })

  describe("links", () => {
    const linked = Effect.gen(function* () {
      const outside = yield* tree({ "o/p/deep": "x", "o/file": "x", other: "x" })
      const root = yield* tree({ "a/b/f": "x", real: "x" })
      const link = (target: string, path: string) => Fs.symlinkSync(target, `${root}/${path}`)
      link(".", "loop")
      link("..", "a/b/parent")
      link(root, "a/absolute")
      link(Path.dirname(root), "a/above")
      link("nowhere", "dangling")
      link("self", "self")
      link("real", "inside")
      link(`${outside}/o`, "out")
      link(`${outside}/o/p`, "a/part")
      link(`${outside}/o`, "z-again")
      link(`${outside}/other`, "other")
      link(`${outside}/other`, "other2")
      Fs.symlinkSync("..", `${outside}/o/p/up`)
      Fs.symlinkSync(root, `${outside}/o/back`)
      return root
    })

    it.live("are counted and not followed by default", () =>
      Effect.gen(function* () {
        const root = yield* linked
        const found = yield* walk(root)
        assert.deepStrictEqual(filePaths(found), ["real", "a/b/f"])
        assert.deepStrictEqual(problems(found), [])
        assert.deepStrictEqual(
          found.map(({ path, links }) => [path, links]),
          [
            ["", 8],
            ["a/", 3],
            ["a/b/", 1]
          ]
        )
      })
    )

    it.live("end when followed, with one file for each real one", () =>
      Effect.gen(function* () {
        const root = yield* linked
        const found = yield* walk(root, { followSymlinks: true })
        const paths = filePaths(found)
        const real = paths.map((path) => Fs.realpathSync(`${root}/${path}`))
        assert.strictEqual(new Set(real).size, real.length)
        assert.deepStrictEqual(
          paths,
          ["other", "real", "a/b/f", "out/file", "a/part/deep"].toSorted((x, y) => paths.indexOf(x) - paths.indexOf(y))
        )
        assert.strictEqual(paths.length, 5)
        assert.deepStrictEqual(problems(found), [
          ["dangling", { _tag: "DanglingLink" }],
          ["loop", { _tag: "LinkLoop" }],
          ["self", { _tag: "LinkLoop" }],
          ["a/above", { _tag: "LinkLoop" }],
          ["a/absolute", { _tag: "LinkLoop" }],
          ["a/b/parent", { _tag: "LinkLoop" }]
        ])
      })
    )

    it.live("are followed at the start of a walk only on demand", () =>
      Effect.gen(function* () {
        const root = yield* linked
        assert.deepStrictEqual(yield* walkFiles(root, { under: "out/" }), [])
        const followed = yield* walkFiles(root, { under: "out/", followSymlinks: true })
        assert.deepStrictEqual(followed, ["out/file", "out/p/deep"])
      })
    )
  })

  describe("problems", () => {
    it.live("a FIFO and a socket do not stop the walk", () =>
      Effect.gen(function* () {
        const root = yield* tree({ f: "x", "z/f": "x" })
        execFileSync("mkfifo", [`${root}/fifo`])
        yield* listening(`${root}/socket`)
        const found = yield* walk(root)
        assert.deepStrictEqual(problems(found), [
          ["fifo", { _tag: "SpecialFile", kind: "FIFO" }],
          ["socket", { _tag: "SpecialFile", kind: "socket" }]
        ])
        assert.deepStrictEqual(filePaths(found), ["f", "z/f"])
      })
    )

    it.live("names that are not UTF-8 or have control characters are shown escaped", () =>
      Effect.gen(function* () {
        const root = yield* tree({ "a/f": "x", "a/\ufffd": "x", "a/tab\tx": "x", "a/new\nline/f": "x" })
        for (const name of [
          [0x62, 0xff],
          [0x62, 0xfe]
        ]) {
          Fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/a/`), Buffer.from(name)]), "x")
        }
        Fs.mkdirSync(Buffer.concat([Buffer.from(`${root}/a/d`), Buffer.of(0x80)]))
        const found = yield* walk(root)
        assert.deepStrictEqual(filePaths(found), ["a/f", "a/\ufffd"])
        assert.deepStrictEqual(
          problems(found).toSorted(([x], [y]) => (x < y ? -1 : 1)),
          [
            ["a/b\\xfe", { _tag: "NotUtf8" }],
            ["a/b\\xff", { _tag: "NotUtf8" }],
            ["a/d\\x80", { _tag: "NotUtf8" }],
            ["a/new\\x0aline", { _tag: "ControlCharacter" }],
            ["a/tab\\x09x", { _tag: "ControlCharacter" }]
          ]
        )
      })
    )

    it.live("paths that are too long are no files, and directories in which all are not walked", () =>
      Effect.gen(function* () {
        const part = `${"é".repeat(100)}/`
        const deep = part.repeat(10)
        const root = yield* tree({ [`${deep}${"a".repeat(38)}`]: "x", [`${deep}${"b".repeat(39)}`]: "x", z: "x" })
        Fs.mkdirSync(`${root}/${deep}${"c".repeat(38)}`)
        Fs.mkdirSync(`${root}/${deep}${"d".repeat(37)}`)
        Fs.writeFileSync(`${root}/.gitignore`, `${"e".repeat(39)}\n`)
        Fs.writeFileSync(`${root}/${deep}${"e".repeat(39)}`, "x")
        Fs.symlinkSync(yield* tree({ f: "x" }), `${root}/${deep}${"l".repeat(38)}`)
        const found = yield* walk(root)
        assert.deepStrictEqual(filePaths(found), [".gitignore", "z", `${deep}${"a".repeat(38)}`])
        assert.deepStrictEqual(found.at(-1)?.path, `${deep}${"d".repeat(37)}/`)
        const tooLong = [`${deep}${"b".repeat(39)}`, `${deep}${"c".repeat(38)}/`]
        assert.deepStrictEqual(
          problems(found),
          tooLong.map((path) => [path, { _tag: "PathTooLong" }])
        )
        const followed = problems(yield* walk(root, { followSymlinks: true }))
        assert.deepInclude(followed, [`${deep}${"l".repeat(38)}/`, { _tag: "PathTooLong" }])
      })
    )

    it.live("a directory that may not be read is incomplete, and the rest is walked", () =>
      Effect.gen(function* () {
        const root = yield* tree({ "a/f": "x", "closed/f": "x", "z/f": "x", "unsearchable/f": "x" })
        Fs.chmodSync(root, 0o755)
        Fs.chmodSync(`${root}/closed`, 0o000)
        Fs.chmodSync(`${root}/unsearchable`, 0o444)
        const found = yield* asNobody(walk(root))
        Fs.chmodSync(`${root}/closed`, 0o755)
        Fs.chmodSync(`${root}/unsearchable`, 0o755)
        assert.deepStrictEqual(filePaths(found), ["a/f", "z/f"])
        assert.deepStrictEqual(problems(found), [
          ["closed/", { _tag: "Unreadable", code: "EACCES" }],
          ["unsearchable/f", { _tag: "Unreadable", code: "EACCES" }]
        ])
        assert.deepStrictEqual(
          found.filter(({ complete }) => !complete).map(({ path }) => path),
          ["closed/"]
        )
        Fs.chmodSync(root, 0o000)
        const error = yield* Effect.flip(asNobody(walk(root)))
        Fs.chmodSync(root, 0o755)
        assert.deepStrictEqual(error.reason, { _tag: "RootUnreadable", code: "EACCES" })
      })
    )

    it.live("any error of the system is reported by path", () =>
      Effect.gen(function* () {
        const root = yield* tree({ "a/f": "x", "a/g": "x", "b/f": "x", "c/.gitignore": "f", "c/f": "x" })
        const failing: FileSystem = {
          ...nodeFileSystem,
          list: (path) => (path.endsWith("/b/") ? { code: "EIO" } : nodeFileSystem.list(path)),
          lstat: (path) => (path.endsWith("/a/f") ? { code: "EIO" } : nodeFileSystem.lstat(path)),
          readText: () => ({ code: "EIO" })
        }
        const found = yield* walk(root, {}, failing)
        assert.deepStrictEqual(problems(found), [
          ["a/f", { _tag: "Unreadable", code: "EIO" }],
          ["b/", { _tag: "Unreadable", code: "EIO" }],
          ["c/.gitignore", { _tag: "Unreadable", code: "EIO" }]
        ])
        assert.deepStrictEqual(filePaths(found), ["a/g"])
        assert.deepStrictEqual(
          found.filter(({ complete }) => !complete).map(({ path }) => path),
          ["b/", "c/"]
        )
      })
    )

    it.live("what disappears or changes its kind under the walk is none", () =>
      Effect.gen(function* () {
        const root = yield* tree({ "a/f": "x", "b/f": "x", c: "x", "d/f": "x" })
        const changing: FileSystem = {
          ...nodeFileSystem,
          list: (path) => {
            const names = nodeFileSystem.list(path)
            if (path === `${root}/a/`) {
              Fs.rmSync(`${root}/a/f`)
              Fs.rmSync(`${root}/b`, { recursive: true })
              Fs.writeFileSync(`${root}/b`, "now a file")
              Fs.rmSync(`${root}/d`, { recursive: true })
            }
            return names
          }
        }
        const found = yield* walk(root, {}, changing)
        assert.deepStrictEqual(problems(found), [])
        assert.deepStrictEqual(
          found.map(({ path }) => path),
          ["", "a/"]
        )
        assert.deepStrictEqual(filePaths(found), ["c"])
      })
    )
  })

  describe("gitignore", () => {
    const ignoring = tree({
      ".gitignore": "*.log\n!keep.log\n/build\n# comment\n\nsub/out/\n",
      "a.log": "",
      "keep.log": "",
      "build/f": "",
      "sub/build/f": "",
      "sub/out/f": "",
      "sub/.gitignore": "!a.log\n*.tmp\n/only\n",
      "sub/a.log": "",
      "sub/b.log": "",
      "sub/x.tmp": "",
      "sub/only": "",
      "sub/deep/only": "",
      "sub/deep/x.tmp": "",
      "A.LOG": ""
    })
    const kept = [".gitignore", "A.LOG", "keep.log", "sub/.gitignore", "sub/a.log", "sub/build/f", "sub/deep/only"]

    it.live("counts with all its files, from the root down", () =>
      Effect.gen(function* () {
        const root = yield* ignoring
        assert.deepStrictEqual((yield* walkFiles(root)).toSorted(), kept.toSorted())
        assert.strictEqual((yield* walkFiles(root, { gitignore: false })).length, 14)
      })
    )

    it.live("counts above the start of a walk", () =>
      Effect.gen(function* () {
        const root = yield* ignoring
        assert.deepStrictEqual(yield* walkFiles(root, { under: "sub/deep" }), ["sub/deep/only"])
        assert.deepStrictEqual(yield* walkFiles(root, { under: "sub/build/" }), ["sub/build/f"])
        for (const under of ["build/", "sub/out/", "none/", "keep.log", ".git/", "../", "sub/../sub/", "//"]) {
          assert.deepStrictEqual(yield* walk(root, { under }), [], under)
        }
        assert.deepStrictEqual(
          (yield* walk(root, { under: "sub/" })).map(({ path }) => path),
          ["sub/", "sub/build/", "sub/deep/"]
        )
      })
    )

    it.live("above the root does not count", () =>
      Effect.gen(function* () {
        const root = yield* tree({ ".gitignore": "*", "in/f": "" })
        assert.deepStrictEqual(yield* walkFiles(`${root}/in`), ["f"])
      })
    )

    it.live("decides on single paths as the walk does", () =>
      Effect.gen(function* () {
        const root = yield* ignoring
        const ignored = (path: string) => FileTree.isIgnored(root, path)
        for (const path of yield* walkFiles(root, { gitignore: false })) {
          assert.strictEqual(yield* ignored(path), !kept.includes(path), path)
        }
        for (const path of [
          "build/",
          "build/none/x",
          "sub/out/",
          ".git/",
          "a/.git/x",
          ".strata/db",
          "../x",
          "a//b",
          "x\ny"
        ]) {
          assert.isTrue(yield* ignored(path), path)
        }
        for (const path of ["", "sub/", "sub/out", "none/x", "sub/deep/"]) assert.isFalse(yield* ignored(path), path)
      })
    )
  })
})

/** Root may read everything, so the effect runs with the rights of another user. */
const asNobody = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  isRoot
    ? Effect.acquireUseRelease(
        Effect.sync(() => process.seteuid?.(65_534)),
        () => effect,
        () => Effect.sync(() => process.seteuid?.(0))
      )
    : effect
