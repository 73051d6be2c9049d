import { assert, describe, it } from "@effect/vitest"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** One write of one of the fibers. Times are counted in yields, in which the other fibers go on. */
const Step = Schema.Struct({
  /** Before the write. */
  delay: Schema.Literals([0, 0, 0, 1, 2]),
  rows: Schema.Literals([1, 2, 3]),
  /** After each row. */
  pause: Schema.Literals([0, 0, 0, 0, 1, 2]),
  end: Schema.Literals(["succeed", "succeed", "succeed", "nested", "fail", "die", "clash"]),
  /** When the write is interrupted from outside, if it has not ended by then; -1 for never. */
  interruptAfter: Schema.Literals([-1, -1, -1, -1, 0, 1, 2, 3, 5, 8])
})

type Step = typeof Step.Type

const ends: ReadonlyArray<Step["end"]> = ["succeed", "nested"]

const yields = (count: number) =>
  Effect.repeat(Effect.yieldNow, { times: count }).pipe(Effect.when(Effect.succeed(count > 0)))

const layer = Layer.unwrap(
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-model-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    ),
    (folder) => {
      const client = SqliteClient.layer({ filename: join(folder, "test.db"), synchronous: "OFF" })
      return Layer.mergeAll(DurableWriter.layer(), SqliteClient.layerReader).pipe(Layer.provideMerge(client))
    }
  )
)

const createTables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE row (id INTEGER PRIMARY KEY)`
  yield* sql`INSERT INTO row VALUES (-1)`
  yield* sql`CREATE TABLE total (n INTEGER NOT NULL)`
  yield* sql`INSERT INTO total VALUES (0)`
})

/** What became of a write. */
interface Seen {
  bodies: number
  hooks: number
  readonly ids: ReadonlyArray<number>
}

const body = (step: Step, seen: Seen) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    seen.bodies++
    yield* DurableWriter.afterCommit(Effect.sync(() => void seen.hooks++))
    const [total] = yield* sql<{ readonly n: number }>`SELECT n FROM total`
    const rows = Effect.forEach(
      seen.ids,
      (id) => Effect.andThen(sql`INSERT INTO row VALUES (${id})`, yields(step.pause)),
      { discard: true }
    )
    if (step.end === "nested") {
      const lost = Effect.andThen(sql`INSERT INTO row VALUES (${-100 - seen.ids[0]!})`, Effect.fail("lost"))
      yield* Effect.exit(DurableWriter.write(lost))
      yield* DurableWriter.write(rows)
    } else {
      yield* rows
    }
    yield* sql`UPDATE total SET n = ${total!.n + 1}`
    if (step.end === "fail") return yield* Effect.fail("no")
    if (step.end === "die") return yield* Effect.die("bug")
    if (step.end === "clash") yield* sql`INSERT INTO row VALUES (-1)`
  })

/** Does one write, interrupts it when the step says so, and looks whether a reader sees what was reported. */
const perform = Effect.fnUntraced(function* (step: Step, seen: Seen) {
  yield* yields(step.delay)
  const fiber = yield* Effect.forkChild(DurableWriter.write(body(step, seen)), { startImmediately: true })
  if (step.interruptAfter >= 0) {
    yield* yields(step.interruptAfter)
    yield* Fiber.interrupt(fiber)
  }
  const exit = yield* Fiber.await(fiber)
  const reader = yield* SqliteClient.SqliteReader
  const found = yield* reader`SELECT id FROM row WHERE ${reader.in("id", seen.ids)}`
  assert.isAtMost(seen.bodies, 1, "a body ran again")
  if (Exit.isSuccess(exit)) {
    assert.isTrue(ends.includes(step.end))
    assert.deepStrictEqual([seen.hooks, found.length], [1, seen.ids.length])
  } else if (Cause.hasInterrupts(exit.cause)) {
    // The interruption may have come when the write had ended, but then all of it had.
    assert.isAtLeast(step.interruptAfter, 0)
    assert.strictEqual(found.length, seen.hooks * seen.ids.length)
  } else {
    assert.isFalse(ends.includes(step.end))
    assert.deepStrictEqual([seen.hooks, found.length], [0, 0])
  }
})

describe("many writes at once", () => {
  it.live.prop(
    "leave what a model says, whatever fails, dies or is interrupted, and run no body twice",
    { fibers: Schema.Array(Schema.Array(Step).check(Schema.isMaxLength(6))).check(Schema.isMaxLength(16)) },
    ({ fibers }) =>
      Effect.gen(function* () {
        yield* createTables
        let id = 0
        const all: Array<Seen> = []
        const plans = fibers.map((steps) =>
          steps.map((step) => {
            const seen: Seen = { bodies: 0, hooks: 0, ids: Array.from({ length: step.rows }, () => id++) }
            all.push(seen)
            return { step, seen }
          })
        )
        yield* Effect.forEach(
          plans,
          (steps) => Effect.forEach(steps, ({ seen, step }) => perform(step, seen), { discard: true }),
          { concurrency: "unbounded", discard: true }
        )
        const committed = all.filter((seen) => seen.hooks === 1)
        const sql = yield* SqlClient.SqlClient
        const rows = yield* sql<{ readonly id: number }>`SELECT id FROM row WHERE id <> -1 ORDER BY id`
        assert.deepStrictEqual(
          rows.map((row) => row.id),
          committed.flatMap((seen) => seen.ids).toSorted((a, b) => a - b)
        )
        assert.deepStrictEqual(yield* sql`SELECT n FROM total`, [{ n: committed.length }])
        // Whatever happened, the writer works.
        yield* DurableWriter.write(sql`INSERT INTO row VALUES (-2)`)
      }).pipe(Effect.provide(layer)),
    { arbitrary: { runs: 120, seed: 11 } }
  )
})
