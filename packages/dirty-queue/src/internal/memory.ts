import { DurableWriter, insideWrite, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import { MemoryStore } from "../MemoryStore.ts"
import type { MemoryState, Undo } from "./memoryState.ts"

/** How storages in memory get at their state. */
export interface Access {
  /** Changes the state in one step, which is undone if the write rolls back. */
  readonly change: <A>(f: (state: MemoryState, undo: Array<Undo>) => A) => Effect.Effect<A, never, WriteTransaction>
  /** Sees what is committed, and what the write under way has done if this belongs to it. */
  readonly read: <A>(f: (state: MemoryState) => A) => Effect.Effect<A, SqlError>
}

export const access: Effect.Effect<Access, never, MemoryStore | DurableWriter> = Effect.gen(function* () {
  const { state } = yield* MemoryStore
  const writer = yield* DurableWriter
  return {
    change: (f) =>
      WriteTransaction.use((transaction) => {
        const undo: Array<Undo> = []
        return Effect.map(
          transaction.onRollback(() => {
            for (let i = undo.length - 1; i >= 0; i--) {
              undo[i]!()
            }
          }),
          () => f(state, undo)
        )
      }),
    read: (f) =>
      Effect.flatMap(insideWrite, (isInside) => {
        const look = Effect.sync(() => f(state))
        // Waits for the write of another fiber, as on a database with one connection.
        return isInside ? look : writer.write(look)
      })
  }
})
