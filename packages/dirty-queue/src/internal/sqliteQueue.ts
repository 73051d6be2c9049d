import * as Migrations from "@strata/durable/Migrations"
import * as Effect from "effect/Effect"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { DirtyQueueStorage, Receipt, StoredClaim } from "../DirtyQueueStorage.ts"
import { migrationsSqlite } from "./schema.ts"
import * as Rows from "@strata/durable/Rows"
import { filterOf, filterParameters, findRegistration, single } from "./sqliteSingle.ts"
import * as Statements from "./statements.ts"
import {
  byPlace,
  chunkSize,
  encodeFailure,
  encodeReceipt,
  firstOfEach,
  toAnswers,
  toClaim,
  toRegistration
} from "./storedRows.ts"

export const make: Effect.Effect<DirtyQueueStorage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =
  Effect.gen(function* () {
    yield* Migrations.run(migrationsSqlite)
    const run = yield* Rows.run
    return {
      ...registry(run),
      ...intake(run),
      claim: claim(run),
      ...answers(run),
      ...single(run),
      ...epochs(run)
    }
  })

// ---------------------------------------------------------------------------------------------------------------------
// registrations
// ---------------------------------------------------------------------------------------------------------------------

const registry = (run: Rows.Run): Pick<DirtyQueueStorage, "register" | "unregister"> => {
  const find = findRegistration(run)
  return {
    register: Effect.fnUntraced(function* (_now, { follower, prefix, scope }) {
      const [registered] = yield* find(follower, scope)
      if (registered !== undefined) {
        return { registration: registered, created: false }
      }
      const [row] = yield* run(Statements.insertRegistration, [follower, scope, prefix])
      return { registration: toRegistration(row!), created: true }
    }),

    unregister: Effect.fnUntraced(function* (_now, { follower, scope }) {
      const [registered] = yield* find(follower, scope)
      if (registered === undefined) return 0
      const rows = yield* run(Statements.deleteRows, [registered.id])
      yield* run(Statements.deleteRegistration, [registered.id])
      return rows.length
    })
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// backfill and revival
// ---------------------------------------------------------------------------------------------------------------------

const draw = (run: Rows.Run) => Effect.map(run(Statements.drawVersion), ([row]) => Rows.integer(row?.[0]))

const intake = (run: Rows.Run): Pick<DirtyQueueStorage, "enqueue" | "revive"> => ({
  enqueue: Effect.fnUntraced(function* (now, { paths, registration }) {
    const version = yield* draw(run)
    yield* Rows.inChunks(paths, chunkSize, (chunk) =>
      run(Statements.enqueue, [registration, JSON.stringify(chunk), version, now])
    )
  }),

  revive: Effect.fnUntraced(function* (now, options) {
    const version = yield* draw(run)
    const filter = { ...filterOf(options), path: options.path !== undefined }
    const parameters = [version, now, options.prefix, ...filterParameters(options)]
    const rows = yield* run(
      Statements.revive(filter),
      options.path === undefined
        ? parameters
        : [version, now, options.prefix, options.follower ?? null, options.scope ?? null, options.path]
    )
    return rows.length
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// claims and answers
// ---------------------------------------------------------------------------------------------------------------------

const claim = (run: Rows.Run): DirtyQueueStorage["claim"] =>
  Effect.fnUntraced(function* (now, options) {
    const [found] = yield* run(Statements.peek, [options.follower, options.scope])
    if (found === undefined) return undefined
    const registration = Rows.integer(found[0])
    const credit = Rows.integer(found[1])
    const ready = (column: number) => found[column] !== null && Rows.integer(found[column]) <= now
    const live = ready(2)
    const backfill = ready(3)
    const claims: Array<StoredClaim> = []
    let dead = 0
    if (options.limit <= 0 || !(live || backfill)) return { claims, dead }

    const token = yield* draw(run)
    /** Takes rows of one lane; those that die in place of being delivered make room for others. */
    const take = Effect.fnUntraced(function* (lane: 0 | 1, limit: number) {
      let taken = 0
      let missing = limit
      while (missing > 0) {
        const rows = yield* run(Statements.claim, [
          registration,
          lane,
          now,
          missing,
          token,
          now + options.leaseFor,
          options.maxAttempts
        ])
        const delivered = rows.filter((row) => row[3] !== null)
        for (const row of delivered) {
          claims.push(toClaim(registration, row))
        }
        taken += delivered.length
        dead += rows.length - delivered.length
        missing = rows.length === missing ? missing - delivered.length : 0
      }
      return taken
    })

    const share = backfill
      ? Math.min(Math.floor((credit + options.limit * options.backfillPermille) / 1000), options.limit)
      : 0
    const reserved = yield* take(1, share)
    const fresh = live ? yield* take(0, options.limit - reserved) : 0
    if (backfill && reserved === share) {
      yield* take(1, options.limit - reserved - fresh)
    }
    const kept = reserved === share && backfill ? (credit + options.limit * options.backfillPermille) % 1000 : 0
    if (kept !== credit) {
      yield* run(Statements.setCredit, [registration, kept])
    }
    return { claims: claims.toSorted(byPlace), dead }
  })

const answers = (run: Rows.Run): Pick<DirtyQueueStorage, "ack" | "fail" | "release" | "renew"> => {
  /** Runs one statement for a batch of receipts; its rows start with the id and the version that it met. */
  const settle = <A extends Receipt>(
    statement: string,
    receipts: ReadonlyArray<A>,
    encode: (receipt: A) => ReadonlyArray<unknown>,
    parameters: ReadonlyArray<unknown>
  ) => Rows.inChunks(receipts, chunkSize, (chunk) => run(statement, [JSON.stringify(chunk.map(encode)), ...parameters]))

  const settleAll = (statement: string, receipts: ReadonlyArray<Receipt>, parameters: ReadonlyArray<unknown>) =>
    Effect.map(settle(statement, receipts, encodeReceipt, parameters), (rows) => toAnswers(receipts, rows))

  /** The parameters of an ack, for each lease; nearly always all receipts are of one claim. */
  const byLease = (receipts: ReadonlyArray<Receipt>): ReadonlyArray<readonly [ids: string, lease: number]> =>
    Array.from(
      Map.groupBy(receipts, (receipt) => receipt.lease),
      ([lease, claimed]) => [JSON.stringify(claimed.map((receipt) => receipt.id)), lease]
    )

  /** Rows that come back are what makes a deletion slow, and are only needed when the answers differ. */
  const ackOfOne = Effect.fnUntraced(function* (ids: string, lease: number, count: number) {
    const [unchanged] = yield* run(Statements.countUnchanged, [ids, lease])
    if (Rows.integer(unchanged?.[0]) !== count) return false
    yield* run(Statements.ackAll, [ids, lease])
    return true
  })

  return {
    ack: Effect.fnUntraced(function* (receipts) {
      const groups = byLease(receipts)
      if (groups.length === 1 && (yield* ackOfOne(...groups[0]!, receipts.length))) {
        return receipts.map(() => "Done" as const)
      }
      const done = (yield* Effect.forEach(groups, (group) => run(Statements.ack, group))).flat()
      const superseded = yield* settle(Statements.ackSuperseded, receipts, encodeReceipt, [])
      return toAnswers(receipts, [...done, ...superseded])
    }),

    fail: Effect.fnUntraced(function* (now, failures, { maxAttempts, minInterval }) {
      const rows = yield* settle(Statements.fail, firstOfEach(failures), encodeFailure, [
        now,
        maxAttempts,
        now + minInterval
      ])
      return { answers: toAnswers(failures, rows), dead: rows.filter((row) => row[2] === 1).length }
    }),

    release: (now, receipts, delay) => settleAll(Statements.release, receipts, [now, delay]),

    renew: (now, receipts, leaseFor) => settleAll(Statements.renew, receipts, [now + leaseFor])
  }
}

const epochs = (run: Rows.Run): Pick<DirtyQueueStorage, "newEpoch"> => ({
  newEpoch: (_now, jump) =>
    Effect.andThen(run(Statements.jumpVersion, [jump]), Effect.asVoid(run(Statements.releaseAll)))
})
