import * as D1 from "@strata/durable/D1"
import type { D1Client } from "@effect/sql-d1/D1Client"
import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import type * as Migrator from "effect/sql/Migrator"
import type { SqlError } from "effect/sql/SqlError"
import type { DirtyQueueStorage, Receipt, StoredClaim } from "../DirtyQueueStorage.ts"
import { migrationsSqlite } from "./schema.ts"
import { filterOf, findRegistration, single } from "./sqliteSingle.ts"
import * as Statements from "./statements.ts"
import { byPlace, encodeFailure, encodeReceipt, firstOfEach, toAnswers, toClaim, toRegistration } from "./storedRows.ts"

/*
 * The tables and statements of SQLite without transactions: each change is one statement, or one batch. What a batch
 * needs to know is read before it, and its statements guard themselves against what happens in between: a version is
 * drawn in the batch that uses it, a claim takes what is ready then, and a registration that is gone gets no rows.
 */

export const make: Effect.Effect<DirtyQueueStorage<never>, SqlError | Migrator.MigrationError, D1Client> = Effect.gen(
  function* () {
    yield* D1.migrate(migrationsSqlite)
    const d1 = yield* D1.make
    return {
      ...single(d1.run),
      ...registry(d1),
      ...intake(d1),
      claim: claim(d1),
      ...answers(d1),
      newEpoch: (_now, jump) =>
        Effect.asVoid(d1.batch([d1.prepare(Statements.jumpVersion, [jump]), d1.prepare(Statements.releaseAll)]))
    }
  }
)

// ---------------------------------------------------------------------------------------------------------------------
// registrations
// ---------------------------------------------------------------------------------------------------------------------

