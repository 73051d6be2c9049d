import { afterCommit } from "@strata/durable/DurableWriter"
import type * as IndexWriter from "@strata/follower/IndexWriter"
import type { Indexed } from "@strata/search/SearchIndex"
import * as Effect from "effect/Effect"

/** What was committed to the index. */
export interface Counts {
  /** Files whose passages were written. */
  readonly indexed: number
  /** Files that were found to have none. */
  readonly skipped: number
  readonly removed: number
}

/** Counts what passes through writers, when it is committed. */
export const make = () => {
  let counts: Counts = { indexed: 0, skipped: 0, removed: 0 }
  const add = (batch: IndexWriter.Batch<Indexed>) =>
    Effect.sync(() => {
      const indexed = batch.upserts.filter(({ value }) => value._tag === "Text").length
      counts = {
        indexed: counts.indexed + indexed,
        skipped: counts.skipped + batch.upserts.length - indexed,
        removed: counts.removed + batch.removals.length
      }
    })
  return {
    counts: Effect.sync(() => counts),
    count: (writer: IndexWriter.Transactional<Indexed>): IndexWriter.Transactional<Indexed> => ({
      ...writer,
      write: (batch) => Effect.andThen(writer.write(batch), afterCommit(add(batch)))
    })
  }
}
