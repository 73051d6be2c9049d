import { WriteTransaction } from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import type { Entry, Journal, JournalOptions } from "../Journal.ts"
import { EncodeFailed, JournalError } from "../JournalError.ts"
import type { Page, StoredEvent } from "../JournalStorage.ts"
import { JournalStorage } from "../JournalStorage.ts"
import * as Metrics from "../Metrics.ts"
import { Redactor } from "../Redaction.ts"
import type { StreamName } from "../StreamName.ts"
import * as Appending from "./appending.ts"
import * as Commits from "./commits.ts"
import * as Entries from "./entries.ts"

type Service = Journal["Service"]

export const make = Effect.fnUntraced(function* (
  options: JournalOptions = {}
): Effect.fn.Return<Service, never, JournalStorage> {
  const storage = yield* JournalStorage
  const redactor = yield* Redactor
  const commits = Commits.make()
  return {
    append: append(storage, redactor, commits),
    appendAll: appendAll(storage, redactor, commits),
    ...reading(storage),
    ...following(storage, commits, options),
    ...streams(storage)
  }
})

type Storage = JournalStorage["Service"]

// ---------------------------------------------------------------------------------------------------------------------
// appending
// ---------------------------------------------------------------------------------------------------------------------

const append = (storage: Storage, redactor: typeof Redactor.Service, commits: Commits.Commits): Service["append"] =>
  Effect.fn("Journal.append")(function* (stream, events) {
    if (events.length === 0) return []
    yield* Effect.annotateCurrentSpan({ stream, events: events.length })
    const encoded = yield* Effect.forEach(events, (event) => Appending.encode(redactor, event))
    const { fresh, place } = yield* Appending.plan(storage, stream, encoded)
    if (fresh.length === 0) return place([])
    const appended = yield* storage.append(yield* Clock.currentTimeMillis, stream, fresh)
    yield* WriteTransaction.use((transaction) => transaction.afterCommit(commits.notify))
    yield* Metrics.appendedEntries(fresh.length)
    return place(appended)
  })

const appendAll = (
  storage: Storage,
  redactor: typeof Redactor.Service,
  commits: Commits.Commits
): Service["appendAll"] =>
  Effect.fn("Journal.appendAll")(function* (appends) {
    if (appends.length === 0) return
    let count = 0
    const encoded: Array<{ readonly stream: StreamName; readonly events: ReadonlyArray<StoredEvent> }> = []
    for (const { events, stream } of appends) {
      const stored: Array<StoredEvent> = []
      for (const event of events) {
        const { type } = event
        if (event.identity !== undefined) {
          const detail = "an event with an identity has to be appended by itself"
          return yield* new JournalError({ reason: new EncodeFailed({ type: type.toWellFormed(), detail }) })
        }
        stored.push(yield* Appending.encode(redactor, event))
      }
      count += stored.length
      encoded.push({ stream, events: stored })
    }
    yield* Effect.annotateCurrentSpan({ streams: appends.length, events: count })
    yield* storage.appendAll(yield* Clock.currentTimeMillis, encoded)
    yield* WriteTransaction.use((transaction) => transaction.afterCommit(commits.notify))
    yield* Metrics.appendedEntries(count)
  })

// ---------------------------------------------------------------------------------------------------------------------
// reading
// ---------------------------------------------------------------------------------------------------------------------

const reading = (storage: Storage): Pick<Service, "read" | "readAll"> => ({
  read: Effect.fn("Journal.read")(function* ({ after = 0, limit = 1000, stream, types, upTo }) {
    yield* Effect.annotateCurrentSpan({ stream, after })
    const page = yield* storage.read({ stream, after, upTo: upTo ?? Number.MAX_SAFE_INTEGER, types, limit })
    const error = Entries.belowFloor(stream, after, page)
    if (error !== undefined) return yield* error
    return page.entries.map(Entries.toEntry)
  }),

  readAll: Effect.fn("Journal.readAll")(function* ({
    after = Entries.startOfJournal,
    compacted,
    limit = 1000,
    types
  } = {}) {
    yield* Effect.annotateCurrentSpan({ after: after.ordinal })
    const page = yield* storage.readAll({ after, upTo: undefined, types, limit })
    const error = compacted === "skip" ? undefined : Entries.belowGlobalFloor(after, page)
    if (error !== undefined) return yield* error
    return page.entries.map(Entries.toEntry)
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// following
// ---------------------------------------------------------------------------------------------------------------------

const following = (
  storage: Storage,
  commits: Commits.Commits,
  options: JournalOptions
): Pick<Service, "follow" | "followAll"> => {
  const limit = Math.max(options.pageSize ?? 500, 1)
  const poll = Effect.sleep(Duration.fromInputUnsafe(options.pollInterval ?? "100 millis"))

  /** Reads pages when they are asked for, and waits where there is nothing to read. */
  const pages = <Position>(
    from: Position,
    read: (after: Position) => Effect.Effect<Page<Position>, SqlError>,
    refuse: (after: Position, page: Page<Position>) => JournalError | undefined
  ): Stream.Stream<Entry, SqlError | JournalError> =>
    Stream.paginate(from, (from) =>
      Effect.gen(function* () {
        let after = from
        while (true) {
          const commit = yield* commits.next
          const page = yield* read(after)
          const error = refuse(after, page)
          if (error !== undefined) return yield* error
          if (page.entries.length > 0) {
            return [page.entries.map(Entries.toEntry), Option.some(page.through)] as const
          }
          // Entries of other types are behind it once and for all.
          after = page.through
          yield* Effect.race(commit, poll)
        }
      })
    )

  return {
    follow: ({ after = 0, stream, types }) =>
      pages(
        after,
        (after) => storage.read({ stream, after, upTo: Number.MAX_SAFE_INTEGER, types, limit }),
        (after, page) => Entries.belowFloor(stream, after, page)
      ),
    followAll: ({ after = Entries.startOfJournal, compacted, types } = {}) =>
      pages(
        after,
        (after) => storage.readAll({ after, upTo: undefined, types, limit }),
        (after, page) => (compacted === "skip" ? undefined : Entries.belowGlobalFloor(after, page))
      )
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// streams
// ---------------------------------------------------------------------------------------------------------------------

const streams = (storage: Storage): Pick<Service, "head" | "floor" | "streams"> => ({
  head: Effect.fn("Journal.head")((stream) => Effect.map(storage.stream(stream), (found) => found?.head ?? 0)),
  floor: Effect.fn("Journal.floor")((stream) => Effect.map(storage.stream(stream), (found) => found?.floor ?? 0)),
  streams: Effect.fn("Journal.streams")((options = {}) =>
    Effect.map(
      storage.streams({ prefix: options.prefix ?? "", after: options.after ?? "", limit: options.limit ?? 1000 }),
      (found) => found.map((info) => ({ ...info, stream: Entries.toStreamName(info.stream) }))
    )
  )
})
