import { Changelog } from "@strata/dirty-queue/Changelog"
import type { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import { DirtyQueue } from "@strata/dirty-queue/DirtyQueue"
import { Path, Scope } from "@strata/dirty-queue/Path"
import { type DurableWriter, write } from "@strata/durable/DurableWriter"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as EffectScope from "effect/Scope"
import { type ContentReader, fromLookup, type Key } from "../ContentReader.ts"
import * as Follower from "../Follower.ts"
import type * as IndexWriter from "../IndexWriter.ts"
import type * as ProcessingError from "../ProcessingError.ts"

// ---------------------------------------------------------------------------------------------------------------------
// what a tier brings
// ---------------------------------------------------------------------------------------------------------------------

/**
 * An index of strings in the store that the tier's writes go to.
 *
 * @since 0.1.0
 * @category services
 */
export class TestIndex extends Context.Service<
  TestIndex,
  {
    /** A writer into the index called `name`. */
    readonly writer: (name: string) => IndexWriter.Transactional<string>
    /** What the index called `name` holds for a scope, by path. */
    readonly entries: (name: string, scope: Scope) => Effect.Effect<Readonly<Record<string, string>>, unknown>
  }
>()("@strata/follower/testing/TestIndex") {}

/**
 * @since 0.1.0
 * @category models
 */
export type Tier = DirtyQueue | Changelog | DurableWriter | ChangeSignal | TestIndex

// ---------------------------------------------------------------------------------------------------------------------
// the world of a test
// ---------------------------------------------------------------------------------------------------------------------

export const main = Scope.make("main")

/** Content that tests change, recording each change, and a reader whose answers they can bend. */
export const makeWorld = Effect.gen(function* () {
  const queue = yield* DirtyQueue
  const changelog = yield* Changelog
  const index = yield* TestIndex
  const contents = new Map<string, string>()
  const reads: Array<string> = []
  const key = (scope: string, path: string) => `${scope}/${path}`
  const bend = new Map<string, (key: Key) => Effect.Effect<void, ProcessingError.ProcessingError>>()
  const reader: ContentReader<string> = fromLookup((at) =>
    Effect.gen(function* () {
      reads.push(at.path)
      const content = contents.get(key(at.scope, at.path))
      const bent = bend.get(at.path)
      if (bent !== undefined) yield* bent(at)
      return Option.fromUndefinedOr(content)
    })
  )
  const change = (op: "put" | "delete", scope: string, paths: ReadonlyArray<string>) =>
    write(changelog.record(paths.map((path) => ({ scope: Scope.make(scope), path: Path.make(path), op }))))
  return {
    queue,
    contents,
    reads,
    bend,
    reader,
    /** Sets contents and records the changes in one write. */
    put: (entries: Readonly<Record<string, string>>, scope: string = main) =>
      Effect.suspend(() => {
        for (const [path, content] of Object.entries(entries)) contents.set(key(scope, path), content)
        return change("put", scope, Object.keys(entries))
      }),
    remove: (paths: ReadonlyArray<string>, scope: string = main) =>
      Effect.suspend(() => {
        for (const path of paths) contents.delete(key(scope, path))
        return change("delete", scope, paths)
      }),
    indexed: (name = "search", scope: string = main) => index.entries(name, Scope.make(scope)),
    writer: index.writer,
    follower: (options: Partial<Follower.FollowerOptions<string>> = {}) =>
      Follower.make<string>({
        name: "search",
        version: "1",
        scope: main,
        queue,
        reader,
        writer: index.writer("search"),
        ...options
      })
  }
})

export const deadPaths = (queue: DirtyQueue["Service"]) =>
  Effect.map(queue.deadLetters(), (rows) => rows.map((row) => row.path as string))

/** A writer whose calls are counted and can be made to fail. */
export const spy = (
  writer: IndexWriter.Transactional<string>,
  refuse: (batch: IndexWriter.Batch<string>) => Effect.Effect<void, ProcessingError.ProcessingError> = () => Effect.void
) => {
  const batches: Array<IndexWriter.Batch<string>> = []
  return {
    batches,
    writer: {
      ...writer,
      write: (batch: IndexWriter.Batch<string>) =>
        Effect.suspend(() => {
          batches.push(batch)
          return Effect.andThen(writer.write(batch), refuse(batch))
        })
    }
  }
}

/** A writer elsewhere, which knows nothing of transactions, and remembers the keys it was given. */
export const external = () => {
  const entries = new Map<string, string>()
  const keys: Array<string> = []
  return {
    entries,
    keys,
    writer: {
      mode: "idempotent",
      write: (batch) =>
        Effect.sync(() => {
          for (const upsert of batch.upserts) {
            keys.push(upsert.idempotencyKey)
            entries.set(upsert.path, upsert.value)
          }
          for (const removal of batch.removals) entries.delete(removal.path)
        })
    } satisfies IndexWriter.Idempotent<string>
  }
}

export const numbered = (count: number, content = "text") =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${String(i).padStart(4, "0")}`, `${content}${i}`]))

/** Runs an effect as a test of a tier, over an empty store. */
export type Test = <A, E>(title: string, effect: Effect.Effect<A, E, Tier | EffectScope.Scope>) => void
