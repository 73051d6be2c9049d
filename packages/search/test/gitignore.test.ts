import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { execFileSync, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as FileTree from "../src/FileTree.ts"

const hasGit = spawnSync("git", ["--version"]).status === 0

const files = [
  "a",
  "b.log",
  "x/a",
  "x/b.log",
  "x/y/a",
  "x/y/c d",
  "x/y/z/b.log",
  "x [1]/a",
  "x [1]/y/a",
  "y/x/a",
  "y/b"
]

const Pattern = Schema.Literals([
  "a",
  "/a",
  "x",
  "x/",
  "/x",
  "/x/",
  "y/",
  "*.log",
  "*",
  "/*",
  "**",
  "**/a",
  "x/**",
  "x/*",
  "x/y",
  "y/a",
  "/y/a",
  "z/b.log",
  "**/y/a",
  "?",
  "[ab]*",
  "c d",
  "c\\ d",
  "a  ",
  "x \\[1\\]/",
  "#a",
  "\\#a",
  "",
  "/",
  "!a",
  "!/a",
  "!x",
  "!x/",
  "!*.log",
  "!y/",
  "!y/a",
  "!*/",
  "!**/b.log",
  "!x/**",
  "!z/b.log",
  "!b"
])

const Patterns = Schema.Array(Pattern)

const temporary = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "strata-ignore-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

const gitFiles = (root: string): ReadonlyArray<string> =>
  execFileSync("git", ["ls-files", "--others", "--exclude-standard", "-z"], {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" }
  })
    .split("\0")
    .filter((path) => path !== "")
    .toSorted()

describe("gitignore", () => {
  it.effect.prop(
    "ignores what git ignores",
    { root: Patterns, x: Patterns, y: Patterns, odd: Patterns },
    (patterns, context) =>
      Effect.gen(function* () {
        if (!hasGit) return context.skip("git is not installed")
        const root = yield* temporary
        for (const file of files) {
          Fs.mkdirSync(Path.dirname(`${root}/${file}`), { recursive: true })
          Fs.writeFileSync(`${root}/${file}`, "")
        }
        for (const [directory, lines] of [
          ["", patterns.root],
          ["x/", patterns.x],
          ["x/y/", patterns.y],
          ["x [1]/", patterns.odd]
        ] as const) {
          if (lines.length > 0) Fs.writeFileSync(`${root}/${directory}.gitignore`, `${lines.join("\n")}\n`)
        }
        execFileSync("git", ["init", "--quiet"], { cwd: root })
        const found = yield* Stream.runCollect(FileTree.walk(root))
        assert.deepStrictEqual(found.flatMap(({ files }) => files.map(({ path }) => path)).toSorted(), gitFiles(root))
      }).pipe(Effect.scoped),
    { timeout: 60_000, arbitrary: { runs: 60 } }
  )
})
