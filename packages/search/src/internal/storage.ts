import type { DurableWriter } from "@strata/durable/DurableWriter"
import type { MigrationSet } from "@strata/durable/Migrations"
import type * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Query } from "../Query.ts"

/*
 * What a database has to do for the search, in plain values. The services are made of it and know no database.
 */

// ---------------------------------------------------------------------------------------------------------------------
// index
// ---------------------------------------------------------------------------------------------------------------------

export type State = "building" | "active" | "retired"

export interface StoredGeneration {
  readonly id: number
  readonly extraction: string
}

export interface StoredDocument {
  readonly id: number
  readonly path: string
  readonly digest: string
  /** How many it has. */
  readonly passages: number
}

export interface NewDocument {
  readonly path: string
  readonly digest: string
  readonly title: string
  readonly passages: number
  /** The encoded reason why it has no passages. */
  readonly skipped: string | null
}

export interface NewPassage {
  readonly title: string
  readonly heading: string
  readonly body: string
  /** The number of the first line, or of each line, with commas between, where they do not follow one another. */
  readonly lines: string
  /** Where the words are, for a database that has them told. */
  readonly words: string
}

export interface StoredSkipped {
  readonly total: number
  readonly documents: ReadonlyArray<{ readonly scope: string; readonly path: string; readonly reason: string }>
}

export type Damage =
  | { readonly _tag: "None" }
  | { readonly _tag: "FullText" }
  | { readonly _tag: "Passages"; readonly documents: number; readonly orphans: number }

/** More passages of a document are refused, on every database alike. */
export const maxPassages = 2 ** 20 - 1

export interface IndexStorage {
  readonly migrations: MigrationSet

  readonly generations: (state: State) => Effect.Effect<ReadonlyArray<StoredGeneration>, SqlError>
  /** With all that it needs; in a write. */
  readonly createGeneration: (
    extraction: string,
    state: State,
    now: number
  ) => Effect.Effect<StoredGeneration, SqlError>
  readonly setState: (from: State, to: State) => Effect.Effect<void, SqlError>
  readonly activate: (generation: number) => Effect.Effect<void, SqlError>
  /** With its documents and passages; in a write. */
  readonly dropGeneration: (generation: number) => Effect.Effect<void, SqlError>

  /** Of the active generation. */
  readonly countDocuments: Effect.Effect<{ readonly all: number; readonly skipped: number }, SqlError>
  /** Of the active generation, by path in byte order, behind `after`. */
  readonly digests: (
    scope: string,
    after: string,
    prefix: string,
    limit: number
  ) => Effect.Effect<ReadonlyArray<{ readonly path: string; readonly digest: string }>, SqlError>
  /** Of the active generation, by scope and path in byte order. */
  readonly skipped: (options: {
    readonly scope: string | null
    readonly prefix: string
    readonly among: ReadonlyArray<string> | null
    readonly except: ReadonlyArray<string>
    readonly limit: number
  }) => Effect.Effect<StoredSkipped, SqlError>

  /** The documents and passages of one generation, with statements whose text is fixed. */
  readonly content: (generation: number) => ContentStorage
  /** A passage in the pieces that the database can hold, mostly one. */
  readonly prepare: (passage: Omit<NewPassage, "words">) => ReadonlyArray<NewPassage>
}

export interface ContentStorage {
  readonly find: (scope: string, paths: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<StoredDocument>, SqlError>
  readonly upsert: (
    scope: string,
    documents: ReadonlyArray<NewDocument>
  ) => Effect.Effect<ReadonlyArray<Pick<StoredDocument, "id" | "path">>, SqlError>
  /** Without their passages. */
  readonly remove: (documents: ReadonlyArray<number>) => Effect.Effect<void, SqlError>
  /** All passages of documents that have none. */
  readonly insertPassages: (
    passages: ReadonlyArray<{ readonly document: number; readonly passages: ReadonlyArray<NewPassage> }>
  ) => Effect.Effect<void, SqlError>
  readonly removePassages: (documents: ReadonlyArray<number>) => Effect.Effect<void, SqlError>
  /** In transactions of its own, which are writes where the database wants that. */
  readonly check: (durable: DurableWriter["Service"]) => Effect.Effect<Damage, SqlError>
}

// ---------------------------------------------------------------------------------------------------------------------
// what scans have seen
// ---------------------------------------------------------------------------------------------------------------------

/** What the last scan saw of a folder, see `manifest.ts`. */
export interface Folder {
  readonly folder: string
  readonly entries: string
}

export interface StoredProblem {
  readonly path: string
  /** Encoded. */
  readonly reason: string
}

export interface SeenStorage {
  readonly migrations: MigrationSet
  /** Below `under`, in byte order, behind `after` if there is one. */
  readonly folders: (
    scope: string,
    under: string,
    after: string | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<Folder>, SqlError>
  readonly folder: (
    scope: string,
    folder: string
  ) => Effect.Effect<{ readonly digest: string; readonly entries: string } | undefined, SqlError>
  readonly folderDigest: (scope: string, folder: string) => Effect.Effect<string | undefined, SqlError>
  /** In a write. */
  readonly replaceFolders: (
    scope: string,
    gone: ReadonlyArray<string>,
    seen: ReadonlyArray<Folder & { readonly digest: string }>
  ) => Effect.Effect<void, SqlError>
  /** Below `under`, in byte order. */
  readonly problems: (scope: string, under: string) => Effect.Effect<ReadonlyArray<StoredProblem>, SqlError>
  /** In a write. */
  readonly replaceProblems: (
    scope: string,
    gone: ReadonlyArray<string>,
    fresh: ReadonlyArray<StoredProblem>
  ) => Effect.Effect<void, SqlError>
}

// ---------------------------------------------------------------------------------------------------------------------
// finding
// ---------------------------------------------------------------------------------------------------------------------

export interface FoundPassage {
  readonly scope: string
  readonly path: string
  readonly title: string
  readonly heading: string
  /** As in {@link NewPassage}. */
  readonly lines: string
  /** How many lines of the body are before the one with its first match. */
  readonly linesBefore: number
  readonly snippet: {
    readonly text: string
    readonly highlights: ReadonlyArray<readonly [start: number, end: number]>
  }
  readonly score: number
}

export interface FinderStorage {
  /** How a transaction begins in which all statements see one state, and which holds up no writer. */
  readonly begin: string
  /** Absent also where there are no tables. */
  readonly active: Effect.Effect<number | undefined, SqlError>
  readonly scopes: (generation: number) => Effect.Effect<ReadonlyArray<string>, SqlError>
  /** The best passage of each document, best documents first, and how many documents match. */
  readonly find: (
    generation: number,
    query: Query,
    limit: number,
    within: ReadonlyArray<{ readonly scope: string; readonly prefix: string }> | undefined
  ) => Effect.Effect<{ readonly total: number; readonly hits: ReadonlyArray<FoundPassage> }, SqlError>
}
