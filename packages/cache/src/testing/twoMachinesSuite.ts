/**
 * Two machines with a shared tier between them, which is killed and comes back: 40 to 44, as they are seen from outside.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import * as CanonicalJson from "@strata/durable/CanonicalJson"
import { sha256 } from "@strata/durable/Digest"
import * as Text from "@strata/durable/Text"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as ArtifactStore from "../ArtifactStore.ts"
import type { Remote } from "../Cache.ts"
import { type CacheEntry, Recording } from "../CacheEntry.ts"
import type { CacheError } from "../CacheError.ts"
import { Publication } from "../Publication.ts"
import { StepCache } from "../StepCache.ts"
import * as Entries from "./entries.ts"

// ---------------------------------------------------------------------------------------------------------------------
// tiers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A tier to test, on a server that can be killed.
 *
 * @since 0.1.0
 * @category models
 */
export interface TwoMachinesTier<E, E2> {
  /** Starts an empty server, for the scope. */
  readonly serve: Effect.Effect<SharedServer<E>, E, Scope.Scope>
  /**
   * A machine with its state in a folder of its own, which shares through `remote`. Its guard and its publication should
   * pause for no more than a second.
   */
  readonly machine: (remote: Remote, folder: string) => Layer.Layer<MachineServices, E2>
  /** Whether the server has after a restart what it had when it was killed. */
  readonly keeps: boolean
}

/**
 * A server that runs, and how it is reached.
 *
 * @since 0.1.0
 * @category models
 */
export interface SharedServer<E> {
  readonly connect: Remote
  /** Ends it at once. */
  readonly kill: Effect.Effect<void, E>
  /** Starts it again, at the same address. */
  readonly restart: Effect.Effect<void, E>
}

/**
 * What is used of a machine.
 *
 * @since 0.1.0
 * @category models
 */
export type MachineServices = StepCache | ArtifactStore.ArtifactStore | Publication

// ---------------------------------------------------------------------------------------------------------------------
// suite
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Runs two machines on one tier, on the live clock.
 *
 * @since 0.1.0
 * @category suites
 */
