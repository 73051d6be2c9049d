import { assert, describe, it } from "@effect/vitest"
import { ArtifactStore } from "@strata/cache/ArtifactStore"
import type { CacheEntry } from "@strata/cache/CacheEntry"
import { Recording } from "@strata/cache/CacheEntry"
import { CacheError, StorageFailed } from "@strata/cache/CacheError"
import * as Lookup from "@strata/cache/Lookup"
import { StepCache } from "@strata/cache/StepCache"
import type { StepKey } from "@strata/cache/StepKey"
import { sha256 } from "@strata/durable/Digest"
import { type DurableWriter, write } from "@strata/durable/DurableWriter"
import * as Action from "@strata/engine/Action"
import * as ActionEvents from "@strata/engine/ActionEvents"
import * as Artifacts from "@strata/engine/Artifacts"
import * as StepKeys from "@strata/engine/StepKeys"
import { Journal } from "@strata/journal/Journal"
import { StreamName } from "@strata/journal/StreamName"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as Stream from "effect/Stream"

export type Services = StepCache | ArtifactStore | Journal | DurableWriter

class Refused extends Schema.TaggedError<Refused>("test/Refused")("Refused", {
  why: Schema.String,
  token: Schema.optional(Schema.Redacted(Schema.String))
}) {}

/** An action over a body that counts how often it is run. */
const counted = <A, R = never>(
  options: Omit<Action.ActionOptions<string, A, Refused, R>, "name" | "version" | "input" | "error">
) => {
  let bodies = 0
  const action = Action.make({
    name: "test",
    version: "1",
    input: Schema.String,
    error: Refused,
    ...options,
    run: (input) =>
      Effect.andThen(
        Effect.sync(() => bodies++),
        options.run(input)
      )
  })
  return { action, bodies: () => bodies }
}

const shout = (input: string) => Effect.succeed(input.toUpperCase())

const entries = Effect.flatMap(Journal, (journal) => journal.readAll())
const types = Effect.map(entries, (all) => all.map(({ type }) => type))

const recording = Recording.make("f".repeat(32))

/** What another process or machine recorded. */
const foreign = (key: StepKey, result: string): CacheEntry => ({
  key,
  result,
  digest: sha256(result),
  artifacts: [],
  metadata: { recording, recordedBy: "other", recordedAt: 0, action: "test", version: "1", durationMs: 1 }
})

/** A body during which another process records a result for the same input. */
const recordElsewhere = (input: string, theirs: string, ours: string) =>
  StepKeys.make({ action: "test", version: "1", input }).pipe(
    Effect.flatMap((key) => StepCache.use((cache) => cache.put(foreign(key, theirs)))),
    Effect.orDie,
    Effect.as(ours)
  )

const broken = new CacheError({ reason: new StorageFailed({ tier: "broken", cause: "disk full" }) })

/** The step cache in context with something about it changed. */
const withCache =
  (change: (cache: StepCache["Service"]) => Partial<StepCache["Service"]>) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    StepCache.use((cache) => Effect.provideService(effect, StepCache, { ...cache, ...change(cache) }))

const countOf = (id: string, attributes: Record<string, string>) =>
  Effect.map(Metric.snapshot, (all) =>
    all
      .filter((metric) => metric.id === id && metric.type === "Counter")
      .filter(({ attributes: has }) => Object.entries(attributes).every(([name, value]) => has?.[name] === value))
      .reduce((sum, metric) => sum + Number(metric.type === "Counter" ? metric.state.count : 0), 0)
  )

