import type * as Schema from "effect/Schema"
import type { Entry } from "../Journal.ts"
import { BelowFloor, BelowGlobalFloor, DecodeFailed, JournalError } from "../JournalError.ts"
import type { Cursor, Page, StoredEntry } from "../JournalStorage.ts"
import type { StreamName } from "../StreamName.ts"

/**
 * From plain values to typed ones. Names and payloads come from the journal's own tables, into which they went as branded
 * values and canonical JSON, so they are not checked again on every read.
 */
export const toEntry = (stored: StoredEntry): Entry => ({
  transaction: stored.transaction,
  ordinal: stored.ordinal,
  stream: toStreamName(stored.stream),
  seq: stored.seq,
  type: stored.type,
  payload: toJson(stored.payload),
  identity: stored.identity ?? undefined,
  recordedAt: stored.recordedAt
})

export const toStreamName = (name: string): StreamName => name as StreamName

export const toJson = (text: string): Schema.Json => JSON.parse(text)

export const decodeFailed = ({ seq, stream, type }: Entry, error: Schema.SchemaError): JournalError =>
  new JournalError({ reason: new DecodeFailed({ stream, seq, type, detail: error.issue.toString() }) })

// ---------------------------------------------------------------------------------------------------------------------
// order and floors
// ---------------------------------------------------------------------------------------------------------------------

export const startOfJournal: Cursor = { transaction: 0, ordinal: 0 }

export const endOfJournal: Cursor = { transaction: Number.MAX_SAFE_INTEGER, ordinal: Number.MAX_SAFE_INTEGER }

export const isBehind = (self: Cursor, that: Cursor): boolean =>
  self.transaction > that.transaction || (self.transaction === that.transaction && self.ordinal > that.ordinal)

/** The error of a read that begins behind `after`, if compaction has deleted something there. */
export const belowFloor = (stream: string, after: number, page: Page<number>): JournalError | undefined =>
  after + 1 < page.floor ? new JournalError({ reason: new BelowFloor({ stream, resumeAt: page.floor }) }) : undefined

export const belowGlobalFloor = (after: Cursor, page: Page<Cursor>): JournalError | undefined =>
  isBehind(page.floor, after) ? new JournalError({ reason: new BelowGlobalFloor({ resumeAt: page.floor }) }) : undefined
