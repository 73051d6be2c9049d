import { DurableWriter, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SqlError } from "effect/sql/SqlError"
import { ChangeSignal } from "../ChangeSignal.ts"
import type { DirtyQueue, DirtyQueueOptions } from "../DirtyQueue.ts"
import { DirtyQueueError, InvalidPrefix, NotRegistered, OutsidePrefix, PrefixMismatch } from "../DirtyQueueError.ts"
import type { Answer, DirtyQueueStorage, StorageFilter } from "../DirtyQueueStorage.ts"
import type { Filter, ListOptions, Stats } from "../DirtyRow.ts"
import * as Metrics from "../Metrics.ts"
import { type FollowerName, type Path, refusal, type Scope } from "../Path.ts"
import * as Prefix from "../Prefix.ts"
import { guarded } from "./guarded.ts"
import * as Rows from "./rows.ts"
import * as Settings from "./settings.ts"
import * as Text from "@strata/durable/Text"

type Queue = DirtyQueue["Service"]

export const make = Effect.fnUntraced(function* (
  storage: DirtyQueueStorage,
  options: DirtyQueueOptions = {}
): Effect.fn.Return<Queue, never, DurableWriter | ChangeSignal> {
  const writer = yield* DurableWriter
  const signal = yield* ChangeSignal
  const wake = WriteTransaction.use((transaction) => transaction.afterCommit(signal.notify))
  return assemble<WriteTransaction>(options, {
    storage,
    write: (effect) => writer.write(effect, guarded),
    notify: storage.announce === undefined ? wake : Effect.andThen(storage.announce, wake)
  })
})

/** Over a store whose changes commit by themselves: followers are woken after each. */
export const makeUnjoined = Effect.fnUntraced(function* (
  storage: DirtyQueueStorage<never>,
  options: DirtyQueueOptions = {}
): Effect.fn.Return<Queue, never, ChangeSignal> {
  const signal = yield* ChangeSignal
  return assemble<never>(options, { storage, write: (effect) => effect, notify: signal.notify })
})

/** What tiers differ in; `R` is what the changes of the storage run in. */
interface Tier<R> {
  readonly storage: DirtyQueueStorage<R>
  readonly write: <A, E>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError>
  /** Wakes followers when the change before it has committed. */
  readonly notify: Effect.Effect<void, SqlError, R>
}

interface Parts<R> extends Tier<R> {
  readonly settings: Settings.Settings
  readonly now: Effect.Effect<number, SqlError>
  readonly claimNow: NonNullable<DirtyQueueStorage<R>["claimNow"]>
}

const assemble = <R>(options: DirtyQueueOptions, tier: Tier<R>): Queue => {
  const { storage } = tier
  const now = options.clock === "database" ? storage.databaseTime : Clock.currentTimeMillis
  const parts: Parts<R> = {
    ...tier,
    settings: Settings.make(options),
    now,
    claimNow:
      options.clock === "database" && storage.claimNow !== undefined ? storage.claimNow : claimAfter(now, storage.claim)
  }
  return { ...registry(parts), ...intake(parts), ...claims(parts), ...answers(parts), ...lists(parts), ...turns(parts) }
}

// ---------------------------------------------------------------------------------------------------------------------
// registrations
// ---------------------------------------------------------------------------------------------------------------------

const registry = <R>({ now, storage, write }: Parts<R>): Pick<Queue, "register" | "unregister" | "registrations"> => ({
  register: Effect.fn("DirtyQueue.register")(function* (options) {
    const { follower, prefix = "", scope } = options
    if (!Text.isStorable(prefix)) {
      return yield* refuse(new InvalidPrefix({ prefix }))
    }
    const long = refusal("follower", follower) ?? refusal("scope", scope)
    if (long !== undefined) return yield* refuse(long)
    const { created, registration } = yield* write(
      Effect.flatMap(now, (now) => storage.register(now, { follower, scope, prefix }))
    )
    if (registration.prefix !== prefix) {
      return yield* refuse(new PrefixMismatch({ follower, scope, registered: registration.prefix, requested: prefix }))
    }
    return { ...Rows.toRegistration(registration), created }
  }),

  unregister: Effect.fn("DirtyQueue.unregister")((options) =>
    write(Effect.flatMap(now, (now) => storage.unregister(now, options)))
  ),

  registrations: Effect.fn("DirtyQueue.registrations")((filter) =>
    Effect.map(storage.registrations(toFilter(filter)), (found) => found.map(Rows.toRegistration))
  )
})

// ---------------------------------------------------------------------------------------------------------------------
// backfill and revival
// ---------------------------------------------------------------------------------------------------------------------

