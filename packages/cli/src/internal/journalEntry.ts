import type { Entry } from "@strata/journal/Journal"
import type { JournalEntry } from "../Results.ts"

/** An entry as it is printed. */
export const toJournalEntry = ({ identity, payload, recordedAt, seq, stream, type }: Entry): JournalEntry => ({
  stream,
  seq,
  type,
  recordedAt,
  ...(identity === undefined ? {} : { identity }),
  payload
})
