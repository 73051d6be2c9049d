/** Shared caches behind a line that stops in the middle of an answer, or drips: contract 44. */
import { assert, describe, it } from "@effect/vitest"
import * as Nginx from "@strata/cache/testing/nginx"
import * as Redis from "@strata/cache/testing/redis"
import * as S3 from "@strata/cache/testing/s3"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Effect from "effect/Effect"
import { afterEach } from "vitest"
import * as Proxy from "../../cache/test/support/proxy.ts"
import { type Folder, makeFolder } from "./program.ts"
import { urlOf } from "./s3.ts"

const folders: Array<Folder> = []

afterEach(() => {
  for (const folder of folders.splice(0)) folder.remove()
})

const files = 50

/** A machine with a tree of texts, each of which is more than a line lets through. */
const machine = (): Folder => {
  const folder = makeFolder()
  folders.push(folder)
  for (let i = 0; i < files; i++) {
    folder.write(`docs/f${i}.md`, `# Title ${i}\n\n${`some words number ${i} `.repeat(400)}\n`)
  }
  return folder
}

/** What `index` prints, while this process goes on. */
const index = (folder: Folder, shared: string) =>
  Effect.promise(
    () =>
      new Promise<Record<string, unknown>>((resolve, reject) => {
        const child = folder.start(["index", "docs", "--json", "--shared", shared])
        const begin = performance.now()
        let out = ""
        child.stdout!.on("data", (data) => (out += String(data)))
        child.once("close", (code) => {
          try {
            const printed: Record<string, unknown> = JSON.parse(out.trim().split("\n").at(-1) ?? "")
            resolve({ ...printed, code, ms: performance.now() - begin })
          } catch (cause) {
            reject(new Error(`it printed no JSON: ${out}`, { cause }))
          }
        })
      })
  )

/** A proxy before a server, and the address of it. */
const through = Effect.fnUntraced(function* (server: string, usualPort: number) {
  const url = new URL(server)
  const proxy = yield* Proxy.make({ host: url.hostname, port: url.port === "" ? usualPort : Number(url.port) })
  // The port first: this host is no name of the protocols that URLs know.
  url.port = `${proxy.port}`
  url.hostname = "127.0.0.1"
  return { proxy, url: url.href }
})

const tiers = [
  {
    name: "HTTP",
    isAvailable: Effect.runSync(Nginx.isInstalled),
    make: Effect.flatMap(Nginx.make(), ({ url }) => through(url, 80))
  },
  {
    name: "Redis",
    isAvailable: Effect.runSync(Redis.isInstalled),
    make: Effect.flatMap(Redis.make(), ({ url }) => through(url, 6379))
  },
  {
    name: "Postgres",
    isAvailable: Postgres.isAvailable(),
    make: Effect.flatMap(Postgres.schema, (schema) =>
      through(`${process.env["STRATA_TEST_POSTGRES"]}?schema=${schema}`, 5432)
    )
  },
  {
    name: "S3",
    isAvailable: Effect.runSync(S3.isInstalled),
    make: Effect.flatMap(S3.make, ({ options }) =>
      Effect.map(through(String(options.endpoint), 80), ({ proxy, url }) => ({
        proxy,
        url: urlOf({ ...options, endpoint: url.replace(/\/$/, "") })
      }))
    )
  }
]

for (const { isAvailable, make, name } of tiers) {
  describe.skipIf(!isAvailable)(`a shared cache on ${name}`, { timeout: 120_000 }, () => {
    it.live("does not hold index up for long when it stops in the middle of an answer, or drips", () =>
      Effect.gen(function* () {
        const { proxy, url } = yield* make
        const { ms: workMs, ...first } = yield* index(machine(), url)
        assert.deepInclude(first, { code: 0, indexed: files })
        for (const answers of [Proxy.stall(4000), Proxy.slow(4000, 1, 1000)]) {
          proxy.answers = answers
          const { ms, ...printed } = yield* index(machine(), url)
          assert.deepInclude(printed, { code: 0, indexed: files, failed: 0 })
          // Two rounds of lookups at most, as some that follow are under way before the tier is left alone.
          assert.isBelow(Number(ms) - Number(workMs), 8000)
        }
      })
    )
  })
}