const intake = <R>({ notify, now, storage, write }: Parts<R>): Pick<Queue, "enqueue" | "revive"> => {
  const insert = Effect.fnUntraced(function* (follower: FollowerName, scope: Scope, paths: ReadonlyArray<Path>) {
    const [registration] = yield* storage.registrations({ follower, scope })
    if (registration === undefined) {
      return yield* refuse(new NotRegistered({ follower, scope }))
    }
    const { id, prefix } = registration
    const outside = paths.find((path) => !Prefix.covers(prefix, path))
    if (outside !== undefined) {
      return yield* refuse(new OutsidePrefix({ follower, scope, prefix, path: outside }))
    }
    for (const path of paths) {
      const long = refusal("path", path)
      if (long !== undefined) return yield* refuse(long)
    }
    yield* storage.enqueue(yield* now, { registration: id, paths })
    yield* notify
  })

  return {
    enqueue: Effect.fn("DirtyQueue.enqueue")(function* (options) {
      // In order, so that index entries are next to each other.
      const paths = Text.sortedBy(Array.from(new Set(options.paths)), (path) => path)
      if (paths.length > 0) {
        yield* write(insert(options.follower, options.scope, paths))
      }
    }),

    revive: Effect.fn("DirtyQueue.revive")((options) =>
      write(
        Effect.flatMap(now, (now) =>
          storage.revive(now, { ...toFilter(options), prefix: options?.prefix ?? "", path: options?.path })
        ).pipe(Effect.tap(notify))
      )
    )
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// claims and answers
// ---------------------------------------------------------------------------------------------------------------------

/** A claim at the time that is told just before it. */
const claimAfter =
  <R>(now: Effect.Effect<number, SqlError>, claim: DirtyQueueStorage<R>["claim"]): Parts<R>["claimNow"] =>
  (options) =>
    Effect.flatMap(now, (now) =>
      Effect.map(claim(now, options), (claimed) => (claimed === undefined ? undefined : { ...claimed, now }))
    )

const claims = <R>({ claimNow, settings, write }: Parts<R>): Pick<Queue, "claim"> => ({
  claim: Effect.fn("DirtyQueue.claim")(function* (options) {
    const { follower, scope } = options
    yield* Effect.annotateCurrentSpan({ follower, scope, limit: options.limit })
    const request = {
      follower,
      scope,
      limit: Math.min(Math.floor(options.limit), largestClaim),
      leaseFor: Settings.leaseMillis(settings, options.lease),
      maxAttempts: settings.maxAttempts,
      backfillPermille: settings.backfillPermille
    }
    // The time is taken inside: a write may have to wait, and the lease starts when it is given.
    const claimed = yield* write(claimNow(request))
    if (claimed === undefined) {
      return yield* refuse(new NotRegistered({ follower, scope }))
    }
    yield* Metrics.recordClaim({
      follower,
      claimed: claimed.claims.length,
      dead: claimed.dead,
      lagMillis: claimed.now - (claimed.claims[0]?.queuedAt ?? claimed.now)
    })
    return claimed.claims.map((row) => Rows.toClaim(follower, scope, row))
  })
})

const answers = <R>(parts: Parts<R>): Pick<Queue, "ack" | "fail" | "release" | "renew"> => {
  const { notify, now, settings, storage, write } = parts

  /** Rows that became free before their leases ended are news to followers that sleep until then. */
  const wakeFor = (given: ReadonlyArray<Answer>, freed: (answer: Answer) => boolean) =>
    given.some(freed) ? notify : Effect.void

  const answer = (operation: "ack" | "release" | "renew", given: Effect.Effect<ReadonlyArray<Answer>, SqlError, R>) =>
    write(
      Effect.tap(given, (given) =>
        wakeFor(given, (answer) => answer === "Superseded" || (operation === "release" && answer === "Done"))
      )
    ).pipe(Effect.tap((given) => Metrics.recordAnswers(operation, given)))

  return {
    ack: Effect.fn("DirtyQueue.ack")((claims) => (claims.length === 0 ? none : answer("ack", storage.ack(claims)))),

    release: Effect.fn("DirtyQueue.release")((claims, options) =>
      claims.length === 0
        ? none
        : answer(
            "release",
            Effect.flatMap(now, (now) =>
              storage.release(now, claims, options?.delay === undefined ? 0 : Settings.millis(options.delay))
            )
          )
    ),

    renew: Effect.fn("DirtyQueue.renew")((claims, options) =>
      claims.length === 0
        ? none
        : answer(
            "renew",
            Effect.flatMap(now, (now) => storage.renew(now, claims, Settings.leaseMillis(settings, options?.lease)))
          )
    ),

    fail: Effect.fn("DirtyQueue.fail")(function* (failures) {
      if (failures.length === 0) return []
      const stored = yield* Effect.forEach(failures, (failure) =>
        Effect.map(
          failure.delay === undefined
            ? Settings.retryDelay(settings, failure.claim.attempts)
            : Effect.succeed(Settings.millis(failure.delay)),
          (delay) => ({
            id: failure.claim.id,
            registration: failure.claim.registration,
            path: failure.claim.path,
            version: failure.claim.version,
            lease: failure.claim.lease,
            error: Text.toStorable(failure.error, errorLength),
            dead: failure.kind === "dead",
            delay
          })
        )
      )
      const { answers, dead } = yield* write(
        Effect.flatMap(now, (now) =>
          storage.fail(now, stored, { maxAttempts: settings.maxAttempts, minInterval: settings.minRetryInterval })
        ).pipe(Effect.tap(({ answers }) => wakeFor(answers, (answer) => answer !== "Lost")))
      )
      yield* Metrics.recordAnswers("fail", answers, dead)
      return answers
    })
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// reads
// ---------------------------------------------------------------------------------------------------------------------

const lists = <R>(parts: Parts<R>): Pick<Queue, "pending" | "failing" | "deadLetters" | "stats" | "nextReadyAt"> => {
  const { now, storage } = parts

  const list = Effect.fnUntraced(function* (
    kind: "all" | "failing" | "dead",
    options: (ListOptions & { readonly versionAtMost?: number | undefined }) | undefined
  ) {
    const time = yield* now
    const rows = yield* storage.list({
      ...toFilter(options),
      kind,
      prefix: options?.prefix ?? "",
      sinceAtMost: options?.versionAtMost ?? Number.MAX_SAFE_INTEGER,
      after: options?.after,
      limit: Math.min(options?.limit ?? 100, Number.MAX_SAFE_INTEGER)
    })
    return rows.map((row) => Rows.toDirtyRow(row, time))
  })

  return {
    pending: Effect.fn("DirtyQueue.pending")((options) => list("all", options)),
    failing: Effect.fn("DirtyQueue.failing")((options) => list("failing", options)),
    deadLetters: Effect.fn("DirtyQueue.deadLetters")((options) => list("dead", options)),

    stats: Effect.fn("DirtyQueue.stats")(function* (filter) {
      const time = yield* now
      const stats = Rows.toStats(yield* storage.stats(time, toFilter(filter)))
      yield* setGauges(stats, filter, time)
      return stats
    }),

    nextReadyAt: Effect.fn("DirtyQueue.nextReadyAt")((filter) =>
      Effect.map(storage.nextReadyAt(toFilter(filter)), Option.fromNullishOr)
    )
  }
}

/** Gauges are those of a follower in all its scopes, so counts of one scope do not set them. */
const setGauges = (stats: Stats, filter: Filter | undefined, time: number): Effect.Effect<void> =>
  filter?.scope !== undefined
    ? Effect.void
    : Effect.forEach(
        stats.followers,
        (counts) => Metrics.recordDepth(counts.follower, counts, time - (counts.oldestDirtyAt ?? time)),
        { discard: true }
      )

const turns = <R>(parts: Parts<R>): Pick<Queue, "readyScopes" | "markServed" | "currentVersion" | "newEpoch"> => {
  const { notify, now, storage, write } = parts
  return {
    readyScopes: Effect.fn("DirtyQueue.readyScopes")((options) =>
      Effect.flatMap(now, (now) =>
        storage.readyScopes(now, { follower: options.follower, limit: options.limit ?? 100 })
      ).pipe(Effect.map((scopes) => scopes.map(Rows.toScope)))
    ),

    markServed: Effect.fn("DirtyQueue.markServed")(function* ({ follower, scope }) {
      if (!(yield* write(Effect.flatMap(now, (now) => storage.markServed(now, { follower, scope }))))) {
        return yield* refuse(new NotRegistered({ follower, scope }))
      }
    }),

    currentVersion: storage.currentVersion,

    newEpoch: write(Effect.flatMap(now, (now) => storage.newEpoch(now, epochJump)).pipe(Effect.andThen(notify))).pipe(
      Effect.withSpan("DirtyQueue.newEpoch")
    )
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const errorLength = 2000

const largestClaim = 100_000

/** More versions than are drawn between a backup and its restoration; 8,000 epochs fit into a safe integer. */
const epochJump = 2 ** 40

const none: Effect.Effect<ReadonlyArray<Answer>> = Effect.succeed([])

const refuse = (reason: DirtyQueueError["reason"]): Effect.Effect<never, DirtyQueueError> =>
  Effect.fail(new DirtyQueueError({ reason }))

const toFilter = (filter: Filter | undefined): StorageFilter => ({ follower: filter?.follower, scope: filter?.scope })
