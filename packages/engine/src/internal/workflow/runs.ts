import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type * as Workflow from "effect/workflow/Workflow"
import type { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import type { Claimed, StoredRun } from "../../RunStore.ts"
import type { Commits, Failure } from "./commits.ts"
import * as Exits from "./exits.ts"
import type { Live, Registered } from "./live.ts"
import * as Lives from "./live.ts"
import type { Completed } from "./pass.ts"
import * as Pass from "./pass.ts"
import * as Waiting from "./waiting.ts"

/*
 * The runs of this process. Each has a driver, a fiber that is never interrupted: it runs the body again and again, each
 * time in a fiber and an instance of its own, commits what came of it, and ends when the run is suspended, completed or
 * lost. Whoever wakes or interrupts a run only marks it and cuts off the body; cleaning up is the driver's.
 */

export interface Parts {
  readonly commits: Commits
  readonly engine: () => WorkflowEngine["Service"]
  readonly registered: (workflow: string) => Registered | undefined
  readonly load: (live: Live) => Effect.Effect<void, unknown>
  /** Gives up runs that are not continued here. */
  readonly release: (runs: ReadonlyArray<Claimed>) => Effect.Effect<void>
  readonly fork: (effect: Effect.Effect<void>) => void
  /** How long, in milliseconds, and how many suspended runs are kept in memory. */
  readonly residentFor: number
  readonly residents: number
  readonly settled: (run: StoredRun) => void
}

export interface Runs {
  readonly lives: ReadonlyMap<string, Live>
  /** Runs a run that this process has claimed. */
  readonly begin: (run: StoredRun) => void
  /** The run is somebody else's now. */
  readonly lose: (live: Live) => void
  /** The storage has failed the body, which is run again once it works. */
  readonly stall: (live: Live, failure: Failure) => void
  /** A deferred was completed: cuts off a body that waits for it, so that it goes on with it. */
  readonly preempt: (live: Live, deferred: string) => void
  /** Cuts off the body, whatever it does. */
  readonly cut: (live: Live) => void
  /** Drops suspended runs that have been kept for long enough. */
  readonly evict: Effect.Effect<void>
  /** Abandons runs, all or those of a workflow, and waits until they have ended. */
  readonly abandon: (registered?: Registered) => Effect.Effect<void>
}

export const make = (parts: Parts): Runs => {
  const lives = new Map<string, Live>()
  const resting = new Set<Live>()
  const ended = new Map<Live, Deferred.Deferred<void>>()

  // -------------------------------------------------------------------------------------------------------------------
  // beginning
  // -------------------------------------------------------------------------------------------------------------------

  const begin = (run: StoredRun): void => {
    const live = lives.get(run.executionId)
    if (live !== undefined) {
      if (live.state === "driving") {
        if (live.run.fence === run.fence) Lives.learn(live, run)
        else {
          live.next = run
          // Somebody else had it in between.
          if (run.fence !== live.run.fence + 1) lose(live)
        }
        return
      }
      resting.delete(live)
      if (run.fence === live.run.fence + 1) return drive(adopt(live, run))
      drop(live)
    }
    const registered = parts.registered(run.workflow)
    if (registered === undefined) return parts.fork(parts.release([run]))
    const made = Lives.make(registered, run)
    lives.set(run.executionId, made)
    drive(made)
  }

  const adopt = (live: Live, run: StoredRun): Live => {
    live.run = run
    live.state = "driving"
    Lives.learn(live, run)
    if (Deferred.isDoneUnsafe(live.outcome)) live.outcome = Deferred.makeUnsafe()
    return live
  }

  const drive = (live: Live): void => {
    ended.set(live, Deferred.makeUnsafe())
    parts.fork(
      Effect.uninterruptible(
        Effect.ensuring(
          driver(live),
          Effect.sync(() => {
            const end = ended.get(live)
            ended.delete(live)
            if (end !== undefined) Deferred.doneUnsafe(end, Exit.void)
          })
        )
      )
    )
  }

  // -------------------------------------------------------------------------------------------------------------------
  // driving
  // -------------------------------------------------------------------------------------------------------------------

  const driver = Effect.fnUntraced(function* (live: Live) {
    let failures = 0
    while (!live.lost) {
      const step = yield* Effect.exit(once(live))
      if (Exit.isSuccess(step)) {
        failures = 0
        if (step.value === "done") return
        continue
      }
      // Storage that fails loses nothing: the run goes on from what is stored, once that can be read.
      yield* Effect.annotateLogs(Effect.logError("A run cannot go on for now", step.cause), {
        workflow: live.run.workflow,
        executionId: live.executionId
      })
      live.ending = false
      live.stalled = undefined
      live.outcomes = undefined
      live.deferreds = new Map()
      live.consumed = new Set()
      live.retry = Deferred.makeUnsafe()
      yield* Effect.timeoutOption(Deferred.await(live.retry), Waiting.pause(failures++))
    }
    yield* leave(live)
  })

  const once = Effect.fnUntraced(function* (live: Live) {
    const settled = yield* Pass.run(parts, live)
    if (live.lost) return "again"
    if (live.stalled !== undefined) return yield* live.stalled
    return yield* settled._tag === "Suspended" ? suspend(live, settled) : complete(live, settled)
  })

  const suspend = Effect.fnUntraced(function* (live: Live, result: Workflow.Suspended) {
    const held = result.failed === true
    const { calls, wakes } = live.seen
    if (!held && live.wakes > wakes) return "again"
    const cause = held && result.cause !== undefined ? Exits.encodeCause(result.cause) : null
    const consumed = [...live.consumed]
    live.ending = true
    const row = yield* parts.commits.suspend({
      executionId: live.executionId,
      suspension: { id: live.id, fence: live.run.fence, wakes, calls, held, cause },
      consumed
    })
    live.ending = false
    if (row === undefined) return lost(live)
    for (const name of consumed) live.consumed.delete(name)
    Lives.learn(live, row)
    if (row.status === "running") return "again"
    live.run = row
    const next = live.next
    live.next = undefined
    if (next !== undefined && next.fence === row.fence + 1) {
      adopt(live, next)
      return "again"
    }
    Deferred.doneUnsafe(live.outcome, Exit.succeed(row))
    yield* rest(live)
    if (next !== undefined) begin(next)
    return "done"
  })

  const complete = Effect.fnUntraced(function* (live: Live, settled: Completed) {
    const { encoded, exit } = yield* Pass.encode(live, settled)
    live.ending = true
    const kept = yield* parts.commits.complete({
      executionId: live.executionId,
      result: { id: live.id, fence: live.run.fence, result: encoded },
      how: Exits.outcome(exit),
      clocks: live.clocks,
      consumed: [...live.consumed]
    })
    live.ending = false
    if (!kept) return lost(live)
    const run: StoredRun = { ...live.run, status: "completed", result: encoded }
    end(live)
    parts.settled(run)
    Deferred.doneUnsafe(live.outcome, Exit.succeed(run))
    // Earlier passes are superseded: what they would have compensated, the last one has.
    yield* Scope.close(live.scope, Exit.void)
    return "done"
  })

  const lost = (live: Live): "again" => {
    live.lost = true
    return "again"
  }

  // -------------------------------------------------------------------------------------------------------------------
  // ending
  // -------------------------------------------------------------------------------------------------------------------

  const end = (live: Live): void => {
    live.state = "ended"
    if (lives.get(live.executionId) === live) lives.delete(live.executionId)
  }

  /** What a run has here goes without a trace: others replay it. */
  const close = (live: Live): Effect.Effect<void> => {
    for (const instance of live.instances) instance.abandoned = true
    return Scope.close(live.scope, Exit.void)
  }

  const leave = (live: Live): Effect.Effect<void> => {
    end(live)
    Deferred.doneUnsafe(live.outcome, Exit.succeed(undefined))
    return Effect.andThen(
      close(live),
      Effect.sync(() => {
        if (live.next !== undefined) begin(live.next)
      })
    )
  }

  const rest = Effect.fnUntraced(function* (live: Live) {
    live.state = "resting"
    live.restingSince = yield* Clock.currentTimeMillis
    resting.add(live)
    if (resting.size > parts.residents) drop([...resting][0]!)
  })

  const drop = (live: Live): void => {
    resting.delete(live)
    end(live)
    parts.fork(close(live))
  }

  const evict = Effect.map(Clock.currentTimeMillis, (now) => {
    // In the order of their suspension.
    for (const live of resting) {
      if (live.restingSince + parts.residentFor > now) break
      drop(live)
    }
  })

  const lose = (live: Live): void => {
    if (live.lost || live.state === "ended") return
    live.lost = true
    if (live.state === "resting") return drop(live)
    if (live.retry !== undefined) Deferred.doneUnsafe(live.retry, Exit.void)
    abandonPass(live)
  }

  const abandonPass = (live: Live): void => {
    if (live.pass === undefined) return
    live.pass.instance.abandoned = true
    live.pass.fiber?.interruptUnsafe()
  }

  const abandon = Effect.fnUntraced(function* (registered?: Registered) {
    const mine = [...lives.values()].filter((live) => registered === undefined || live.registered === registered)
    const driving = mine.filter(({ state }) => state === "driving")
    const claims = driving.flatMap(({ id, next, run }) =>
      [run, ...(next === undefined ? [] : [next])].map(({ fence }) => ({ id, fence }))
    )
    const ends = driving.flatMap((live) => ended.get(live) ?? [])
    for (const live of mine) {
      live.next = undefined
      lose(live)
    }
    yield* Effect.forEach(ends, Deferred.await, { discard: true })
    if (claims.length > 0) yield* parts.release(claims)
  })

  return {
    lives,
    begin,
    lose,
    stall: (live, failure) => {
      live.stalled = failure
      abandonPass(live)
    },
    preempt: (live, deferred) => {
      const pass = live.pass
      if (pass === undefined || !pass.instance.awaitedDeferreds.has(deferred)) return
      pass.instance.suspended = true
      pass.fiber?.interruptUnsafe()
    },
    cut: (live) => {
      if (live.pass === undefined) return
      live.pass.cut = true
      live.pass.fiber?.interruptUnsafe()
    },
    evict,
    abandon
  }
}
