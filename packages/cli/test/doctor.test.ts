import { assert, describe, it } from "@effect/vitest"
import * as Nginx from "@strata/cache/testing/nginx"
import * as Redis from "@strata/cache/testing/redis"
import * as S3 from "@strata/cache/testing/s3"
import * as Postgres from "@strata/durable/testing/postgres"
import { PostgresClient } from "@strata/strata"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { blackHole } from "./blackHole.ts"
import { makeFolder } from "./program.ts"
import { urlOf } from "./s3.ts"

const machine = Effect.acquireRelease(Effect.sync(makeFolder), (folder) => Effect.sync(() => folder.remove()))

interface Check {
  readonly subject: string
  readonly check: string
  readonly status: string
  readonly reason?: string
}

interface Outcome {
  readonly code: number
  readonly ok: boolean
  readonly checks: ReadonlyArray<Check>
}

/** Of one subject: what works, and what does not, with the reason. */
const told = ({ checks }: Outcome, subject: string) => {
  const of = (status: string) => checks.filter((check) => check.subject === subject && check.status === status)
  return {
    works: of("works").map(({ check }) => check),
    fails: of("fails").map(({ check, reason }) => `${check}: ${reason}`),
    unknown: of("unknown").map(({ check }) => check)
  }
}

const all = ["connect", "version", "clock", "latency", "read", "write", "delete", "arbitration"]
const reading = all.slice(0, 5)

const secret = "hunter2"

describe("strata doctor", { timeout: 60_000 }, () => {
  it.live("says of an index in a file what works, and that there is none", () =>
    Effect.gen(function* () {
      const { json, run, write } = yield* machine
      const none: Outcome = json(["doctor"])
      assert.strictEqual(none.code, 0)
      assert.deepStrictEqual(told(none, "database"), { works: [], fails: [], unknown: ["index"] })
      write("docs/a.md", "# a")
      run(["index", "docs"])
      const some: Outcome = json(["doctor"])
      assert.deepStrictEqual([some.code, some.ok], [0, true])
      assert.deepStrictEqual(told(some, "database").works, ["open", "latency", "index", "write"])
      write("other.db", "this is no database, and long enough to be taken for one".repeat(20))
      const broken: Outcome = json(["doctor", "--database", "other.db"])
      assert.deepStrictEqual([broken.code, broken.ok], [3, false])
      assert.lengthOf(told(broken, "database").fails, 1)
    })
  )

  it.live("ends within seconds when nothing answers", () =>
    Effect.gen(function* () {
      const { json } = yield* machine
      const { port } = yield* blackHole
      const start = performance.now()
      for (const scheme of ["http", "redis", "postgres"]) {
        const { code, ...outcome }: Outcome = json(["doctor", "--shared", `${scheme}://127.0.0.1:${port}/0`])
        assert.strictEqual(code, 3)
        const { fails, unknown, works } = told({ code, ...outcome }, "shared")
        assert.match(fails.join(), /^connect: (TimedOut|Unreachable)$/)
        assert.deepStrictEqual([...works, ...unknown], [])
      }
      const store: Outcome = json(["doctor", "--database", `postgres://u:${secret}@127.0.0.1:${port}/db`])
      assert.deepStrictEqual([store.code, told(store, "database").fails.length], [3, 1])
      assert.isBelow(performance.now() - start, 25_000)
    })
  )
})

describe.skipIf(!Effect.runSync(Nginx.isInstalled))("strata doctor over HTTP", { timeout: 60_000 }, () => {
  it.live("leaves at most a blob of no bytes, and tells what the protocol cannot", () =>
    Effect.gen(function* () {
      const { json } = yield* machine
      const server = yield* Nginx.make()
      const readOnly: Outcome = json(["doctor", "--shared", server.url, "--read-only"])
      assert.deepStrictEqual([readOnly.code, told(readOnly, "shared").works], [0, reading])
      assert.deepStrictEqual(readdirSync(server.root), [])
      const outcome: Outcome = json(["doctor", "--shared", server.url])
      assert.strictEqual(outcome.code, 0)
      assert.deepStrictEqual(told(outcome, "shared"), {
        works: [...reading, "write", "arbitration"],
        fails: [],
        unknown: ["delete"]
      })
      assert.lengthOf(readdirSync(join(server.root, "cas")), 1)
    })
  )
})