export const twoMachinesSuite = <E, E2>(name: string, tier: TwoMachinesTier<E, E2>): void => {
  const start = ({ connect }: SharedServer<E>) =>
    Effect.flatMap(temporaryFolder, (folder) => Layer.build(tier.machine(connect, folder)))

  describe(`two machines (${name})`, () => {
    it.live(
      "what one has run, the other one has, all of it",
      () =>
        Effect.gen(function* () {
          const server = yield* tier.serve
          const [a, b] = [yield* start(server), yield* start(server)]
          const ran = yield* runAll(steps).pipe(Effect.provideContext(a))
          assert.deepStrictEqual(sourcesOf(ran), { body: steps.length })
          yield* Effect.provideContext(awaitPublished(steps.length), a)
          const found = yield* runAll(steps).pipe(Effect.provideContext(b))
          assert.strictEqual(sourcesOf(found)["shared"], steps.length)
          assert.deepStrictEqual(entriesOf(found), entriesOf(ran))
          assert.deepStrictEqual(
            yield* Effect.provideContext(contentsOf(found), b),
            yield* Effect.provideContext(contentsOf(ran), a)
          )
          // It has them of its own now, and gives nothing back that came from there.
          assert.deepStrictEqual(sourcesOf(yield* Effect.provideContext(runAll(steps), b)), { local: steps.length })
          assert.deepInclude(yield* Effect.provideContext(status, b), { pending: 0, failing: 0, dead: 0 })
        }),
      limitMs
    )

    it.live(
      "one that is killed in the middle of a run costs no result, and has all of them when it is back",
      () =>
        Effect.gen(function* () {
          const server = yield* tier.serve
          const [a, b] = [yield* start(server), yield* start(server)]
          // It is killed while results are on their way, some there already.
          const killed = yield* Deferred.make<void>()
          const killer = Effect.andThen(
            awaitStatus(({ published }) => published >= 5),
            server.kill
          ).pipe(Effect.andThen(Deferred.succeed(killed, undefined)), Effect.provideContext(a))
          const half = steps.length / 2
          const run = (step: string, i: number) =>
            Effect.andThen(i < half ? Effect.sleep("5 millis") : Deferred.await(killed), runStep(step))
          const [ran] = yield* Effect.all(
            [Effect.forEach(steps, run, { concurrency: 4 }).pipe(Effect.provideContext(a)), killer],
            { concurrency: 2 }
          )
          assert.deepStrictEqual(sourcesOf(ran), { body: steps.length })
          // The other machine does without it meanwhile.
          const [alone] = yield* runAll(["alone"]).pipe(Effect.provideContext(b))
          assert.strictEqual(alone?.source, "body")
          const away = yield* Effect.provideContext(status, a)
          assert.isAtLeast(away.pending, half)
          assert.strictEqual(away.dead, 0)
          assert.deepStrictEqual(entriesOf(yield* Effect.provideContext(runAll(steps), a)), entriesOf(ran))

          yield* server.restart
          yield* Effect.provideContext(awaitPublished(steps.length), a)
          yield* Effect.provideContext(awaitPublished(1), b)
          const there = tier.keeps ? steps.length : away.pending
          const c = yield* start(server)
          const found = yield* runAll([...steps, "alone"]).pipe(Effect.provideContext(c))
          assert.isAtLeast(sourcesOf(found)["shared"] ?? 0, there + 1)
          const results = new Map(entriesOf([...ran, alone!]).map((entry) => [entry.key, entry.digest]))
          for (const { entry } of found) assert.strictEqual(entry.digest, results.get(entry.key))
          const shared = found.filter(({ source }) => source === "shared")
          assert.lengthOf(yield* Effect.provideContext(contentsOf(shared), c), shared.length)
        }),
      limitMs
    )

    it.live(
      "one that is away when a machine starts is used when it comes",
      () =>
        Effect.gen(function* () {
          const server = yield* tier.serve
          yield* server.kill
          const a = yield* start(server)
          const ran = yield* runAll(steps.slice(0, 8)).pipe(Effect.provideContext(a))
          assert.deepStrictEqual(sourcesOf(ran), { body: 8 })
          assert.deepInclude(yield* Effect.provideContext(status, a), { published: 0, pending: 8, dead: 0 })
          yield* server.restart
          yield* Effect.provideContext(awaitPublished(8), a)
          const b = yield* start(server)
          const found = yield* runAll(steps.slice(0, 8)).pipe(Effect.provideContext(b))
          assert.deepStrictEqual(sourcesOf(found), { shared: 8 })
          assert.deepStrictEqual(entriesOf(found), entriesOf(ran))
        }),
      limitMs
    )

    it.live(
      "two that run the same at once agree with themselves, and a third one with one of them",
      () =>
        Effect.gen(function* () {
          const server = yield* tier.serve
          const [a, b] = [yield* start(server), yield* start(server)]
          const [inA, inB] = yield* Effect.all(
            [
              Effect.provideContext(
                Effect.forEach(steps, (step) => runStep(step, "a"), { concurrency: 4 }),
                a
              ),
              Effect.provideContext(
                Effect.forEach(steps, (step) => runStep(step, "b"), { concurrency: 4 }),
                b
              )
            ],
            { concurrency: 2 }
          )
          for (const machine of [a, b])
            yield* Effect.provideContext(
              awaitStatus(({ pending }) => pending === 0),
              machine
            )
          for (const [machine, ran] of [
            [a, inA],
            [b, inB]
          ] as const) {
            assert.deepStrictEqual(entriesOf(yield* Effect.provideContext(runAll(steps), machine)), entriesOf(ran))
          }
          const found = yield* runAll(steps).pipe(Effect.provideContext(yield* start(server)))
          assert.deepStrictEqual(sourcesOf(found), { shared: steps.length })
          for (const [i, { entry }] of found.entries()) {
            assert.include([inA[i]?.entry.digest, inB[i]?.entry.digest], entry.digest)
          }
        }),
      limitMs
    )
  })
}

