import * as Rows from "@strata/durable/Rows"
import type {
  Answer,
  Receipt,
  StoredClaim,
  StoredCounts,
  StoredFailure,
  StoredRegistration,
  StoredRow
} from "../DirtyQueueStorage.ts"
import { operation } from "./operation.ts"

/*
 * What the SQL tiers send and get: rows are by position, as the statements of both list their columns.
 */

// ---------------------------------------------------------------------------------------------------------------------
// claims
// ---------------------------------------------------------------------------------------------------------------------

/** How many rows a statement is given at most. */
export const chunkSize = 1000

export const encodeReceipt = (receipt: Receipt) => [receipt.id, receipt.version, receipt.lease]

export const encodeFailure = (failure: StoredFailure) => [
  failure.id,
  failure.version,
  failure.lease,
  failure.error,
  failure.dead,
  failure.delay
]

/**
 * What a statement returned was the claimer's; with another version, a change had come in. Of several claims on one row
 * only the latest can have been meant.
 */
export const toAnswers = (
  receipts: ReadonlyArray<Receipt>,
  rows: ReadonlyArray<Rows.Values>
): ReadonlyArray<Answer> => {
  const versions = new Map(rows.map((row) => [Rows.integer(row[0]), Rows.integer(row[1])]))
  const leases = new Map<number, number>()
  for (const receipt of receipts) {
    leases.set(receipt.id, Math.max(receipt.lease, leases.get(receipt.id) ?? 0))
  }
  return receipts.map((receipt) => {
    const version = versions.get(receipt.id)
    if (version === undefined || receipt.lease !== leases.get(receipt.id)) return "Lost"
    return version === receipt.version ? "Done" : "Superseded"
  })
}

/** Of two failures of one claim the first one counts, where the statement would take any. */
export const firstOfEach = (failures: ReadonlyArray<StoredFailure>): ReadonlyArray<StoredFailure> => {
  const first = new Map<string, StoredFailure>()
  for (const failure of failures) {
    const claim = `${failure.id}/${failure.lease}`
    if (!first.has(claim)) first.set(claim, failure)
  }
  return Array.from(first.values())
}

export const byPlace = (a: StoredClaim, b: StoredClaim): number => a.queuedAt - b.queuedAt || a.id - b.id

// ---------------------------------------------------------------------------------------------------------------------
// rows
// ---------------------------------------------------------------------------------------------------------------------

const toLane = (value: unknown): 0 | 1 => (value === 1 ? 1 : 0)

export const toRegistration = (row: Rows.Values): StoredRegistration => ({
  id: Rows.integer(row[0]),
  follower: Rows.text(row[1]),
  scope: Rows.text(row[2]),
  prefix: Rows.text(row[3]),
  servedAt: Rows.integer(row[4])
})

export const toClaim = (registration: number, row: Rows.Values): StoredClaim => ({
  id: Rows.integer(row[0]),
  registration,
  path: Rows.text(row[1]),
  version: Rows.integer(row[2]),
  lease: Rows.integer(row[3]),
  op: row[4] === null ? null : operation(row[4]),
  cid: Rows.textOrNull(row[5]),
  mtime: Rows.integerOrNull(row[6]),
  seq: Rows.integer(row[7]),
  lane: toLane(row[8]),
  attempts: Rows.integer(row[9]),
  queuedAt: Rows.integer(row[10])
})

export const toRow = (row: Rows.Values): StoredRow => ({
  id: Rows.integer(row[0]),
  registration: Rows.integer(row[1]),
  path: Rows.text(row[2]),
  version: Rows.integer(row[3]),
  since: Rows.integer(row[4]),
  op: row[5] === null ? null : operation(row[5]),
  cid: Rows.textOrNull(row[6]),
  mtime: Rows.integerOrNull(row[7]),
  seq: Rows.integer(row[8]),
  lane: toLane(row[9]),
  readyAt: Rows.integerOrNull(row[10]),
  queuedAt: Rows.integer(row[11]),
  dirtyAt: Rows.integer(row[12]),
  lease: Rows.integerOrNull(row[13]),
  attempts: Rows.integer(row[14]),
  retryFloor: Rows.integer(row[15]),
  failedAt: Rows.integerOrNull(row[16]),
  lastError: Rows.textOrNull(row[17]),
  follower: Rows.text(row[18]),
  scope: Rows.text(row[19])
})

export const toCounts = (row: Rows.Values): StoredCounts => ({
  follower: Rows.text(row[0]),
  rows: Rows.integer(row[1]),
  ready: Rows.integer(row[2]),
  delayed: Rows.integer(row[3]),
  claimed: Rows.integer(row[4]),
  dead: Rows.integer(row[5]),
  failing: Rows.integer(row[6]),
  backfill: Rows.integer(row[7]),
  oldestDirtyAt: Rows.integerOrNull(row[8])
})
