import { assert, describe, it } from "@effect/vitest"
import { write } from "@strata/durable/DurableWriter"
import * as Postgres from "@strata/durable/testing/postgres"
import * as DeferredClockFold from "@strata/engine/DeferredClockFold"
import { DeferredStorage } from "@strata/engine/DeferredStorage"
import { FoldIncomplete } from "@strata/engine/FoldIncomplete"
import * as RunStream from "@strata/engine/RunStream"
import { Compaction } from "@strata/journal/Compaction"
import * as Event from "@strata/journal/Event"
import { Journal, JournalError } from "@strata/journal/Journal"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import * as Harness from "../src/testing/harness.ts"
import * as Tiers from "./stateTiers.ts"

/*
 * What a rebuild that fails has left: not a byte of the database is another one. On SQLite that is the file, with all of
 * its log in it; on Postgres every row of every table, with where it lies and which transaction wrote it.
 */

/** What the journal refers to is not there, one way each. */
const broken: ReadonlyArray<
  readonly [title: string, breakIt: Effect.Effect<unknown, unknown, Harness.Services>, expected: ReadonlyArray<object>]
> = [
  ["row_missing", replace("x", undefined), [{ kind: "row_missing", executionId: "r", deferred: "x" }]],
  [
    "digest_mismatch of an exit",
    replace("x", { exit: "2", metadata: '"by"' }),
    [{ kind: "digest_mismatch", executionId: "r", deferred: "x", part: "exit" }]
  ],
  [
    "digest_mismatch of metadata",
    replace("x", { exit: "1", metadata: null }),
    [{ kind: "digest_mismatch", executionId: "r", deferred: "x", part: "metadata" }]
  ],
  ["run_missing", Harness.schedule("none", "c", 5), [{ kind: "run_missing", executionId: "none" }]],
  [
    "all of them",
    Effect.all([Harness.schedule("none", "c", 5), replace("x", undefined), replace("y", { exit: "1", metadata: "3" })]),
    [
      { kind: "run_missing", executionId: "none" },
      { kind: "row_missing", executionId: "r", deferred: "x" },
      { kind: "digest_mismatch", executionId: "r", deferred: "y", part: "exit" },
      { kind: "digest_mismatch", executionId: "r", deferred: "y", part: "metadata" }
    ]
  ]
]

/** A run with clocks and deferreds, of which the rows are not what the journal says, so that a rebuild has work. */
const history = Effect.gen(function* () {
  yield* Harness.start("r")
  yield* Harness.schedule("r", "c", 5)
  yield* Harness.complete("r", "x", 1, "by")
  yield* Harness.complete("r", "y", 2)
  yield* Harness.consume("r", "x")
})

const suite = <E>(
  name: string,
  layer: Layer.Layer<Harness.Storages | SqlClient.SqlClient, E>,
  fingerprint: Effect.Effect<unknown, unknown, SqlClient.SqlClient>
) =>
  describe(`a rebuild that fails (${name})`, () => {
    const test = (
      title: string,
      body: Effect.Effect<void, unknown, Harness.Services | SqlClient.SqlClient>,
      services = Harness.services()
    ) => it.effect(title, () => Effect.provide(body, Layer.provideMerge(services, layer)))

    const unchangedBy = <A, E2, R>(effect: Effect.Effect<A, E2, R>) =>
      Effect.gen(function* () {
        const before = yield* fingerprint
        const error = yield* Effect.flip(effect)
        assert.deepStrictEqual(yield* fingerprint, before)
        return error
      })

    for (const [title, breakIt, expected] of broken) {
      test(
        `${title}: it lists all, and no byte is another one`,
        Effect.gen(function* () {
          yield* history
          yield* breakIt
          yield* Harness.wipe("r")
          for (const dryRun of [false, true]) {
            const error = yield* unchangedBy(DeferredClockFold.rebuild({ dryRun }))
            assert.sameDeepMembers([...(error instanceof FoldIncomplete ? error.unjoined : [error])], [...expected])
          }
        })
      )
    }

    test(
      "checkpoint_missing: it lists all, and no byte is another one",
      Effect.gen(function* () {
        yield* history
        yield* Compaction.use((compaction) => compaction.compact({ stream: RunStream.of("r"), seq: 3 }))
        yield* Harness.wipe("r")
        const error = yield* unchangedBy(DeferredClockFold.rebuild())
        assert.deepStrictEqual(error instanceof FoldIncomplete ? error.unjoined : error, [
          { kind: "checkpoint_missing", executionId: "r", floor: 3 }
        ])
      }),
      Harness.services({ fold: false })
    )

    test(
      "an entry that does not decode: no byte is another one",
      Effect.gen(function* () {
        yield* history
        yield* write(
          Journal.use((journal) => journal.append(RunStream.of("r"), [Event.json("clock-completed", { odd: true })]))
        )
        yield* Harness.wipe("r")
        assert.instanceOf(yield* unchangedBy(DeferredClockFold.rebuild()), JournalError)
      })
    )

    test(
      "one that succeeds changes bytes, and a dry run none",
      Effect.gen(function* () {
        yield* history
        yield* Harness.wipe("r")
        const before = yield* fingerprint
        yield* DeferredClockFold.rebuild({ dryRun: true })
        assert.deepStrictEqual(yield* fingerprint, before)
        yield* DeferredClockFold.rebuild()
        assert.notDeepEqual(yield* fingerprint, before)
      })
    )
  })

// ---------------------------------------------------------------------------------------------------------------------
// fingerprints
// ---------------------------------------------------------------------------------------------------------------------

const ofFile = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [log] = yield* sql<{ readonly busy: number }>`PRAGMA wal_checkpoint(TRUNCATE)`
  assert.strictEqual(log?.busy, 0)
  const [database] = yield* sql<{ readonly file: string }>`PRAGMA database_list`
  return createHash("sha256").update(readFileSync(database!.file)).digest("hex")
})

const ofTables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql<{ readonly name: string }>`
    SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename`
  return yield* Effect.forEach(tables, ({ name }) =>
    Effect.map(sql`SELECT ctid::TEXT, xmin::TEXT, t::TEXT AS row FROM ${sql(name)} AS t ORDER BY ctid`, (rows) => [
      name,
      rows
    ])
  )
})

suite("SQLite", Layer.unwrap(Effect.map(Tiers.tempFile, Tiers.onFile)), ofFile)

describe.skipIf(!Postgres.isAvailable())("Postgres", () => {
  suite("Postgres", Layer.provideMerge(Tiers.onSql, Postgres.layer), ofTables)
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Puts other values into the row of a completion, or removes it. */
function replace(name: string, values: { readonly exit: string; readonly metadata: string | null } | undefined) {
  return write(
    DeferredStorage.use((storage) =>
      Effect.gen(function* () {
        yield* storage.remove([{ executionId: "r", name }])
        if (values === undefined) return
        yield* storage.insert([{ executionId: "r", name, ...values, completedAt: 1, consumedAt: null }])
      })
    )
  )
}