// ---------------------------------------------------------------------------------------------------------------------
// runs
// ---------------------------------------------------------------------------------------------------------------------

const steps: ReadonlyArray<string> = Array.from({ length: 24 }, (_, i) => `step ${i}`)

/** What a step came to: by its body, or from which tier. */
interface Ran {
  readonly entry: CacheEntry
  readonly source: "body" | "local" | "shared"
}

/** Looks for what a step came to, and runs it when nobody has it; `by` makes its result another one. */
const runStep = Effect.fnUntraced(function* (
  step: string,
  by = ""
): Effect.fn.Return<Ran, CacheError, StepCache | ArtifactStore.ArtifactStore> {
  const cache = yield* StepCache
  const found = yield* cache.get(Entries.keyOf(step))
  if (found._tag === "Hit") {
    return { entry: found.entry, source: found.tier === cache.name ? "local" : "shared" }
  }
  const artifacts = yield* Effect.forEach(textsOf(step), (text, i) => Entries.artifactOf(`out/${i}.txt`, text))
  const result = Result.getOrThrow(CanonicalJson.encodeResult({ step, by }))
  const entry: CacheEntry = {
    key: Entries.keyOf(step),
    result,
    digest: sha256(result),
    artifacts: Text.sortedBy(artifacts, ({ name }) => name),
    metadata: {
      recording: Recording.make(sha256(`${step} ${yield* Random.nextInt} ${yield* Random.nextInt}`).slice(0, 32)),
      recordedBy: `machine ${by}`,
      recordedAt: yield* Clock.currentTimeMillis,
      action: "step",
      version: "1",
      durationMs: 1
    }
  }
  const outcome = yield* cache.put(entry)
  assert.strictEqual(outcome._tag, "Inserted")
  return { entry, source: "body" }
})

const runAll = (steps: ReadonlyArray<string>) => Effect.forEach(steps, (step) => runStep(step), { concurrency: 4 })

/** Some have no artifacts, some one that is large and the empty one, and many share one. */
const textsOf = (step: string): ReadonlyArray<string> => {
  const number = Number(step.replace(/\D/g, ""))
  return [
    ...(number % 2 === 0 ? [`of ${step}`, "shared by many"] : []),
    ...(number % 3 === 0 ? ["", `large ${step} `.repeat(10_000)] : [])
  ]
}

const entriesOf = (ran: ReadonlyArray<Ran>): ReadonlyArray<CacheEntry> => ran.map(({ entry }) => entry)

const sourcesOf = (ran: ReadonlyArray<Ran>): Readonly<Record<string, number>> =>
  ran.reduce<Record<string, number>>((sums, { source }) => {
    sums[source] = (sums[source] ?? 0) + 1
    return sums
  }, {})

/** The digests of what is read of the artifacts of each entry. */
const contentsOf = (ran: ReadonlyArray<Ran>) =>
  Effect.forEach(ran, ({ entry }) =>
    Effect.forEach(entry.artifacts, (artifact) =>
      Effect.map(ArtifactStore.bytes(artifact), (bytes) => [artifact.name, sha256(bytes)])
    )
  )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const limitMs = 120_000

const status = Publication.use((publication) => publication.status)

type Status = Effect.Success<typeof status>

const awaitStatus = Effect.fnUntraced(function* (condition: (status: Status) => boolean) {
  for (let i = 0; i < 3000; i++) {
    if (condition(yield* status)) return
    yield* Effect.sleep("10 millis")
  }
  return assert.fail(`in vain: ${JSON.stringify(yield* status)}`)
})

const awaitPublished = (count: number) => awaitStatus(({ pending, published }) => published === count && pending === 0)

const temporaryFolder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "strata-machine-"))),
  (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true }))
)
