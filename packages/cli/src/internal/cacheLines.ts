import { type Style, visible } from "../Output.ts"
import type { JournalEntry } from "../Results.ts"

/** Results of the cache and the journal as lines for people. */

export const journalLine = (entry: JournalEntry, style: Style): string =>
  [
    style.faint(new Date(entry.recordedAt).toISOString()),
    style.path(visible(entry.stream)),
    String(entry.seq),
    style.strong(visible(entry.type)),
    visible(JSON.stringify(entry.payload))
  ].join("  ")
