import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { Buffer } from "node:buffer"
import type { CacheError } from "../../CacheError.ts"
import { Unexpected } from "../../CacheError.ts"
import type { StepKey } from "../../StepKey.ts"
import type * as EntryNote from "../entryNote.ts"
import type { Received } from "../http/lookupTime.ts"
import { failWith } from "../refusing.ts"
import type { Database } from "./database.ts"

/** The most of a value that comes with one statement, so that silence shows soon. Bytes. */
export const partBytes = 128 * 1024

/** A row, and the sizes of its parts in bytes. */
export interface Found extends EntryNote.Row {
  readonly resultBytes: number
  readonly noteBytes: number
}

export const toFound = (values: Rows.Values, first: number): Found => ({
  id: Rows.integer(values[first]),
  recording: Rows.text(values[first + 1]),
  digest: Rows.text(values[first + 2]),
  result: Rows.textOrNull(values[first + 3]),
  note: Rows.textOrNull(values[first + 4]),
  resultBytes: Rows.integer(values[first + 5]),
  noteBytes: Rows.integer(values[first + 6])
})

/**
 * The row with what did not come along, statement by statement; what is larger than this client takes stays there.
 * Nothing when the entry went meanwhile.
 */
export const complete = Effect.fnUntraced(function* (
  database: Database,
  key: StepKey,
  found: Found,
  received: Received = () => {}
): Effect.fn.Return<EntryNote.Row | undefined, CacheError> {
  const { settings, statements } = database
  const { id, noteBytes, resultBytes } = found
  if (Math.max(resultBytes, noteBytes) > settings.maxEntryBytes) return found
  const fetch = (statement: string, size: number) =>
    Stream.runCollect(
      Stream.tap(parts(database, statement, [key, id], size), ({ length }) => Effect.sync(() => received(length)))
    ).pipe(
      Effect.map((chunks) => Buffer.concat(chunks).toString("utf8")),
      Effect.catchTag("Gone", () => Effect.undefined)
    )
  const result = found.result ?? (yield* fetch(statements.resultPart, resultBytes))
  const note = found.note ?? (yield* fetch(statements.notePart, noteBytes))
  return result === undefined || note === undefined ? undefined : { ...found, result, note }
})

/** There is no such row, or none any more. */
export interface Gone {
  readonly _tag: "Gone"
}

/** The bytes of a value of so many, a part with each statement. One that is shorter ends early. */
export const parts = (
  { run, settings }: Database,
  statement: string,
  names: ReadonlyArray<unknown>,
  size: number
): Stream.Stream<Uint8Array, CacheError | Gone> =>
  Stream.paginate(
    0,
    Effect.fnUntraced(function* (start) {
      const wanted = Math.min(partBytes, size - start)
      const [row] = yield* run(statement, [...names, start + 1, wanted], wanted)
      if (row === undefined) return yield* Effect.fail<Gone>({ _tag: "Gone" })
      const [part] = row
      if (!(part instanceof Uint8Array)) {
        return yield* failWith(new Unexpected({ tier: settings.tier, detail: "a part of a value is no bytes" }))
      }
      const end = start + part.length
      return [[part], part.length === wanted && end < size ? Option.some(end) : Option.none()] as const
    })
  )
