import { assert, describe, it } from "@effect/vitest"
import * as Postgres from "@strata/durable/testing/postgres"
import { PostgresClient } from "@strata/strata"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { randomUUID } from "node:crypto"

const parse = (text: string) => PostgresClient.parse(Redacted.make(text))

describe("PostgresClient.parse", () => {
  it.effect("takes a URL apart, and shows no credentials", () =>
    Effect.gen(function* () {
      const { name, schema, url } = yield* parse(
        "postgresql://ada:hunter2@db.example.com:5433/app?sslmode=require&schema=a%26b"
      )
      assert.deepStrictEqual([name, schema], ["postgres://db.example.com:5433/app?schema=a%26b", "a&b"])
      assert.strictEqual(Redacted.value(url), "postgresql://ada:hunter2@db.example.com:5433/app?sslmode=require")
      assert.isTrue(PostgresClient.isAddress("postgres://host/app"))
      assert.isFalse(PostgresClient.isAddress("postgres.db"))
    })
  )

  it.effect("refuses what is none, without a word of it", () =>
    Effect.gen(function* () {
      const wrong = [
        "hunter2.db",
        "postgres://",
        "postgres://u:%hunter2@host/app",
        "postgres://u:hunter2@host/app#part",
        "postgres://u:hunter2@host/app?schema=",
        "postgres://u:hunter2@host/app?sslmode=perhaps"
      ]
      for (const text of wrong) {
        const error = yield* Effect.flip(parse(text))
        assert.strictEqual(error.reason._tag, "AddressInvalid")
        assert.notInclude(`${error.message} ${JSON.stringify(error)}`, "hunter2")
      }
    })
  )
})

describe.skipIf(!Postgres.isAvailable())("PostgresClient.make", () => {
  const server = () => process.env["STRATA_TEST_POSTGRES"]!

  it.live("creates the schema it is given, once for many that come together, and none when it only reads", () =>
    Effect.gen(function* () {
      const schema = `Test "${randomUUID()}"`
      const url = Redacted.make(`${server()}?${new URLSearchParams({ schema })}`)
      const current = Effect.scoped(
        Effect.flatMap(PostgresClient.make({ url, maxConnections: 1 }), (sql) => sql`SELECT current_schema()`.values)
      )
      const reading = yield* PostgresClient.make({ url, maxConnections: 1, readonly: true })
      assert.deepStrictEqual(yield* reading`SELECT current_schema()`.values, [[null]])
      yield* Effect.addFinalizer(() =>
        Effect.orDie(
          Effect.scoped(
            Effect.flatMap(
              PostgresClient.make({ url: Redacted.make(server()) }),
              (sql) => sql`DROP SCHEMA ${sql(schema)}`
            )
          )
        )
      )
      const found = yield* Effect.all([current, current, current, current], { concurrency: "unbounded" })
      assert.deepStrictEqual(found, [[[schema]], [[schema]], [[schema]], [[schema]]])
      const error = yield* Effect.flip(reading`CREATE TABLE t (id INTEGER)`)
      assert.strictEqual(error._tag, "SqlError")
    })
  )
})
