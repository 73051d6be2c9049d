import type { D1Client } from "@effect/sql-d1/D1Client"
import * as D1 from "@strata/durable/D1"
import * as Rows from "@strata/durable/Rows"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Migrator from "effect/sql/Migrator"
import type { Row } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import type { Statement } from "effect/sql/Statement"
import type { Change, ChangelogOptions } from "../Changelog.ts"
import { ChangeSignal } from "../ChangeSignal.ts"
import type { D1Changelog } from "../D1Changelog.ts"
import * as Service from "./changelogService.ts"
import { migrationsSqlite } from "./schema.ts"
import * as SqliteChangelog from "./sqliteChangelog.ts"
import * as Statements from "./statements.ts"

export const make = Effect.fnUntraced(function* (
  options: ChangelogOptions = {}
): Effect.fn.Return<D1Changelog["Service"], SqlError | Migrator.MigrationError, D1Client | ChangeSignal> {
  yield* D1.migrate(migrationsSqlite)
  const d1 = yield* D1.make
  const signal = yield* ChangeSignal
  const storage = SqliteChangelog.single(d1.run)
  const now = options.clock === "effect" ? Clock.currentTimeMillis : storage.databaseTime
  const record = recordIn(d1, now, signal)
  return {
    record: Effect.fn("D1Changelog.record")((changes) => Effect.map(record(changes, []), ({ range }) => range)),
    recordWith: Effect.fn("D1Changelog.recordWith")(record),
    read: Service.read(storage),
    prune: Service.prune(storage, (effect) => effect)
  }
})

const recordIn = (d1: D1.D1, now: Effect.Effect<number, SqlError>, signal: ChangeSignal["Service"]) =>
  Effect.fnUntraced(function* (changes: ReadonlyArray<Change>, statements: ReadonlyArray<Statement<Row>>) {
    const refused = Service.refusedAmong(changes)
    if (refused !== undefined) return yield* refused
    const pieces = D1.pieces(Service.toStored(changes).map(SqliteChangelog.encodeChange), pieceSize)
    if (pieces.length === 0) return { range: Option.none(), results: yield* d1.batch(statements) }
    const at = yield* now
    const results = yield* d1.batch([
      ...statements,
      ...pieces.map((piece) => d1.prepare(Statements.appendChanges, [piece, at])),
      d1.prepare(Statements.lastSeq)
    ])
    yield* signal.notify
    const [last] = D1.values(results.at(-1))
    const seq = Rows.integer(last?.[0])
    return {
      range: Option.some({ first: seq - changes.length + 1, last: seq }),
      results: results.slice(0, statements.length)
    }
  })

/** How many changes a statement is given at most. */
const pieceSize = 10_000
