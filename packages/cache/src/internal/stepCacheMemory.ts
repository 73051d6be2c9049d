import { DurableWriter, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Text from "@strata/durable/Text"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SqlError } from "effect/sql/SqlError"
import type { StepCacheStorage, StoredHead, StoredLedgerRow } from "../StepCacheStorage.ts"

/** The tables in memory. Values are never changed, only replaced. */
interface State {
  readonly results: Map<string, string>
  readonly ledger: Map<number, StoredLedgerRow>
  readonly heads: Map<string, { readonly ledger: number; readonly usedAt: number }>
  lastLedger: number
}

export const make: Effect.Effect<StepCacheStorage["Service"], never, DurableWriter> = Effect.map(
  DurableWriter,
  (writer) => {
    const { change, look } = makeAccess(writer)
    return {
      find: (key) =>
        look((state) => {
          const head = headOf(state, key)
          return head && { ...head, value: state.results.get(head.digest) ?? "" }
        }),
      insert: (now, { value, ...record }) =>
        change((state, undo) => {
          const ledger = ++state.lastLedger
          put(state.results, record.digest, value, undo)
          put(state.ledger, ledger, { ...record, ledger }, undo)
          put(state.heads, record.key, { ledger, usedAt: now }, undo)
          return ledger
        }),
      remove: (key, ledger) =>
        change((state, undo) => {
          if (state.heads.get(key)?.ledger !== ledger) return false
          put(state.heads, key, undefined, undo)
          return true
        }),
      touch: (now, key, ledger) =>
        change((state, undo) => {
          const head = state.heads.get(key)
          if (head?.ledger !== ledger || head.usedAt >= now) return
          put(state.heads, key, { ledger, usedAt: now }, undo)
        }),
      heads: (after, limit) =>
        look((state) =>
          Text.sortedBy(Array.from(state.heads.keys()), (key) => key)
            .filter((key) => key > after)
            .slice(0, limit)
            .flatMap((key) => headOf(state, key) ?? [])
        )
    }
  }
)

const headOf = (state: State, key: string): StoredHead | undefined => {
  const head = state.heads.get(key)
  const row = head && state.ledger.get(head.ledger)
  return head && row && { ...row, usedAt: head.usedAt }
}

// ---------------------------------------------------------------------------------------------------------------------
// access
// ---------------------------------------------------------------------------------------------------------------------

type Undo = Array<() => void>

interface Access {
  /** Changes the state in one step, which is undone if the write rolls back. */
  readonly change: <A>(f: (state: State, undo: Undo) => A) => Effect.Effect<A, never, WriteTransaction>
  /** Sees what is committed, and what the write under way has done if this belongs to it. */
  readonly look: <A>(f: (state: State) => A) => Effect.Effect<A, SqlError>
}

const makeAccess = (writer: DurableWriter["Service"]): Access => {
  const state: State = { results: new Map(), ledger: new Map(), heads: new Map(), lastLedger: 0 }
  return {
    change: (f) =>
      WriteTransaction.use((transaction) => {
        const undo: Undo = []
        const rollback = () => {
          while (undo.length > 0) undo.pop()!()
        }
        return Effect.map(transaction.onRollback(rollback), () => f(state, undo))
      }),
    look: (f) =>
      Effect.flatMap(Effect.serviceOption(WriteTransaction), (transaction) => {
        const look = Effect.sync(() => f(state))
        // Waits for the write of another fiber, as on a database with one connection.
        return Option.isSome(transaction) ? look : writer.write(look)
      })
  }
}

/** Sets or, with `undefined`, removes the value of a key. */
const put = <K, A>(target: Map<K, A>, key: K, value: A | undefined, undo: Undo): void => {
  const before = target.get(key)
  set(target, key, value)
  undo.push(() => set(target, key, before))
}

const set = <K, A>(target: Map<K, A>, key: K, value: A | undefined): void => {
  if (value === undefined) target.delete(key)
  else target.set(key, value)
}
