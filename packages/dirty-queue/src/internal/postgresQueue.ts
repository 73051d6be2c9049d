import * as Migrations from "@strata/durable/Migrations"
import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type {
  Answer,
  DirtyQueueStorage,
  Receipt,
  StorageFilter,
  StoredClaim,
  StoredFailure
} from "../DirtyQueueStorage.ts"
import { operation } from "./operation.ts"
import { migrationsPostgres } from "./postgresSchema.ts"
import * as Statements from "./postgresStatements.ts"
import { byPlace, chunkSize, firstOfEach, toAnswers, toCounts, toRegistration, toRow } from "./storedRows.ts"

export const make: Effect.Effect<DirtyQueueStorage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =
  Effect.gen(function* () {
    yield* Migrations.run(migrationsPostgres)
    const run = yield* Rows.run
    return {
      databaseTime: Effect.map(run(Statements.databaseTime), ([row]) => Rows.integer(row?.[0])),
      announce: Effect.asVoid(run(Statements.announce)),
      ...registry(run),
      ...intake(run),
      claim: (now, options) => claim(run, now, options),
      claimNow: (options) => claim(run, null, options),
      ...answers(run),
      ...reads(run),
      ...versions(run)
    }
  })

// ---------------------------------------------------------------------------------------------------------------------
// registrations
// ---------------------------------------------------------------------------------------------------------------------

