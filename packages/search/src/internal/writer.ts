import type { Path } from "@strata/dirty-queue/Path"
import type * as IndexWriter from "@strata/follower/IndexWriter"
import * as ProcessingError from "@strata/follower/ProcessingError"
import * as Effect from "effect/Effect"
import type { Passage } from "../Extractor.ts"
import type { Indexed } from "../SearchIndex.ts"
import { targetSize } from "./split.ts"
import { type IndexStorage, maxPassages, type NewDocument, type NewPassage } from "./storage.ts"

/** The writer of one generation. */
export const make = (storage: IndexStorage, generation: number): IndexWriter.Transactional<Indexed> => {
  const content = storage.content(generation)
  return {
    mode: "transactional",
    digests: (scope, paths) =>
      Effect.map(content.find(scope, paths), (rows) => new Map(rows.map((row) => [row.path as Path, row.digest]))),
    weights: (scope, paths) =>
      Effect.map(
        content.find(scope, paths),
        (rows) => new Map(rows.map((row) => [row.path as Path, row.passages * targetSize]))
      ),
    write: Effect.fnUntraced(function* (batch) {
      yield* refuseTooMany(batch.upserts.map(({ value }) => (value._tag === "Text" ? value.passages.length : 0)))
      const upserts = batch.upserts.map((upsert) => toStored(storage, upsert))
      yield* refuseTooMany(upserts.map(({ passages }) => passages.length))
      const changed = [...batch.upserts, ...batch.removals].map((change) => change.path)
      const old = yield* content.find(batch.scope, changed)
      const filled = old.filter((row) => row.passages > 0)
      if (filled.length > 0) yield* content.removePassages(filled.map((row) => row.id))
      if (batch.removals.length > 0) {
        const gone = new Set<string>(batch.removals.map((removal) => removal.path))
        yield* content.remove(old.filter((row) => gone.has(row.path)).map((row) => row.id))
      }
      if (upserts.length > 0) {
        const rows = yield* content.upsert(
          batch.scope,
          upserts.map(({ document }) => document)
        )
        const ids = new Map(rows.map((row) => [row.path, row.id]))
        yield* content.insertPassages(
          upserts
            .filter(({ passages }) => passages.length > 0)
            .map(({ document, passages }) => ({ document: ids.get(document.path)!, passages }))
        )
      }
    })
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Refused by its path, since a constraint that fails would look like a fault of the database. */
const refuseTooMany = (counts: ReadonlyArray<number>): Effect.Effect<void, ProcessingError.ProcessingError> =>
  counts.some((count) => count > maxPassages)
    ? Effect.fail(ProcessingError.poison(`the text makes more than ${maxPassages} passages`))
    : Effect.void

interface Stored {
  readonly document: NewDocument
  readonly passages: ReadonlyArray<NewPassage>
}

const toStored = (storage: IndexStorage, { digest, path, value }: IndexWriter.Upsert<Indexed>): Stored => {
  const { title } = value
  if (value._tag === "Skipped") {
    return { document: { path, digest, title, passages: 0, skipped: JSON.stringify(value.reason) }, passages: [] }
  }
  const passages = value.passages.flatMap((passage) =>
    storage.prepare({ title, heading: passage.heading, body: passage.body, lines: encodeLines(passage) })
  )
  return { document: { path, digest, title, passages: passages.length, skipped: null }, passages }
}

const encodeLines = ({ line, lines }: Passage): string => (lines === undefined ? String(line) : lines.join(","))
