import { DurableWriter, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SqlError } from "effect/sql/SqlError"
import type { Change, Changelog, ChangelogOptions, Entry } from "../Changelog.ts"
import { ChangelogError } from "../ChangelogError.ts"
import type { ChangelogStorage, StoredChange, StoredEntry } from "../ChangelogStorage.ts"
import { ChangeSignal } from "../ChangeSignal.ts"
import { type Path, refusal, type Scope } from "../Path.ts"
import { guarded } from "./guarded.ts"
import * as Text from "@strata/durable/Text"

export const make = Effect.fnUntraced(function* (
  storage: ChangelogStorage,
  options: ChangelogOptions = {}
): Effect.fn.Return<Changelog["Service"], never, DurableWriter | ChangeSignal> {
  const writer = yield* DurableWriter
  const signal = yield* ChangeSignal
  return {
    record: record(appendAt(storage, options), signal),
    read: read(storage),
    prune: prune(storage, (effect) => writer.write(effect, guarded))
  }
})

type Append = NonNullable<ChangelogStorage["appendNow"]>

const appendAt = (storage: ChangelogStorage, { clock }: ChangelogOptions): Append => {
  if (clock === "database" && storage.appendNow !== undefined) return storage.appendNow
  const now = clock === "database" ? storage.databaseTime : Clock.currentTimeMillis
  return (changes) => Effect.flatMap(now, (now) => storage.append(now, changes))
}

const record = (append: Append, signal: ChangeSignal["Service"]): Changelog["Service"]["record"] =>
  Effect.fn("Changelog.record")(function* (changes) {
    if (changes.length === 0) return Option.none()
    const refused = refusedAmong(changes)
    if (refused !== undefined) return yield* refused
    const appended = yield* append(toStored(changes))
    yield* WriteTransaction.use((transaction) => transaction.afterCommit(signal.notify))
    return Option.some(appended)
  })

export const read = (storage: Pick<ChangelogStorage, "read">): Changelog["Service"]["read"] =>
  Effect.fn("Changelog.read")((options = {}) =>
    Effect.map(
      storage.read({
        scope: options.scope,
        prefix: options.prefix ?? "",
        after: options.after ?? 0,
        limit: Math.min(options.limit ?? 1000, Number.MAX_SAFE_INTEGER)
      }),
      (entries) => entries.map(toEntry)
    )
  )

export const prune = <R>(
  storage: Pick<ChangelogStorage<R>, "firstSince" | "prune">,
  write: <A, E>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError>
): Changelog["Service"]["prune"] =>
  Effect.fn("Changelog.prune")((options) =>
    write(
      Effect.flatMap(
        "seq" in options.before ? Effect.succeed(options.before.seq) : storage.firstSince(options.before.time),
        (before = Number.MAX_SAFE_INTEGER) =>
          storage.prune({
            scope: options.scope,
            prefix: options.prefix ?? "",
            before,
            limit: Math.min(options.limit ?? 10_000, Number.MAX_SAFE_INTEGER)
          })
      )
    )
  )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * By scope and path: rows that are inserted in the order of their index go in about twice as fast, and writers that
 * lock rows in one order do not deadlock.
 */
const inOrder = (changes: ReadonlyArray<Change>): ReadonlyArray<Change> => {
  const byPath = Text.sortedBy(changes, (change) => change.path)
  const scope = changes[0]?.scope
  return changes.every((change) => change.scope === scope) ? byPath : Text.sortedBy(byPath, (change) => change.scope)
}

/** Why changes are not recorded, if they are not. */
export const refusedAmong = (changes: ReadonlyArray<Change>): ChangelogError | undefined => {
  for (const { path, scope } of changes) {
    const reason = refusal("path", path) ?? refusal("scope", scope)
    if (reason !== undefined) return new ChangelogError({ reason })
  }
  return undefined
}

export const toStored = (changes: ReadonlyArray<Change>): ReadonlyArray<StoredChange> =>
  inOrder(changes).map(toStoredChange)

const toStoredChange = (change: Change): StoredChange => ({
  scope: change.scope,
  path: change.path,
  op: change.op,
  cid: change.op === "put" ? (change.cid ?? null) : null,
  // What file systems give may have fractions of milliseconds.
  mtime: change.mtime === undefined ? null : Math.trunc(change.mtime)
})

const toEntry = (stored: StoredEntry): Entry => ({
  seq: stored.seq,
  scope: stored.scope as Scope,
  path: stored.path as Path,
  op: stored.op,
  cid: stored.cid ?? undefined,
  mtime: stored.mtime ?? undefined,
  recordedAt: stored.recordedAt
})