describe.skipIf(!Effect.runSync(Redis.isInstalled))("strata doctor on Redis", { timeout: 60_000 }, () => {
  it.live("tells a tier that works from one with a wrong password, and from a user who may only read", () =>
    Effect.gen(function* () {
      const { json, run } = yield* machine
      const readers = "+getrange +strlen +exists +get +select +ping +hello +client"
      const server = yield* Redis.make({
        settings: [
          ["requirepass", secret],
          ["user", "reader", "on", `>${secret}`, "~*", "-@all", ...readers.split(" ")]
        ]
      })
      const at = (userInfo: string) => server.url.replace("//", `//${userInfo}@`)
      const outcome: Outcome = json(["doctor", "--shared", at(`:${secret}`)])
      assert.strictEqual(outcome.code, 0)
      assert.deepStrictEqual(told(outcome, "shared"), { works: all, fails: [], unknown: [] })

      const wrong = run(["doctor", "--shared", at(":not-the-password")])
      assert.strictEqual(wrong.code, 3)
      assert.match(wrong.out, /^ {2}fails +connect +\S+ refuses access \[Forbidden\]$/m)
      assert.notInclude(wrong.out + wrong.err, "not-the-password")

      const reader: Outcome = json(["doctor", "--shared", at(`reader:${secret}`)])
      assert.strictEqual(reader.code, 3)
      assert.deepStrictEqual(told(reader, "shared"), {
        works: ["connect", "latency", "read"],
        fails: ["write: Forbidden"],
        unknown: ["version", "clock", "delete", "arbitration"]
      })
      const asReader: Outcome = json(["doctor", "--shared", at(`reader:${secret}`), "--read-only"])
      assert.deepStrictEqual([asReader.code, told(asReader, "shared").fails], [0, []])
      assert.notInclude(JSON.stringify([outcome, reader, asReader]), secret)
    })
  )
})

describe.skipIf(!Effect.runSync(S3.isInstalled))("strata doctor on S3", { timeout: 60_000 }, () => {
  it.live("says what works, with credentials in no word of it", () =>
    Effect.gen(function* () {
      const { json } = yield* machine
      const url = urlOf((yield* S3.make).options)
      const outcome: Outcome = json(["doctor", "--shared", url])
      assert.strictEqual(outcome.code, 0)
      assert.deepStrictEqual(told(outcome, "shared"), { works: all, fails: [], unknown: [] })
      assert.notInclude(JSON.stringify(outcome), "nobody-checks-it")
    })
  )
})

describe.skipIf(!Postgres.isAvailable())("strata doctor on Postgres", { timeout: 60_000 }, () => {
  const server = () => process.env["STRATA_TEST_POSTGRES"]!

  /** A user who may read what is in a schema, for as long as the scope is open. */
  const reader = Effect.fnUntraced(function* (schema: string) {
    const sql = yield* PostgresClient.make({ url: Redacted.make(server()), maxConnections: 1 })
    const user = `reader_${schema.slice(-8)}`
    const execute = (statement: string) => sql.unsafe(statement).unprepared
    yield* Effect.acquireRelease(execute(`CREATE ROLE ${user} LOGIN PASSWORD '${secret}'`), () =>
      Effect.orDie(Effect.andThen(execute(`DROP OWNED BY ${user}`), execute(`DROP ROLE ${user}`)))
    )
    yield* execute(`GRANT USAGE ON SCHEMA ${schema} TO ${user}`)
    yield* execute(`GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${user}`)
    const url = new URL(server())
    url.username = user
    url.password = secret
    return url
  })

  it.live("tells a database and a tier that work from those that this user may only read", () =>
    Effect.gen(function* () {
      const { json, run, write } = yield* machine
      const schema = yield* Postgres.schema
      const url = `${server()}?schema=${schema}`
      const fresh: Outcome = json(["doctor", "--database", url])
      assert.strictEqual(fresh.code, 0)
      assert.deepStrictEqual(told(fresh, "database"), {
        works: ["connect", "version", "latency", "clock", "wakes", "read", "write"],
        fails: [],
        unknown: ["index"]
      })
      const sql = yield* PostgresClient.make({ url: Redacted.make(url), maxConnections: 1 })
      const tables = sql`SELECT count(*)::INTEGER FROM pg_tables WHERE schemaname = current_schema()`.values
      assert.deepStrictEqual(yield* tables, [[0]])

      write("docs/a.md", "# a")
      assert.strictEqual(run(["index", "docs", "--database", url]).code, 0)
      const both: Outcome = json(["doctor", "--database", url, "--shared", url])
      assert.strictEqual(both.code, 0)
      assert.deepStrictEqual([told(both, "database").fails, told(both, "shared").works], [[], all])
      const left =
        yield* sql`SELECT (SELECT count(*) FROM strata_shared_entry) + (SELECT count(*) FROM strata_shared_blob)`.values
      assert.deepStrictEqual(
        left.map(([count]) => Number(count)),
        [0]
      )

      const asReader = yield* reader(schema)
      asReader.search = new URL(url).search
      const limited: Outcome = json(["doctor", "--database", asReader.href, "--shared", asReader.href])
      assert.strictEqual(limited.code, 3)
      assert.deepStrictEqual(told(limited, "database").fails, ["write: Forbidden"])
      assert.deepStrictEqual(told(limited, "shared").fails, ["write: Forbidden"])
      const reading: Outcome = json(["doctor", "--shared", asReader.href, "--read-only"])
      assert.deepStrictEqual([reading.code, told(reading, "shared").fails], [0, []])
      assert.notInclude(JSON.stringify([both, limited, reading]), secret)

      asReader.password = "not-the-password"
      const wrong: Outcome = json(["doctor", "--database", asReader.href, "--shared", asReader.href])
      assert.deepStrictEqual(
        [wrong.code, told(wrong, "database").fails, told(wrong, "shared").fails],
        [3, ["connect: AuthenticationError"], ["connect: Forbidden"]]
      )
      assert.notInclude(JSON.stringify(wrong), "not-the-password")
    })
  )
})