const registry = (d1: D1.D1): Pick<DirtyQueueStorage<never>, "register" | "unregister"> => {
  const find = findRegistration(d1.run)
  return {
    register: Effect.fnUntraced(function* (_now, { follower, prefix, scope }) {
      const [registered] = yield* find(follower, scope)
      if (registered !== undefined) return { registration: registered, created: false }
      const [inserted, there] = yield* d1.batch([
        d1.prepare(Statements.insertRegistration, [follower, scope, prefix]),
        d1.prepare(Statements.findRegistration, [follower, scope])
      ])
      const [row] = D1.values(there)
      return { registration: toRegistration(row!), created: inserted?.length === 1 }
    }),

    unregister: Effect.fnUntraced(function* (_now, { follower, scope }) {
      const [registered] = yield* find(follower, scope)
      if (registered === undefined) return 0
      const [rows] = yield* d1.batch([
        d1.prepare(Statements.deleteRows, [registered.id]),
        d1.prepare(Statements.deleteRegistration, [registered.id])
      ])
      return rows?.length ?? 0
    })
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// backfill and revival
// ---------------------------------------------------------------------------------------------------------------------

const intake = (d1: D1.D1): Pick<DirtyQueueStorage<never>, "enqueue" | "revive"> => ({
  enqueue: (now, { paths, registration }) =>
    Effect.asVoid(
      d1.batch([
        d1.prepare(Statements.drawVersion),
        ...D1.pieces(paths, pieceSize).map((piece) =>
          d1.prepare(Statements.enqueueAsDrawn, [registration, piece, null, now])
        )
      ])
    ),

  revive: (now, options) => {
    const filter = { ...filterOf(options), path: options.path !== undefined }
    const parameters = [null, now, options.prefix, options.follower ?? null, options.scope ?? null, options.path]
    const revived = d1.prepare(Statements.reviveAsDrawn(filter), parameters.slice(0, parametersOf(filter)))
    return Effect.map(d1.batch([d1.prepare(Statements.drawVersion), revived]), ([, rows]) => rows?.length ?? 0)
  }
})

/** D1 refuses parameters that a statement does not have. */
const parametersOf = ({ follower, path, scope }: Statements.RevivalFilter): number => {
  if (path) return 6
  if (scope) return 5
  return follower ? 4 : 3
}

// ---------------------------------------------------------------------------------------------------------------------
// claims
// ---------------------------------------------------------------------------------------------------------------------

type ClaimOptions = Parameters<DirtyQueueStorage["claim"]>[1]

/**
 * Looks first, as nothing may be written when nothing is ready, and then takes in one batch. Where others have taken
 * rows in between, it gets less.
 */
const claim = (d1: D1.D1): DirtyQueueStorage<never>["claim"] => {
  const release = answers(d1).release
  return Effect.fnUntraced(function* (now, options) {
    const { follower, limit, maxAttempts, scope } = options
    const [found] = yield* d1.run(Statements.survey, [follower, scope, now, Math.max(limit, 0), maxAttempts])
    if (found === undefined) return undefined
    const plan = planOf(now, options, found)
    if (plan === undefined) return { claims: [], dead: 0 }
    // What was claimed for a caller that is gone is given back, for which the answer has to be waited for.
    return yield* Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(take(d1, now, options, plan), (taken) =>
        Effect.onInterrupt(restore(Effect.succeed(taken)), () => Effect.ignore(release(now, taken.claims, 0)))
      )
    )
  })
}

/** How much a claim takes of each lane, by the rows that were ready and the share of the backfill lane. */
interface Plan {
  readonly registration: number
  /** How many rows are delivered. */
  readonly live: number
  readonly backfill: number
  /** How many rows each lane would deliver if it had them: as far as its dead letters are looked for, if it has some. */
  readonly bury: { readonly live: number; readonly backfill: number } | undefined
  /** The statement that keeps what is left of the share, unless it stays as it is. */
  readonly credit: readonly [statement: string, value: number] | undefined
}

const planOf = (now: number, options: ClaimOptions, found: Rows.Values): Plan | undefined => {
  const { backfillPermille, limit } = options
  const isReady = (column: number) => found[column] !== null && Rows.integer(found[column]) <= now
  const hasLive = isReady(2)
  const hasBackfill = isReady(3)
  if (limit <= 0 || !(hasLive || hasBackfill)) return undefined
  const credit = Rows.integer(found[1])
  const live = Rows.integer(found[4])
  const backfill = Rows.integer(found[5])
  const earned = credit + limit * backfillPermille
  const share = hasBackfill ? Math.min(Math.floor(earned / 1000), limit) : 0
  const reserved = Math.min(share, backfill)
  const isUsedUp = hasBackfill && reserved === share
  const fresh = Math.min(live, limit - reserved)
  const kept = isUsedUp ? earned % 1000 : 0
  const add = [Statements.addCredit, limit * backfillPermille] as const
  return {
    registration: Rows.integer(found[0]),
    live: fresh,
    backfill: isUsedUp ? Math.min(backfill, limit - fresh) : reserved,
    bury: found[6] === 1 ? { live: limit - reserved, backfill: isUsedUp ? limit - fresh : share } : undefined,
    credit: kept === credit ? undefined : isUsedUp ? add : [Statements.setCredit, 0]
  }
}

const take = Effect.fnUntraced(function* (d1: D1.D1, now: number, options: ClaimOptions, plan: Plan) {
  const { leaseFor, maxAttempts } = options
  const { registration } = plan
  const buried = ([lane, limit]: readonly [lane: 0 | 1, limit: number]) =>
    limit > 0 ? [d1.prepare(Statements.bury, [registration, lane, now, limit, maxAttempts])] : []
  const taken = ([lane, limit]: readonly [lane: 0 | 1, limit: number]) =>
    limit > 0
      ? [d1.prepare(Statements.claimAsDrawn, [registration, lane, now, limit, null, now + leaseFor, maxAttempts])]
      : []
  const burials = plan.bury === undefined ? [] : [...buried([1, plan.bury.backfill]), ...buried([0, plan.bury.live])]
  const takings = [...taken([1, plan.backfill]), ...taken([0, plan.live])]
  const results = yield* d1.batch([
    d1.prepare(Statements.drawVersion),
    ...burials,
    ...takings,
    ...(plan.credit === undefined ? [] : [d1.prepare(plan.credit[0], [registration, plan.credit[1]])])
  ])
  const rows = results.slice(1 + burials.length, 1 + burials.length + takings.length).flatMap((rows) => D1.values(rows))
  const claims: ReadonlyArray<StoredClaim> = rows
    .filter((row) => row[3] !== null)
    .map((row) => toClaim(registration, row))
  const dead = results.slice(1, 1 + burials.length).reduce((sum, rows) => sum + rows.length, 0)
  return { claims: claims.toSorted(byPlace), dead: dead + rows.length - claims.length }
})

// ---------------------------------------------------------------------------------------------------------------------
// answers
// ---------------------------------------------------------------------------------------------------------------------

const answers = (d1: D1.D1): Pick<DirtyQueueStorage<never>, "ack" | "fail" | "release" | "renew"> => {
  /** One statement for each piece of a list, with its other parameters. */
  const inPieces = (statement: string, items: ReadonlyArray<unknown>, parameters: ReadonlyArray<unknown> = []) =>
    D1.pieces(items, pieceSize).map((piece) => d1.prepare(statement, [piece, ...parameters]))

  const settle = (statements: ReturnType<typeof inPieces>): Effect.Effect<ReadonlyArray<Rows.Values>, SqlError> =>
    Effect.map(d1.batch(statements), (results) => results.flatMap((rows) => D1.values(rows)))

  const settleAll = (statement: string, receipts: ReadonlyArray<Receipt>, parameters: ReadonlyArray<unknown>) =>
    Effect.map(settle(inPieces(statement, receipts.map(encodeReceipt), parameters)), (rows) =>
      toAnswers(receipts, rows)
    )

  return {
    ack: (receipts) => {
      const done = Array.from(
        Map.groupBy(receipts, (receipt) => receipt.lease),
        ([lease, claimed]) =>
          inPieces(
            Statements.ack,
            claimed.map((receipt) => receipt.id),
            [lease]
          )
      )
      const superseded = inPieces(Statements.ackSuperseded, receipts.map(encodeReceipt))
      return Effect.map(settle([...done.flat(), ...superseded]), (rows) => toAnswers(receipts, rows))
    },

    fail: (now, failures, { maxAttempts, minInterval }) =>
      Effect.map(
        settle(
          inPieces(Statements.fail, firstOfEach(failures).map(encodeFailure), [now, maxAttempts, now + minInterval])
        ),
        (rows) => ({ answers: toAnswers(failures, rows), dead: rows.filter((row) => row[2] === 1).length })
      ),

    release: (now, receipts, delay) => settleAll(Statements.release, receipts, [now, delay]),

    renew: (now, receipts, leaseFor) => settleAll(Statements.renew, receipts, [now + leaseFor])
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** How many rows a statement is given at most: a Worker may run only so many statements. */
const pieceSize = 10_000