const registry = (
  run: Rows.Run
): Pick<DirtyQueueStorage, "register" | "unregister" | "registrations" | "markServed" | "readyScopes"> => {
  const find = (follower: string, scope: string) =>
    Effect.map(run(Statements.findRegistration, [follower, scope]), (rows) => rows.map(toRegistration))

  /**
   * A change that was recorded but not committed would miss a follower that is registered meanwhile, whose backfill does
   * not see it either.
   */
  const alone = Effect.andThen(run(Statements.lockRegistry), run(Statements.changeRegistry))

  return {
    register: Effect.fnUntraced(function* (_now, { follower, prefix, scope }) {
      const [registered] = yield* find(follower, scope)
      if (registered !== undefined) return { registration: registered, created: false }
      yield* alone
      const [meanwhile] = yield* find(follower, scope)
      if (meanwhile !== undefined) return { registration: meanwhile, created: false }
      const [row] = yield* run(Statements.insertRegistration, [follower, scope, prefix])
      return { registration: toRegistration(row!), created: true }
    }),

    unregister: Effect.fnUntraced(function* (_now, { follower, scope }) {
      yield* alone
      const [registered] = yield* find(follower, scope)
      if (registered === undefined) return 0
      const rows = yield* run(Statements.deleteRows, [registered.id])
      yield* run(Statements.deleteRegistration, [registered.id])
      return rows.length
    }),

    registrations: (filter) =>
      Effect.map(run(Statements.listRegistrations, filterParameters(filter)), (rows) => rows.map(toRegistration)),

    markServed: (now, { follower, scope }) =>
      Effect.map(run(Statements.markServed, [follower, scope, now]), (rows) => rows.length > 0),

    readyScopes: (now, { follower, limit }) =>
      Effect.map(run(Statements.readyScopes, [follower, now, limit]), (rows) => rows.map((row) => Rows.text(row[0])))
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// backfill and revival
// ---------------------------------------------------------------------------------------------------------------------

const draw = (run: Rows.Run, statement: string) => Effect.map(run(statement), ([row]) => Rows.integer(row?.[0]))

const intake = (run: Rows.Run): Pick<DirtyQueueStorage, "enqueue" | "revive"> => ({
  enqueue: Effect.fnUntraced(function* (now, { paths, registration }) {
    const version = yield* draw(run, Statements.beginEnqueue)
    yield* run(Statements.enqueue, [registration, JSON.stringify(paths), version, now])
  }),

  revive: Effect.fnUntraced(function* (now, options) {
    const version = yield* draw(run, Statements.drawVersion)
    const parameters = [version, now, options.prefix, options.path ?? null, ...filterParameters(options)]
    return (yield* run(Statements.revive, parameters)).length
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// claims and answers
// ---------------------------------------------------------------------------------------------------------------------

/** At the time of the database without one. */
const claim = Effect.fnUntraced(function* (
  run: Rows.Run,
  now: number | null,
  options: Parameters<DirtyQueueStorage["claim"]>[1]
) {
  const rows = yield* run(Statements.claim, [
    options.follower,
    options.scope,
    now,
    options.limit,
    options.leaseFor,
    options.maxAttempts,
    options.backfillPermille
  ])
  const summary = rows.find((row) => row[0] === null)
  if (summary === undefined) return undefined
  const claims = rows.filter((row) => row[0] !== null).map(claimOf(summary))
  return { now: Rows.integer(summary[9]), claims: claims.toSorted(byPlace), dead: Rows.integer(summary[8]) }
})

/** All claims of one call have one token, and are of one registration. */
const claimOf = (summary: Rows.Values) => {
  const lease = Rows.integerOrNull(summary[2]) ?? 0
  const registration = Rows.integer(summary[6])
  return (row: Rows.Values): StoredClaim => ({
    id: Rows.integer(row[0]),
    registration,
    path: Rows.text(row[1]),
    version: Rows.integer(row[2]),
    lease,
    op: row[3] === null ? null : operation(row[3]),
    cid: Rows.textOrNull(row[4]),
    mtime: Rows.integerOrNull(row[5]),
    seq: Rows.integer(row[6]),
    lane: row[7] === 1 ? 1 : 0,
    attempts: Rows.integer(row[8]),
    queuedAt: Rows.integer(row[9])
  })
}

/** Ids tell rows of one registration apart. Nearly always all receipts are of one. */
const ofEachRegistration = <A extends Receipt>(
  receipts: ReadonlyArray<A>,
  answer: (registration: number, own: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<Answer>, SqlError>
): Effect.Effect<ReadonlyArray<Answer>, SqlError> => {
  const groups = Array.from(Map.groupBy(receipts, (receipt) => receipt.registration))
  if (groups.length === 1) return answer(...groups[0]!)
  const given = Effect.forEach(groups, ([registration, own]) =>
    Effect.map(answer(registration, own), (answers) => answers.map((answer, i) => [own[i], answer] as const))
  )
  return Effect.map(given, (given) => {
    const answers = new Map<Receipt | undefined, Answer>(given.flat())
    return receipts.map((receipt) => answers.get(receipt) ?? "Lost")
  })
}

/** Of receipts of one claim those whose ids are among the ones that are gone, with their versions. */
const removedOf = (receipts: ReadonlyArray<Receipt>, ids: unknown): ReadonlyArray<Rows.Values> => {
  const gone = new Set(Array.isArray(ids) ? ids.map(Rows.integer) : [])
  return receipts.filter(({ id }) => gone.has(id)).map(({ id, version }) => [id, version])
}

const encodeReceipt = ({ lease, path }: Receipt) => [path, lease]

const encodeFailure = ({ dead, delay, error, lease, path }: StoredFailure) => [path, lease, error, dead, delay]

const answers = (run: Rows.Run): Pick<DirtyQueueStorage, "ack" | "fail" | "release" | "renew"> => {
  /** Runs one statement for receipts of a registration; its rows start with the id and the version that it met. */
  const settle = <A extends Receipt>(
    statement: string,
    registration: number,
    receipts: ReadonlyArray<A>,
    encode: (receipt: A) => ReadonlyArray<unknown>,
    parameters: ReadonlyArray<unknown>
  ) =>
    Rows.inChunks(receipts, chunkSize, (chunk) =>
      run(statement, [registration, JSON.stringify(chunk.map(encode)), ...parameters])
    )

  const settleAll = (statement: string, receipts: ReadonlyArray<Receipt>, parameters: ReadonlyArray<unknown>) =>
    ofEachRegistration(receipts, (registration, own) =>
      Effect.map(settle(statement, registration, own, encodeReceipt, parameters), (rows) => toAnswers(own, rows))
    )

  /** Deletes what no change has come in for; nearly always all receipts are of one claim, and all of its rows go. */
  const remove = (registration: number, receipts: ReadonlyArray<Receipt>) =>
    Effect.map(
      Effect.forEach(
        Map.groupBy(receipts, (receipt) => receipt.lease),
        ([lease, claimed]) =>
          Rows.inChunks(claimed, chunkSize, (chunk) =>
            Effect.map(run(Statements.ack, [registration, chunk.map((receipt) => receipt.path), lease]), ([row]) =>
              removedOf(chunk, row?.[0])
            )
          )
      ),
      (rows) => rows.flat()
    )

  return {
    ack: (receipts) =>
      ofEachRegistration(
        receipts,
        Effect.fnUntraced(function* (registration, own) {
          const done = yield* remove(registration, own)
          if (done.length === own.length) return own.map(() => "Done" as const)
          const freed = yield* settle(Statements.ackSuperseded, registration, own, encodeReceipt, [])
          return toAnswers(own, [...done, ...freed])
        })
      ),

    fail: Effect.fnUntraced(function* (now, failures, { maxAttempts, minInterval }) {
      let dead = 0
      const answers = yield* ofEachRegistration(
        failures,
        Effect.fnUntraced(function* (registration, own) {
          const parameters = [now, maxAttempts, now + minInterval]
          const rows = yield* settle(Statements.fail, registration, firstOfEach(own), encodeFailure, parameters)
          dead += rows.filter((row) => row[2] === 1).length
          return toAnswers(own, rows)
        })
      )
      return { answers, dead }
    }),

    release: (now, receipts, delay) => settleAll(Statements.release, receipts, [now, delay]),

    renew: (now, receipts, leaseFor) => settleAll(Statements.renew, receipts, [now + leaseFor])
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// reads
// ---------------------------------------------------------------------------------------------------------------------

const reads = (run: Rows.Run): Pick<DirtyQueueStorage, "list" | "stats" | "nextReadyAt"> => ({
  list: (options) =>
    Effect.map(
      run(Statements.listRows(options.kind), [
        options.prefix,
        options.sinceAtMost,
        options.limit,
        options.after?.registration ?? 0,
        options.after?.path ?? "",
        ...filterParameters(options)
      ]),
      (rows) => rows.map(toRow)
    ),

  stats: (now, filter) =>
    Effect.map(run(Statements.stats, [now, ...filterParameters(filter)]), (rows) => rows.map(toCounts)),

  nextReadyAt: (filter) =>
    Effect.map(run(Statements.nextReadyAt, filterParameters(filter)), ([row]) => {
      const times = [row?.[0], row?.[1]].flatMap((time) => (time == null ? [] : [Rows.integer(time)]))
      return times.length === 0 ? null : Math.min(...times)
    })
})

const versions = (run: Rows.Run): Pick<DirtyQueueStorage, "currentVersion" | "newEpoch"> => ({
  currentVersion: Effect.map(run(Statements.currentVersion), ([row]) => Rows.integer(row?.[0])),

  newEpoch: (_now, jump) =>
    Effect.andThen(run(Statements.jumpVersion, [jump]), Effect.asVoid(run(Statements.releaseAll)))
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const filterParameters = (filter: StorageFilter): ReadonlyArray<string | null> => [
  filter.follower ?? null,
  filter.scope ?? null
]
