import { Path } from "@strata/dirty-queue/Path"
import type * as ContentReader from "@strata/follower/ContentReader"
import type * as IndexWriter from "@strata/follower/IndexWriter"
import * as ProcessingError from "@strata/follower/ProcessingError"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { CacheEntry } from "../CacheEntry.ts"
import type { CacheError } from "../CacheError.ts"
import type { Refusal } from "../Refusal.ts"
import type { StepCache } from "../StepCache.ts"
import { StepKey } from "../StepKey.ts"
import * as Publisher from "./publisher.ts"

/** The path of a key in the changelog. */
export const pathOf = (key: StepKey): Path => Path.make(key)

/**
 * The current entry of a key, known by its recording; loading it is publishing it, which the follower does outside of
 * any transaction.
 */
export const reader = (
  local: StepCache["Service"],
  publisher: Publisher.Options,
  send: Publisher.Send
): ContentReader.ContentReader<string> => {
  const publish = publishOrFail(publisher, send)
  return {
    read: ({ path }) =>
      Effect.map(
        Effect.mapError(local.get(StepKey.make(path)), storeFailed),
        (found): Option.Option<ContentReader.Content<string>> =>
          found._tag === "Miss"
            ? Option.none()
            : Option.some({
                digest: found.entry.metadata.recording,
                load: Effect.as(publish(found.entry), found.entry.metadata.recording)
              })
      )
  }
}

const publishOrFail =
  (publisher: Publisher.Options, send: Publisher.Send) =>
  (entry: CacheEntry): Effect.Effect<void, ProcessingError.ProcessingError> =>
    Effect.flatMap(send(entry), (refusal) => {
      if (Option.isNone(refusal)) return Effect.void
      return Publisher.journalRefusal(publisher)(entry, refusal.value).pipe(
        // Tried again, since it has to be told.
        Effect.mapError((error) => ProcessingError.transient("A refusal could not be journaled", error)),
        Effect.andThen(Effect.fail(toProcessingError(refusal.value)))
      )
    })

const storeFailed = (error: CacheError): ProcessingError.ProcessingError =>
  ProcessingError.transient(error.message, error)

/** Remembers what is published in the write that acknowledges it. */
export const writer = ({ storage, tier }: Publisher.Options): IndexWriter.Transactional<string> => ({
  mode: "transactional",
  digests: (_scope, paths) =>
    Effect.map(
      storage.published(tier, paths),
      (rows) => new Map(rows.map(({ key, recording }) => [Path.make(key), recording]))
    ),
  write: Effect.fnUntraced(function* ({ removals, upserts }) {
    const now = yield* Clock.currentTimeMillis
    if (upserts.length > 0) {
      yield* storage.publish(
        now,
        tier,
        upserts.map(({ digest, path }) => ({ key: path, recording: digest }))
      )
    }
    if (removals.length > 0) {
      yield* storage.forget(
        tier,
        removals.map(({ path }) => path)
      )
    }
  })
})

/** What a refusal means to the follower. */
const toProcessingError = (refusal: Refusal): ProcessingError.ProcessingError => {
  const message = `${refusal.kind} (${refusal.stage}): ${refusal.detail}`
  switch (refusal.outlook) {
    case "away":
      return ProcessingError.busy(message)
    case "never":
      return ProcessingError.poison(message)
    case "later":
      return ProcessingError.transient(message)
  }
}