/** The contracts 48 to 51 over a tier. */
export const actionSuite = <E>(name: string, layer: Layer.Layer<Services, E>) => {
  const it_ = <A, E2>(title: string, effect: Effect.Effect<A, E2, Services>) =>
    it.effect(title, () => Effect.provide(effect, layer))

  describe(`actions on ${name}`, () => {
    it_(
      "48: run once, and give the same from the cache",
      Effect.gen(function* () {
        const { action, bodies } = counted({
          success: Schema.Struct({ at: Schema.Date, text: Schema.String }),
          run: (text) => Effect.succeed({ text, at: new Date(5) })
        })
        const first = yield* action.result("a")
        const second = yield* action.result("a")
        assert.deepStrictEqual(first.value, { text: "a", at: new Date(5) })
        assert.deepStrictEqual(second, { ...first, decision: "local-hit" })
        assert.strictEqual(first.decision, "ran")
        assert.strictEqual(bodies(), 1)
        assert.deepStrictEqual(yield* action.run("a"), first.value)
        assert.deepStrictEqual(yield* Action.run(action, "b"), { text: "b", at: new Date(5) })
        assert.deepStrictEqual(yield* types, ["cache-recorded", "cache-recorded"])
      })
    )

    it_(
      "48: serve what only a shared tier has",
      Effect.gen(function* () {
        const { action, bodies } = counted({ success: Schema.String, run: shout })
        const outcome = yield* action
          .result("a")
          .pipe(withCache(() => ({ get: (key) => Effect.succeed(Lookup.hit(foreign(key, '"B"'), "far")) })))
        assert.strictEqual(outcome.value, "B")
        assert.strictEqual(outcome.decision, "shared-hit")
        assert.strictEqual(bodies(), 0)
      })
    )

    it_(
      "48: wait for the run that is under way",
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const { action, bodies } = counted({
          success: Schema.String,
          run: (input) => Effect.as(Deferred.await(gate), input)
        })
        const all = yield* Effect.forkChild(
          Effect.all(
            Array.from({ length: 10 }, () => action.run("a")),
            { concurrency: "unbounded" }
          )
        )
        yield* Effect.yieldNow
        yield* Deferred.succeed(gate, undefined)
        assert.deepStrictEqual(
          yield* Fiber.join(all),
          Array.from({ length: 10 }, () => "a")
        )
        assert.strictEqual(bodies(), 1)
      })
    )

    it_(
      "48: do not run inside of a write",
      Effect.gen(function* () {
        const { action, bodies } = counted({ success: Schema.String, run: shout })
        const error = yield* Effect.flip(write(action.run("a")))
        assert.isTrue(error._tag === "ActionError" && error.reason._tag === "InsideWrite")
        assert.strictEqual(bodies(), 0)
      })
    )

    it_(
      "48: run in a fiber that was forked in a write, once that has ended",
      Effect.gen(function* () {
        const { action, bodies } = counted({ success: Schema.String, run: shout })
        for (const [input, end] of Object.entries({ committed: Effect.void, failed: Effect.fail("no") })) {
          const ended = yield* Deferred.make<void>()
          const forked = yield* Deferred.make<Fiber.Fiber<string, unknown>>()
          const late = Effect.andThen(Deferred.await(ended), action.run(input))
          const fork = Effect.flatMap(Effect.forkDetach(late), (fiber) => Deferred.succeed(forked, fiber))
          yield* Effect.exit(write(Effect.andThen(fork, end)))
          yield* Deferred.succeed(ended, undefined)
          assert.strictEqual(yield* Effect.flatMap(Deferred.await(forked), Fiber.join), input.toUpperCase())
        }
        assert.strictEqual(bodies(), 2)
      })
    )

    it_(
      "49: journal a failure, and do not cache it",
      Effect.gen(function* () {
        const { action, bodies } = counted({
          success: Schema.String,
          run: () => Effect.fail(new Refused({ why: "swordfish" }))
        })
        for (const _ of [1, 2]) {
          const error = yield* Effect.flip(action.run("a"))
          assert.deepStrictEqual(error, new Refused({ why: "swordfish" }))
        }
        assert.strictEqual(bodies(), 2)
        const [one, two] = yield* entries
        assert.strictEqual(one?.stream, "actions")
        const payload = yield* Effect.fromResult(ActionEvents.Failed.decodePayload(one?.payload ?? null))
        assert.deepInclude(payload, { action: "test", version: "1", kind: "failure", error: "Refused" })
        assert.deepStrictEqual(two?.payload, one?.payload)
        assert.notInclude(JSON.stringify(one), "swordfish")
      })
    )

    it_(
      "49: share a failure with those who wait, and journal it once",
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const { action } = counted({
          success: Schema.String,
          run: () => Effect.andThen(Deferred.await(gate), Effect.fail(new Refused({ why: "no" })))
        })
        const all = yield* Effect.forkChild(
          Effect.all(
            Array.from({ length: 3 }, () => Effect.flip(action.run("a"))),
            { concurrency: "unbounded" }
          )
        )
        yield* Effect.yieldNow
        yield* Deferred.succeed(gate, undefined)
        for (const error of yield* Fiber.join(all)) assert.strictEqual(error._tag, "Refused")
        assert.deepStrictEqual(yield* types, ["action-failed"])
      })
    )

    it_(
      "49: journal a defect by its name",
      Effect.gen(function* () {
        const { action } = counted({ success: Schema.String, run: () => Effect.die(new TypeError("swordfish")) })
        const exit = yield* Effect.exit(action.run("a"))
        assert.isTrue(Exit.hasDies(exit))
        const [entry] = yield* entries
        const payload = yield* Effect.fromResult(ActionEvents.Failed.decodePayload(entry?.payload ?? null))
        assert.deepInclude(payload, { kind: "defect", error: "TypeError" })
        assert.isUndefined(payload.digest)
      })
    )

    it_(
      "49: keep nothing of a body that is interrupted",
      Effect.gen(function* () {
        const { action } = counted({ success: Schema.String, run: () => Effect.never })
        const fiber = yield* Effect.forkChild(action.run("a"), { startImmediately: true })
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(yield* types, [])
      })
    )

    it_(
      "50: fail when another result was there first",
      Effect.gen(function* () {
        const { action } = counted({
          success: Schema.String,
          run: (input) => recordElsewhere(input, '"first"', "second")
        })
        const error = yield* Effect.flip(action.run("a"))
        assert.isTrue(error._tag === "ActionError" && error.reason._tag === "Conflict")
        if (error._tag === "ActionError" && error.reason._tag === "Conflict") {
          assert.strictEqual(error.reason.kept, recording)
          assert.strictEqual(error.reason.digest, sha256('"second"'))
        }
        assert.deepStrictEqual(yield* types, ["cache-recorded", "cache-conflict"])
        assert.strictEqual(yield* action.run("a"), "first")
      })
    )

    it_(
      "50: serve the first result when they are nondeterministic",
      Effect.gen(function* () {
        const { action } = counted({
          success: Schema.String,
          nondeterministic: true,
          run: (input) => recordElsewhere(input, '"first"', "second")
        })
        const outcome = yield* action.result("a")
        assert.deepInclude(outcome, { value: "first", decision: "kept", recording })
        assert.deepStrictEqual(yield* types, ["cache-recorded", "cache-conflict"])
      })
    )

    it_(
      "50: let a first result make way that is of no use",
      Effect.gen(function* () {
        const { action } = counted({
          success: Schema.String,
          nondeterministic: true,
          run: (input) => recordElsewhere(input, "1", "second")
        })
        assert.deepInclude(yield* action.result("a"), { value: "second", decision: "ran" })
        assert.strictEqual(yield* action.run("a"), "second")
      })
    )

    it_(
      "51: have a key of all that their result depends on",
      Effect.gen(function* () {
        const input = Schema.Struct({ a: Schema.optional(Schema.Int), b: Schema.optional(Schema.Int) })
        const options = { name: "x", version: "1", input, success: Schema.Int, run: () => Effect.succeed(1) }
        const action = Action.make(options)
        const key = yield* action.key({ a: 1, b: 2 })
        assert.strictEqual(yield* action.key({ b: 2, a: 1 }), key)
        assert.strictEqual(yield* Action.make(options).key({ a: 1, b: 2 }), key)
        const others = [
          yield* action.key({ a: 1 }),
          yield* Action.make({ ...options, name: "y" }).key({ a: 1, b: 2 }),
          yield* Action.make({ ...options, version: "2" }).key({ a: 1, b: 2 }),
          yield* Action.make({ ...options, environment: Effect.succeed("tool 1") }).key({ a: 1, b: 2 }),
          yield* Effect.provideService(action.key({ a: 1, b: 2 }), StepKeys.Environment, "linux"),
          yield* Effect.provideService(action.key({ a: 1, b: 2 }), StepKeys.Pepper, Redacted.make("p")),
          yield* Effect.provideService(action.key({ a: 1, b: 2 }), StepKeys.Pepper, Redacted.make("q"))
        ]
        assert.strictEqual(new Set([key, ...others]).size, 8)
      })
    )

    it_(
      "51: refuse an input without a key",
      Effect.gen(function* () {
        const action = Action.make({
          name: "x",
          version: "1",
          input: Schema.Struct({ "a/b": Schema.Array(Schema.Int) }),
          success: Schema.Int,
          run: () => Effect.succeed(1)
        })
        const error = yield* Effect.flip(action.run({ "a/b": [1, 1.5] }))
        assert.isTrue(error.reason._tag === "InputInvalid")
        if (error.reason._tag === "InputInvalid") assert.deepStrictEqual(error.reason.paths, ["/a~1b/1"])
      })
    )

    for (const [what, one, other] of [
      ["two members of a union", 5n, "5"],
      ["-0 and 0", -0, 0]
    ] as const) {
      it_(
        `51: inputs with one key are one input for the body: ${what}`,
        Effect.gen(function* () {
          const seen: Array<unknown> = []
          const action = Action.make({
            name: "x",
            version: "1",
            input: Schema.Union([Schema.BigInt, Schema.String, Schema.Finite]),
            success: Schema.String,
            run: (input) => Effect.sync(() => `${typeof input} ${seen.push(input)}`)
          })
          assert.strictEqual(yield* action.key(one), yield* action.key(other))
          for (const input of [one, other]) yield* action.run(input, { bypass: true })
          assert.strictEqual(seen.length, 2)
          assert.isTrue(Object.is(seen[0], seen[1]))
        })
      )
    }

    it_(
      "51: a body runs on the input that its key is made of, whatever becomes of that meanwhile",
      Effect.gen(function* () {
        const input = { of: ["a"] }
        const action = Action.make({
          name: "x",
          version: "1",
          input: Schema.Struct({ of: Schema.mutable(Schema.Array(Schema.String)) }),
          success: Schema.String,
          run: ({ of }) => Effect.succeed(of.join())
        })
        const changing = withCache((cache) => ({
          get: (key) =>
            Effect.andThen(
              Effect.sync(() => input.of.push("b")),
              cache.get(key)
            )
        }))
        assert.strictEqual(yield* changing(action.run(input)), "a")
      })
    )

    it_(
      "51: refuse an input that does not come back from its encoding, without running the body",
      Effect.gen(function* () {
        const Name = Schema.String.pipe(
          Schema.decodeTo(Schema.NonEmptyString, { decode: SchemaGetter.trim(), encode: SchemaGetter.passthrough() })
        )
        let bodies = 0
        const action = Action.make({
          name: "x",
          version: "1",
          input: Schema.Struct({ name: Name }),
          success: Schema.Int,
          run: () => Effect.sync(() => ++bodies)
        })
        assert.lengthOf(yield* action.key({ name: " " }), 64)
        for (const bypass of [false, true]) {
          const error = yield* Effect.flip(action.run({ name: " " }, { bypass }))
          assert.isTrue(error.reason._tag === "InputInvalid")
          if (error.reason._tag === "InputInvalid") assert.deepStrictEqual(error.reason.paths, ["/name"])
        }
        assert.strictEqual(bodies, 0)
        assert.deepStrictEqual(yield* types, [])
      })
    )

    it_(
      "run again when the Schema refuses what is cached",
      Effect.gen(function* () {
        const before = counted({ success: Schema.Int, run: () => Effect.succeed(1) })
        const after = counted({ success: Schema.String, run: shout })
        yield* before.action.run("a")
        assert.strictEqual(yield* after.action.run("a"), "A")
        assert.strictEqual(yield* after.action.run("a"), "A")
        assert.strictEqual(after.bodies(), 1)
        assert.deepStrictEqual(yield* types, ["cache-recorded", "cache-quarantined", "cache-recorded"])
      })
    )

    it_(
      "do not cache what cannot come back",
      Effect.gen(function* () {
        const { action } = counted({ success: Schema.Finite, run: () => Effect.succeed(Number.NaN) })
        const error = yield* Effect.flip(action.run("a"))
        assert.isTrue(error._tag === "ActionError" && error.reason._tag === "SuccessInvalid")
        assert.deepStrictEqual(yield* types, ["action-failed"])
      })
    )

    it_(
      "cache only what counts as cacheable, and journal the rest",
      Effect.gen(function* () {
        const { action, bodies } = counted({ success: Schema.String, run: shout, cacheable: (text) => text !== "A" })
        assert.strictEqual((yield* action.result("a")).decision, "uncached")
        assert.strictEqual((yield* action.result("a")).decision, "uncached")
        yield* action.run("b")
        yield* action.run("b")
        assert.strictEqual(bodies(), 3)
        const [first] = yield* entries
        const payload = yield* Effect.fromResult(ActionEvents.Completed.decodePayload(first?.payload ?? null))
        assert.deepInclude(payload, { action: "test", uncached: "not-cacheable", digest: sha256('"A"') })
        assert.deepStrictEqual(yield* types, ["action-completed", "action-completed", "cache-recorded"])
      })
    )

    it_(
      "bypass the cache on request",
      Effect.gen(function* () {
        const { action, bodies } = counted({ success: Schema.String, run: shout })
        yield* action.run("a")
        assert.strictEqual((yield* action.result("a", { bypass: true })).decision, "uncached")
        assert.strictEqual(bodies(), 2)
        assert.deepStrictEqual(yield* types, ["cache-recorded", "action-completed"])
      })
    )

    it_(
      "put a fresh result into the place of another on request",
      Effect.gen(function* () {
        let value = 1
        const { action } = counted({ success: Schema.Int, run: () => Effect.sync(() => value) })
        const first = yield* action.result("a")
        // The same result keeps its entry.
        assert.strictEqual((yield* action.result("a", { refresh: true })).recording, first.recording)
        value = 2
        const second = yield* action.result("a", { refresh: true })
        assert.deepInclude(second, { value: 2, decision: "ran" })
        assert.deepInclude(yield* action.result("a"), { value: 2, decision: "local-hit", recording: second.recording })
      })
    )

    it_(
      "have artifacts, which the store gives",
      Effect.gen(function* () {
        const { action, bodies } = counted({
          success: Schema.String,
          run: (input) =>
            Effect.as(
              Effect.all([
                Artifacts.add("z.txt", Stream.make(new TextEncoder().encode(input))),
                Artifacts.add("a.txt", Stream.empty)
              ]),
              input
            )
        })
        const outcome = yield* action.result("text")
        assert.deepStrictEqual(
          outcome.artifacts.map(({ name, size }) => [name, size]),
          [
            ["a.txt", 0],
            ["z.txt", 4]
          ]
        )
        const again = yield* action.result("text")
        assert.deepStrictEqual(again.artifacts, outcome.artifacts)
        const store = yield* ArtifactStore
        const artifact = again.artifacts[1]
        if (artifact === undefined) return assert.fail("no artifact")
        const content = yield* Stream.runCollect(store.get(artifact))
        assert.strictEqual(Buffer.concat(content).toString(), "text")
        // C1
        yield* store.remove(artifact.digest)
        assert.strictEqual((yield* action.result("text")).decision, "ran")
        assert.strictEqual(bodies(), 2)
      })
    )

    it_(
      "name their artifacts once",
      Effect.gen(function* () {
        const { action } = counted({
          success: Schema.Null,
          run: () => Effect.as(Effect.andThen(Artifacts.add("a", Stream.empty), Artifacts.add("a", Stream.empty)), null)
        })
        const error = yield* Effect.flip(action.run("a"))
        assert.isTrue(error._tag === "ActionError" && error.reason._tag === "ArtifactNameInvalid")
      })
    )

    it_(
      "fail when the cache fails, before the body runs or without its result",
      Effect.gen(function* () {
        const { action, bodies } = counted({ success: Schema.String, run: shout })
        const lookup = yield* Effect.flip(action.run("a").pipe(withCache(() => ({ get: () => Effect.fail(broken) }))))
        assert.isTrue(lookup._tag === "ActionError" && lookup.reason._tag === "CacheFailed")
        assert.strictEqual(bodies(), 0)
        const commit = yield* Effect.flip(action.run("a").pipe(withCache(() => ({ put: () => Effect.fail(broken) }))))
        assert.isTrue(commit._tag === "ActionError" && commit.reason._tag === "CacheFailed")
        assert.strictEqual(bodies(), 1)
        assert.deepStrictEqual(yield* types, [])
      })
    )

    it_(
      "serve without a working cache when they are to",
      Effect.gen(function* () {
        const { action, bodies } = counted({ success: Schema.String, run: shout, whenCacheFails: "serve" })
        const outcome = yield* action
          .result("a")
          .pipe(withCache(() => ({ get: () => Effect.fail(broken), put: () => Effect.fail(broken) })))
        assert.deepInclude(outcome, { value: "A", decision: "unrecorded" })
        assert.strictEqual(bodies(), 1)
      })
    )

    it_(
      "journal in the stream of their run",
      Effect.gen(function* () {
        const { action } = counted({ success: Schema.String, run: () => Effect.fail(new Refused({ why: "no" })) })
        const stream = StreamName.make("run/1")
        yield* Effect.ignore(Effect.provideService(action.run("a"), ActionEvents.Stream, stream))
        assert.deepStrictEqual(
          (yield* entries).map((entry) => entry.stream),
          [stream]
        )
      })
    )

    it_(
      "count what was decided, and why lookups gave nothing",
      Effect.gen(function* () {
        const { action } = counted({ success: Schema.String, run: shout })
        yield* action.run("a")
        yield* action.run("a")
        assert.strictEqual(yield* countOf("strata_action_runs_total", { action: "test", decision: "ran" }), 1)
        assert.strictEqual(yield* countOf("strata_action_runs_total", { action: "test", decision: "local-hit" }), 1)
        assert.strictEqual(yield* countOf("strata_action_misses_total", { action: "test", reason: "Absent" }), 1)
      }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
    )

    it_(
      "do not wait for themselves",
      Effect.gen(function* () {
        const action: Action.Action<string, string, never, Action.Services> = Action.make({
          name: "own",
          version: "1",
          input: Schema.String,
          success: Schema.String,
          run: (input): Effect.Effect<string, Action.ActionError, Action.Services> => action.run(input)
        })
        const error = yield* Effect.flip(action.run("a"))
        assert.strictEqual(error.reason._tag, "Recursive")
      }).pipe(Effect.asVoid)
    )

    it_(
      "keep an entry after their caller has been interrupted while another waits",
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const { action, bodies } = counted({
          success: Schema.String,
          run: (input) => Effect.as(Deferred.await(gate), input)
        })
        const first = yield* Effect.forkChild(action.run("a"), { startImmediately: true })
        yield* Effect.yieldNow
        const second = yield* Effect.forkChild(action.run("a"), { startImmediately: true })
        yield* Effect.yieldNow
        yield* Fiber.interrupt(first)
        yield* Deferred.succeed(gate, undefined)
        assert.strictEqual(yield* Fiber.join(second), "a")
        assert.isAtMost(bodies(), 2)
        const key = yield* action.key("a")
        const found = yield* StepCache.use((cache) => cache.get(key))
        assert.strictEqual(found._tag, "Hit")
      })
    )
  })
}
