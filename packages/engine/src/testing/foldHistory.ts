/**
 * Random histories of clocks and deferreds, with compactions and rewinds, through which the rows have to be what the
 * journal says.
 *
 * @since 0.1.0
 */
import { assert } from "@effect/vitest"
import { sha256 } from "@strata/durable/Digest"
import { write } from "@strata/durable/DurableWriter"
import { Checkpoints } from "@strata/journal/Checkpoint"
import { Compaction } from "@strata/journal/Compaction"
import type { NewEvent } from "@strata/journal/Event"
import { Journal } from "@strata/journal/Journal"
import { Rewind } from "@strata/journal/Rewind"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import { ClockStorage } from "../ClockStorage.ts"
import { ClockStore } from "../ClockStore.ts"
import * as DeferredClockFold from "../DeferredClockFold.ts"
import { DeferredStorage } from "../DeferredStorage.ts"
import * as FoldJoin from "../internal/foldJoin.ts"
import * as FoldRows from "../internal/foldRows.ts"
import * as RunStream from "../RunStream.ts"
import * as StateEvents from "../StateEvents.ts"
import type { Services } from "./harness.ts"
import * as Harness from "./harness.ts"

const runs = ["r", "run/😀", "run/\ufffd"]

/**
 * Draws steps and takes them. After each compaction and rewind, and at the end, clock table and stamps are deleted, and
 * have to be the same after a rebuild.
 *
 * @since 0.1.0
 * @category operations
 */
export const history = (options: {
  readonly seed: number
  readonly steps: number
}): Effect.Effect<void, unknown, Services> =>
  Effect.gen(function* () {
    yield* Harness.start(...runs)
    for (let step = 0; step < options.steps; step++) {
      const drawn = yield* draw
      yield* drawn.take
      if (drawn.checked || step === options.steps - 1) yield* check
    }
  }).pipe(Random.withSeed(options.seed))

// ---------------------------------------------------------------------------------------------------------------------
// checking
// ---------------------------------------------------------------------------------------------------------------------

const check = Effect.gen(function* () {
  const before = yield* Harness.rows(...runs)
  let clocks = 0
  let deferreds = 0
  for (const [i, executionId] of runs.entries()) {
    const state = yield* DeferredClockFold.capture(executionId)
    const { clocks: folded, stamps } = FoldRows.of(executionId, state)
    assert.sameDeepMembers([...before[i]!.clocks], [...folded])
    assert.sameDeepMembers(
      before[i]!.deferreds.map(({ completedAt, consumedAt, name }) => ({
        executionId,
        name,
        completedAt,
        consumedAt
      })),
      [...stamps]
    )
    assert.deepStrictEqual(FoldJoin.completions(executionId, state, before[i]!.deferreds), [])
    clocks += folded.length
    deferreds += stamps.length
  }
  yield* Harness.wipe(...runs)
  const report = yield* DeferredClockFold.rebuild()
  assert.deepInclude(report, { clocks, deferreds, unexplained: 0 })
  assert.deepStrictEqual(yield* Harness.rows(...runs), before)
})

// ---------------------------------------------------------------------------------------------------------------------
// drawing
// ---------------------------------------------------------------------------------------------------------------------

interface Step {
  readonly take: Effect.Effect<unknown, unknown, Services>
  readonly checked: boolean
}

const draw: Effect.Effect<Step> = Effect.map(Random.Random, (random) => {
  const below = (limit: number) => Math.floor(random.nextDoubleUnsafe() * limit)
  const pick = <A>(items: ReadonlyArray<A>): A => items[below(items.length)]!
  const run = pick(runs)
  const name = `n${below(8)}`
  const unchecked = (take: Step["take"]): Step => ({ take, checked: false })
  const checked = (take: Step["take"]): Step => ({ take, checked: true })
  const steps: ReadonlyArray<readonly [weight: number, step: () => Step]> = [
    [20, () => unchecked(Harness.schedule(run, name, below(40)))],
    [14, () => unchecked(Harness.complete(run, name, below(3), below(2) === 0 ? undefined : name))],
    [14, () => unchecked(Harness.consume(run, name, Harness.deferredOf(name)))],
    [10, () => unchecked(Effect.andThen(TestClock.adjust(below(20)), Harness.fire(1 + below(4))))],
    [6, () => unchecked(write(ClockStore.use((store) => store.cancel([{ executionId: run, name }]))))],
    [2, () => unchecked(write(ClockStore.use((store) => store.settle([run]))))],
    [6, () => unchecked(noise(run, pick([name, Harness.deferredOf(name)])))],
    [6, () => unchecked(Effect.exit(write(Effect.andThen(rolledBack(run, name), Effect.fail("no")))))],
    [4, () => unchecked(at(run, below(6), (stream, seq) => Checkpoints.use((all) => all.take({ stream, seq }))))],
    [5, () => checked(at(run, below(8), (stream, seq) => Compaction.use((all) => all.compact({ stream, seq }))))],
    [6, () => checked(at(run, below(10), (stream, after) => Rewind.use((all) => all.rewind({ stream, after }))))]
  ]
  let rest = below(steps.reduce((sum, [weight]) => sum + weight, 0))
  for (const [weight, step] of steps) {
    if (rest < weight) return step()
    rest -= weight
  }
  return unchecked(Effect.void)
})

/** Entries that change nothing: of what was first already, and of what there is not. */
const noise = (executionId: string, name: string) =>
  Effect.gen(function* () {
    const { ClockCompleted, ClockScheduled, DeferredCompleted, DeferredConsumed } = StateEvents
    const [clock] = yield* ClockStorage.use((storage) => storage.find([{ executionId, name }]))
    const [deferred] = yield* DeferredStorage.use((storage) => storage.find([{ executionId, name }]))
    const at = (yield* Clock.currentTimeMillis) + 1
    const events: Array<NewEvent> = []
    if (clock !== undefined) events.push(ClockScheduled.make({ name, deferred: "other", deadline: at + 1000, at }))
    if (clock?.completedAt !== null) events.push(ClockCompleted.make({ name, outcome: "settled", at }))
    if (deferred !== undefined) events.push(DeferredCompleted.make({ name, exit: sha256("other"), metadata: null, at }))
    if (deferred?.consumedAt !== null) events.push(DeferredConsumed.make({ name, at }))
    yield* write(Journal.use((journal) => journal.append(RunStream.of(executionId), events)))
  })

/** All of it has to be gone. */
const rolledBack = (run: string, name: string) =>
  Effect.andThen(Harness.schedule(run, name, 1), Harness.complete(run, `x${name}`, 1))

/** At the entry that is `back` entries before the last one, where there is one. */
const at = <A, E, R>(
  executionId: string,
  back: number,
  f: (stream: ReturnType<typeof RunStream.of>, seq: number) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const stream = RunStream.of(executionId)
    const journal = yield* Journal
    const floor = yield* journal.floor(stream)
    const entries = yield* journal.read({ stream, after: Math.max(floor - 1, 0) })
    const entry = entries[entries.length - 1 - back]
    if (entry === undefined) return
    yield* f(stream, entry.seq)
  })
