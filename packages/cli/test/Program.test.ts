import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as TestConsole from "effect/testing/TestConsole"
import { readFileSync } from "node:fs"
import { ExitCode } from "../src/ExitCode.ts"
import * as Platform from "../src/Platform.ts"
import { run } from "../src/Program.ts"
import { version } from "../src/Version.ts"

const execute = (...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const code = yield* run(args)
    return {
      code,
      out: (yield* TestConsole.logLines).map(String),
      err: (yield* TestConsole.errorLines).map(String)
    }
  }).pipe(Effect.provide(Platform.layer))

describe("Program", () => {
  it.effect("prints the version of its package", () =>
    Effect.gen(function* () {
      const { code, out } = yield* execute("--version")
      assert.strictEqual(code, ExitCode.done)
      assert.match(out.join("\n"), new RegExp(`strata v${version}`))
      const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))
      assert.strictEqual(version, manifest.version)
    })
  )

  it.effect("lists every command in the help, on stdout", () =>
    Effect.gen(function* () {
      const { code, err, out } = yield* execute("--help")
      assert.strictEqual(code, ExitCode.done)
      assert.deepStrictEqual(err, [])
      for (const name of ["index", "search", "watch", "status", "retry", "rebuild", "verify"]) {
        assert.match(out.join("\n"), new RegExp(`^ +${name} +\\S`, "m"))
      }
      const codes = [...out.join("\n").matchAll(/(?:codes:|;) (\d+) /g)].map(([, code]) => Number(code))
      assert.deepStrictEqual(codes, Object.values(ExitCode))
    })
  )

  it.effect.each(["bash", "zsh", "fish", "powershell"])("prints completions for %s", (shell) =>
    Effect.gen(function* () {
      const { code, out } = yield* execute("--completions", shell)
      assert.strictEqual(code, ExitCode.done)
      assert.include(out.join("\n"), "path-prefix")
    })
  )

  const wrongTiers: ReadonlyArray<readonly [url: string, words: RegExp]> = [
    ["nonsense", /a URL is wanted/],
    ["ftp://u:hunter2@host/x", /not one of http/],
    ["http://u:hunter2@host/", /STRATA_SHARED_TOKEN/],
    ["https://host/?token=hunter2", /query/],
    ["redis://:hunter2@host/first", /number of a database/],
    ["redis://:hunter2@host?db=1", /parameter/],
    ["postgres://:hunter2@host/db", /no user/],
    ["postgres://u:hunter2@host/db?prefix=A-B", /prefix/],
    ["postgres://u:hunter2@host/db?shcema=a", /not known: shcema$/],
    ["s3://id:hunter2@bucket?acl=public", /parameter/],
    ["s3://:hunter2@bucket", /half of the credentials/]
  ]

  const wrongNumbers: ReadonlyArray<readonly [args: string, words: RegExp]> = [
    ["search a --limit many", /flag --limit: "many"\. Expected: a whole number from 0 to 10000$/],
    ["search a -n 1.5", /flag --limit: "1\.5"\. Expected: a whole number from 0 to 10000$/],
    ["journal --limit 1e3", /flag --limit: "1e3"\. Expected: a whole number from 0 to 100000$/],
    ["runs list --limit -1", /flag --limit: "-1"\. Expected: a whole number from 0 to 100000$/],
    ["runs rewind id end", /argument <SEQ>: "end"\. Expected: a whole number from 0 to 9007199254740991$/],
    ["cache gc --max-age old", /flag --max-age: "old"\. Expected: a whole number from 0 to 36500$/],
    ["cache gc --max-size 1GB", /flag --max-size: "1GB"\. Expected: a whole number from 0 to 1073741824$/]
  ]

  const wrong: ReadonlyArray<{ readonly args: ReadonlyArray<string>; readonly tag: string; readonly words: RegExp }> = [
    { args: [], tag: "MissingCommand", words: /which command/ },
    { args: ["serch", "x"], tag: "UnknownSubcommand", words: /serch.*Did you mean this\? search/ },
    { args: ["search"], tag: "MissingArgument", words: /QUERY/ },
    { args: ["status", "b"], tag: "UnexpectedArgument", words: /"b"/ },
    { args: ["search", "a", "--limt", "3"], tag: "UnrecognizedOption", words: /--limt/ },
    { args: ["search", "a", "--limit", "-1"], tag: "InvalidValue", words: /0 to 10000/ },
    ...wrongNumbers.map(([args, words]) => ({ args: args.split(" "), tag: "InvalidValue", words })),
    { args: ["index"], tag: "MissingArgument", words: /DIR/ },
    { args: ["index", "/no/such/directory"], tag: "MissingDirectory", words: /\/no\/such\/directory/ },
    { args: ["index", "."].concat("--no-force"), tag: "UnrecognizedOption", words: /--no-force/ },
    {
      args: ["watch", "/no/such/directory"],
      tag: "InvalidValue",
      words: /^(strata: )?Path does not exist: \/no\/such\/d/
    },
    { args: ["status", "--database", "/"], tag: "DatabaseInvalid", words: /--database: \/ is a directory/ },
    { args: ["status", "--database", ""], tag: "DatabaseInvalid", words: /the name of a file, or a URL/ },
    {
      args: ["status", "--database", "mysql://u:hunter2@h/d"],
      tag: "DatabaseInvalid",
      words: /postgres:\/\/, is wanted/
    },
    { args: ["status", "--database", "postgres://u:%hunter2@h/d"], tag: "DatabaseInvalid", words: /not encoded/ },
    {
      args: ["status", "--database", "postgres://u:hunter2@h/d?schema=a&shcema=b"],
      tag: "DatabaseInvalid",
      words: /--database: .* not known: shcema$/
    },
    {
      args: ["status", "--database", "postgres://u@h/d?schema=a&password=x&hunter2"],
      tag: "DatabaseInvalid",
      words: /a parameter that is not known$/
    },
    { args: ["status", "redis://:hunter2@host"], tag: "UnexpectedArgument", words: /redis:\/\/…@host/ },
    ...wrongTiers.map(([url, words]) => ({ args: ["index", ".", "--shared", url], tag: "SharedTierInvalid", words }))
  ]

  it.effect.each(wrong)("refuses $args with exit code 2 and one line of why, on stderr", ({ args, words }) =>
    Effect.gen(function* () {
      const { code, err, out } = yield* execute(...args)
      assert.strictEqual(code, ExitCode.usage)
      assert.deepStrictEqual(out, [])
      assert.match(err[0]!, /^strata: /)
      assert.match(err[0]!, words)
      assert.notInclude(err[0]!, "\n")
      assert.notInclude(err.join("\n"), "hunter2")
      assert.notMatch(err.join("\n"), /^\s+at /m)
    })
  )

  it.effect.each(wrong)("refuses $args --json with one object on stdout", ({ args, tag, words }) =>
    Effect.gen(function* () {
      const { code, err, out } = yield* execute(...args, "--json")
      assert.strictEqual(code, ExitCode.usage)
      assert.deepStrictEqual(err, [])
      assert.lengthOf(out, 1)
      const { error } = JSON.parse(out[0]!)
      assert.strictEqual(error.tag, tag)
      assert.match(error.message, words)
      assert.notInclude(out.join("\n"), "hunter2")
    })
  )

  it.effect("refuses what its circumstances do not allow with exit code 3, naming the file", () =>
    Effect.gen(function* () {
      const args = ["status", "--database", "/no/such/file.db"]
      assert.deepStrictEqual(yield* execute(...args), {
        code: ExitCode.environment,
        out: [],
        err: ["strata: there is no index at /no/such/file.db: create it with strata index DIR --database FILE"]
      })
      const { code, out } = yield* execute(...args, "--json")
      assert.strictEqual(code, ExitCode.environment)
      assert.strictEqual(JSON.parse(out[0]!).error.tag, "DatabaseFileError")
    })
  )

  it.effect("says how to pass a query that begins with a dash", () =>
    Effect.gen(function* () {
      const { code, err } = yield* execute("search", "-foo")
      assert.strictEqual(code, ExitCode.usage)
      assert.match(err[0]!, /^strata: Unrecognized flag: -f in command strata search[^;]*$/)
      assert.include(err.join("\n"), "begins with a dash, put -- before it: strata search -- QUERY")
    })
  )

  it.effect.each(["-foo", "--help", "--json", "--database", "-", "--", "", "a\nb", "*"])(
    "takes %j for a query after two dashes",
    (query) =>
      Effect.gen(function* () {
        const { code, err } = yield* execute("search", "--database", "/no/such/file.db", "--", query)
        assert.strictEqual(code, ExitCode.environment)
        // It got as far as the database: the query was accepted.
        assert.match(err[0]!, /no index at/)
      })
  )

  it.effect("creates no database for a command that only reads", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped()
      yield* execute("search", "x", "--database", `${folder}/a/strata.db`)
      assert.isFalse(yield* fs.exists(`${folder}/a`))
    }).pipe(Effect.provide(Platform.layer))
  )
})
