/**
 * Makes what was recorded here known to other machines, after it was committed. A recording leaves a dirty row in its
 * own write; publication follows those rows, sends blobs and then the entry to the shared tier, and remembers what is
 * there. So a commit never waits for a network, and a crash, or a tier that is down for a day, loses nothing.
 *
 * @since 0.1.0
 */
import type { DirtyQueueError, DirtyQueueOptions } from "@strata/dirty-queue/DirtyQueue"
import { DurableWriter } from "@strata/durable/DurableWriter"
import { Journal } from "@strata/journal/Journal"
import type { StreamName } from "@strata/journal/StreamName"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { SqlError } from "effect/sql/SqlError"
import { ArtifactSync } from "./ArtifactSync.ts"
import type { Recording } from "./CacheEntry.ts"
import type { CacheError } from "./CacheError.ts"
import * as CacheEvents from "./CacheEvents.ts"
import { CacheSync } from "./CacheSync.ts"
import * as Run from "./internal/publicationRun.ts"
import type * as Publisher from "./internal/publisher.ts"
import { PublicationStorage } from "./PublicationStorage.ts"
import type { Refusal } from "./Refusal.ts"
import type { StepKey } from "./StepKey.ts"
import type { State } from "./TierGuard.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * How entries are published.
 *
 * @since 0.1.0
 * @category models
 */
export interface PublicationOptions {
  /** Where refusals are journaled. Default `CacheEvents.stream`. */
  readonly stream?: StreamName | undefined
  /** How many entries are sent at a time. Default 8. */
  readonly concurrency?: number | undefined
  /** How many bytes of results and artifacts are sent at a time; a larger entry goes alone. Default 64 MiB. */
  readonly maxBytes?: number | undefined
  /** How many entries are claimed, and acknowledged, together. Default 50. */
  readonly batchSize?: number | undefined
  /** First pause while the tier is away, doubled as long as it is. Default 1 second. */
  readonly pauseBase?: Duration.Input | undefined
  /** The longest pause. Default 30 seconds. */
  readonly pauseCap?: Duration.Input | undefined
  /**
   * How long the end of the layer waits for what can be published still. It does not wait for a tier that is away; what
   * is left is published when the cache is opened again. Default 5 seconds.
   */
  readonly drainTimeout?: Duration.Input | undefined
}

/**
 * The settings of a queue that publication alone uses. Sending an entry kills no process, so an entry that was on its way
 * when one was killed, however often, is no dead letter. What a tier refuses for ever becomes one at once, and what may
 * succeed later is tried for days.
 *
 * @since 0.1.0
 * @category models
 */
export const queueOptions: DirtyQueueOptions = { maxAttempts: 1_000 }

/**
 * An entry that is not in the shared tier, and why.
 *
 * @since 0.1.0
 * @category models
 */
export interface Refused {
  readonly key: StepKey
  readonly recording: Recording
  readonly refusal: Refusal
}

/**
 * What became of keys that were to be published at once: shared now, refused, or without an entry to publish.
 *
 * @since 0.1.0
 * @category models
 */
export interface Report {
  readonly published: ReadonlyArray<StepKey>
  readonly refused: ReadonlyArray<Refused>
  readonly absent: ReadonlyArray<StepKey>
}

/**
 * How publication is getting on.
 *
 * - `published`: keys whose entry was sent, or found, there.
 * - `pending`: keys that wait to be published, those that are `failing` (refused, to be tried again) among them.
 * - `dead`: keys that are not tried again, until they are recorded anew or revived.
 * - `refusals`: of what is not published, the latest first; 100 at most.
 *
 * @since 0.1.0
 * @category models
 */
export interface Status {
  /** Absent when there is no shared tier, or when it is only read. */
  readonly tier: string | undefined
  readonly published: number
  readonly pending: number
  readonly failing: number
  readonly dead: number
  readonly refusals: ReadonlyArray<Refused & { readonly refusedAt: number }>
  readonly breaker: State | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Publication to the shared tier.
 *
 * @since 0.1.0
 * @category services
 */
export class Publication extends Context.Service<
  Publication,
  {
    /**
     * Publishes these keys (default: all that are not published) now, whatever happened to them before, and tells what
     * became of them. Dead letters are tried too.
     */
    readonly publishNow: (
      keys?: ReadonlyArray<StepKey>
    ) => Effect.Effect<Report, SqlError | DirtyQueueError | CacheError>
    readonly status: Effect.Effect<Status, SqlError | CacheError>
    /**
     * Waits until nothing is left to publish but what is failing, the tier is away, or `timeout` (default: the layer's
     * `drainTimeout`) is over. Gives the number of keys that are left.
     */
    readonly drain: (options?: {
      readonly timeout?: Duration.Input | undefined
    }) => Effect.Effect<number, SqlError | DirtyQueueError>
    /** Has dead letters tried again, as after a credential was corrected, and tells how many. */
    readonly revive: Effect.Effect<number, SqlError>
  }
>()("@strata/cache/Publication") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Registers the follower of this tier and runs it for the life of the scope, which drains it before it closes. Entries
 * that are older than the registration are enqueued once. The step cache in context has to be the local one, and the
 * queue and the storage those of its database.
 *
 * Without a `CacheSync` in context, or with one that has no tier or only reads, nothing is registered or published.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (options: PublicationOptions = {}) {
  const shared = yield* Effect.serviceOption(CacheSync)
  if (Option.isNone(shared) || shared.value.tier === undefined || shared.value.readOnly) return nowhere
  const publisher: Publisher.Options = {
    tier: shared.value.tier,
    cache: shared.value,
    artifacts: Option.getOrUndefined(yield* Effect.serviceOption(ArtifactSync)),
    storage: yield* PublicationStorage,
    writer: yield* DurableWriter,
    journal: yield* Journal,
    stream: options.stream ?? CacheEvents.stream,
    maxBytes: options.maxBytes ?? 64 * 1024 * 1024
  }
  return Publication.of(yield* Run.start(publisher, options))
})

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Publication for the life of the layer, see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options?: PublicationOptions) => Layer.effect(Publication, make(options))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const nowhere = Publication.of({
  publishNow: () => Effect.succeed({ published: [], refused: [], absent: [] }),
  status: Effect.succeed({
    tier: undefined,
    published: 0,
    pending: 0,
    failing: 0,
    dead: 0,
    refusals: [],
    breaker: undefined
  }),
  drain: () => Effect.succeed(0),
  revive: Effect.succeed(0)
})
