import type { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import type { DurableWriter } from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { SqlError } from "effect/sql/SqlError"
import type { RunStore, Waker } from "../../RunStore.ts"
import * as Host from "./host.ts"
import * as Lives from "./live.ts"
import type { Live } from "./live.ts"
import type { Runs } from "./runs.ts"
import * as Waiting from "./waiting.ts"

/*
 * Which runs this process has. It is on a list of owners with a lease that it renews; one whose lease has passed, or whose
 * process is gone, is taken off the list by whoever sees it first, and its runs are anybody's again. What other processes
 * have done is looked for when the database has changed, and once in a while.
 */

export interface Parts {
  readonly store: RunStore["Service"]
  readonly writer: DurableWriter["Service"]
  readonly signal: ChangeSignal["Service"]
  readonly workflows: () => ReadonlyArray<string>
  readonly runs: Runs
  /** The deferreds that a live run may wait for have changed. */
  readonly nudge: (live: Live) => Effect.Effect<void, unknown>
  /** Looks whether runs that are waited for have been completed elsewhere. */
  readonly completions: Effect.Effect<void, unknown>
  /** In milliseconds. */
  readonly lease: number
}

export interface Ownership {
  readonly waker: () => Waker
  /** Looks for something to do at once. */
  readonly look: () => void
  /** A write has failed, and may still have given a run to this process without telling it. */
  readonly doubt: () => void
  readonly loop: Effect.Effect<never>
  readonly leave: Effect.Effect<void>
}

export const make = Effect.fnUntraced(function* (parts: Parts): Effect.fn.Return<Ownership, SqlError> {
  const { runs, signal, store, workflows, writer } = parts
  let owner = yield* enroll(parts)
  let renewAt = (yield* Clock.currentTimeMillis) + parts.lease / 3
  let asked = Deferred.makeUnsafe<void>()
  let doubtful = false
  const look = (): void => {
    Deferred.doneUnsafe(asked, Effect.void)
  }
  const waker = (): Waker => ({ owner, workflows: workflows() })

  const renew = Effect.fnUntraced(function* (now: number) {
    if (now < renewAt) return
    renewAt = now + parts.lease / 3
    if (yield* write(writer, store.renew(owner, now + parts.lease))) return
    // Taken for dead: what it had is somebody else's, and it begins anew.
    for (const live of runs.lives.values()) runs.lose(live)
    owner = yield* enroll(parts)
  })

  const takeOver = Effect.fnUntraced(function* (now: number) {
    const dead = (yield* store.owners).filter(
      (other) => other.id !== owner && (other.leaseUntil <= now || Host.isGone(other))
    )
    if (dead.length > 0) yield* write(writer, store.retire(now, dead))
  })

  /** Gives up runs that are owned and not run here, so that anybody can claim them. */
  const settleDoubt = Effect.fnUntraced(function* (now: number) {
    if (!doubtful) return
    doubtful = false
    // In a write, as no run of this process can begin to be owned, or cease to, during that.
    const strays = Effect.gen(function* () {
      const here = new Set([...runs.lives.values()].map(({ id }) => id))
      const unknown = (yield* store.owned(owner)).filter(({ id }) => !here.has(id))
      if (unknown.length === 0) return
      yield* store.release(now, unknown)
      yield* store.announce
    })
    yield* write(writer, strays)
  })

  const claim = Effect.fnUntraced(function* (now: number) {
    const names = workflows()
    if (names.length === 0) return
    while (yield* store.isWaiting(names)) {
      const claimed = yield* write(writer, store.claim(now, { owner, workflows: names }, claimSize))
      for (const run of claimed) runs.begin(run)
      if (claimed.length < claimSize) return
    }
  })

  /** Learns what others have done to the runs of this process. */
  const reconcile = Effect.gen(function* () {
    const known = [...runs.lives.values()].filter(({ lost, state }) => state === "driving" && !lost)
    if (known.length === 0) return
    const fences = new Map(known.map((live) => [live, live.run.fence]))
    const owned = new Map((yield* store.owned(owner)).map((run) => [run.id, run]))
    for (const live of known) {
      // It went on meanwhile.
      if (live.state !== "driving" || live.run.fence !== fences.get(live) || live.ending) continue
      const run = owned.get(live.id)
      if (run === undefined || run.fence !== live.run.fence) {
        yield* confirmLost(live)
        continue
      }
      if (run.wakes <= live.wakes) continue
      const cut = run.interrupted === "unsafe" && live.interrupted !== "unsafe"
      Lives.learn(live, run)
      if (cut) runs.cut(live)
      yield* parts.nudge(live)
    }
  })

  /** Its own suspension or completion may have come in between. */
  const confirmLost = Effect.fnUntraced(function* (live: Live) {
    const [run] = yield* store.find([live.executionId])
    if (live.state !== "driving" || live.ending) return
    if (run === undefined || run.owner !== owner || run.fence !== live.run.fence) runs.lose(live)
  })

  const tick = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    yield* renew(now)
    yield* takeOver(now)
    yield* settleDoubt(now)
    yield* claim(now)
    yield* reconcile
    yield* parts.completions
    yield* runs.evict
  })

  const loop = Effect.gen(function* () {
    let failures = 0
    while (true) {
      const seen = yield* signal.count
      const waiting = asked
      const exit = yield* Effect.exit(tick)
      if (Exit.isFailure(exit)) {
        yield* Effect.logWarning("The engine could not look for runs", exit.cause)
        yield* Effect.sleep(Waiting.pause(failures++))
        if (asked === waiting) asked = Deferred.makeUnsafe()
        continue
      }
      failures = 0
      const now = yield* Clock.currentTimeMillis
      yield* Effect.raceAllFirst([
        Deferred.await(waiting),
        Effect.andThen(signal.awaitAfter(seen), Effect.sleep(settleMs)),
        Effect.sleep(Math.min(Math.max(renewAt - now, 1), parts.lease / 3))
      ])
      if (asked === waiting) asked = Deferred.makeUnsafe()
    }
  })

  return {
    waker,
    look,
    doubt: () => {
      doubtful = true
      look()
    },
    loop: loop as Effect.Effect<never>,
    leave: Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const self = (yield* store.owners).filter(({ id }) => id === owner)
      if (self.length > 0) yield* write(writer, store.retire(now, self))
    }).pipe(Effect.catchCause((cause) => Effect.logWarning("The engine could not give up its runs", cause)))
  }
})

const claimSize = 100

/** Changes come in bursts: after one, the next are looked at together. */
const settleMs = 20

const enroll = Effect.fnUntraced(function* ({ lease, store, writer }: Parts) {
  const now = yield* Clock.currentTimeMillis
  return yield* write(writer, store.enroll({ ...Host.self, leaseUntil: now + lease }))
})

const write = <A, E, R>(writer: DurableWriter["Service"], effect: Effect.Effect<A, E, R>) =>
  writer.write(effect, { isolation: "read committed" })
