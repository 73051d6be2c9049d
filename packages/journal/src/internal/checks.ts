import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import { BelowFloor, JournalError, NoSuchEntry } from "../JournalError.ts"
import type { JournalStorage } from "../JournalStorage.ts"
import * as Entries from "./entries.ts"

type Storage = JournalStorage["Service"]

/** Fails unless a stream has the entry. */
export const requireEntry = Effect.fnUntraced(function* (storage: Storage, stream: string, seq: number) {
  const found = yield* storage.stream(stream)
  if (found !== undefined && seq < found.floor) {
    return yield* new JournalError({ reason: new BelowFloor({ stream, resumeAt: found.floor }) })
  }
  if ((yield* storage.lastUpTo(stream, seq))?.seq !== seq) {
    return yield* new JournalError({ reason: new NoSuchEntry({ stream, seq }) })
  }
})

/** Whether no entry was rewound since a generation was seen; always, when none was. */
export const isPresent = (storage: Storage, generation: number | undefined): Effect.Effect<boolean, SqlError> =>
  generation === undefined
    ? Effect.succeed(true)
    : Effect.map(
        storage.readAll({ after: Entries.endOfJournal, upTo: undefined, types: undefined, limit: 1 }),
        (page) => page.generation === generation
      )
