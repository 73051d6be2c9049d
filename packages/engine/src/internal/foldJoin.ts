import { sha256 } from "@strata/durable/Digest"
import type { State } from "../DeferredClockFold.ts"
import type { StoredDeferred } from "../DeferredStorage.ts"
import type { Unjoined } from "../FoldIncomplete.ts"

/** What a state refers to that the rows do not have, or not as it was. */
export const completions = (
  executionId: string,
  state: State,
  rows: ReadonlyArray<StoredDeferred>
): ReadonlyArray<Unjoined> => {
  const byName = new Map(rows.map((row) => [row.name, row]))
  return Array.from(state.deferreds).flatMap(([deferred, { exit, metadata }]): ReadonlyArray<Unjoined> => {
    const row = byName.get(deferred)
    if (row === undefined) return [{ kind: "row_missing", executionId, deferred }]
    const mismatch = (part: "exit" | "metadata"): Unjoined => ({ kind: "digest_mismatch", executionId, deferred, part })
    const parts: Array<Unjoined> = []
    if (sha256(row.exit) !== exit) parts.push(mismatch("exit"))
    if ((row.metadata === null ? null : sha256(row.metadata)) !== metadata) parts.push(mismatch("metadata"))
    return parts
  })
}
