import { assert, describe, it } from "@effect/vitest"
import * as Fault from "@strata/conformance/Fault"
import * as Faults from "@strata/conformance/Faults"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { Buffer } from "node:buffer"

class Full extends Schema.TaggedError<Full>("test/Full")("Full", {}) {}

/** A service with every kind of member. */
class Files extends Context.Service<
  Files,
  {
    readonly name: string
    readonly write: <E, R>(path: string, content: Stream.Stream<Uint8Array, E, R>) => Effect.Effect<void, E | Full, R>
    readonly append: (path: string, content: Uint8Array) => Effect.Effect<void, Full>
    readonly read: (path: string) => Stream.Stream<Uint8Array, Full>
    readonly readText: (path: string) => Effect.Effect<string, Full>
    readonly size: (path: string) => Effect.Effect<number>
    readonly count: Effect.Effect<number, Full>
    readonly names: Stream.Stream<string>
    readonly isPath: (path: string) => boolean
  }
>()("test/Files") {}

const inMemory = Layer.sync(Files, () => {
  const files = new Map<string, Buffer>()
  const at = (path: string) => files.get(path) ?? Buffer.alloc(0)
  return Files.of({
    name: "memory",
    write: (path, content) =>
      Effect.map(Stream.runCollect(content), (chunks) => void files.set(path, Buffer.concat(chunks))),
    append: (path, content) => Effect.sync(() => void files.set(path, Buffer.concat([at(path), content]))),
    read: (path) => Stream.suspend(() => Stream.make(at(path).subarray(0, 3), at(path).subarray(3))),
    readText: (path) => Effect.sync(() => at(path).toString()),
    size: (path) => Effect.sync(() => at(path).length),
    count: Effect.sync(() => files.size),
    names: Stream.suspend(() => Stream.fromIterable([...files.keys()])),
    isPath: (path) => path !== ""
  })
})

type Rules = ReadonlyArray<Faults.Rule<Files["Service"]>>

/** Runs `body` with a service that has one file, `f` with "content", and these faults. */
const withFaults = <A, E, R>(
  rules: Rules,
  body: (files: Files["Service"], faults: Faults.Faults<Files, Files["Service"]>) => Effect.Effect<A, E, R>,
  seed?: number
): Effect.Effect<A, E | Full, R> => {
  const faults = Faults.make(Files, { seed })
  return Effect.gen(function* () {
    const files = yield* Files
    yield* files.write("f", content("content"))
    yield* faults.set(rules)
    return yield* body(files, faults)
  }).pipe(Effect.provide(faults.layer.pipe(Layer.provide(inMemory))))
}

const content = (text: string, cut = 2): Stream.Stream<Uint8Array> =>
  Stream.make(Buffer.from(text.slice(0, cut)), Buffer.from(text.slice(cut)))

const text = <E, R>(stream: Stream.Stream<Uint8Array, E, R>): Effect.Effect<string, E, R> =>
  Effect.map(Stream.runCollect(stream), (chunks) => Buffer.concat(chunks).toString())

const full = new Full()

/** What a call came to: its answer, or `Full`. */
const outcome = <A, R>(effect: Effect.Effect<A, Full, R>): Effect.Effect<A | "Full", never, R> =>
  Effect.map(Effect.result(effect), (result) => (Result.isSuccess(result) ? result.success : "Full"))

describe("Faults", () => {
  it.effect("leaves everything as it is without rules, and counts", () =>
    withFaults([], (files, faults) =>
      Effect.gen(function* () {
        assert.strictEqual(files.name, "memory")
        assert.isTrue(files.isPath("f"))
        assert.strictEqual(yield* text(files.read("f")), "content")
        assert.strictEqual(yield* files.count, 1)
        assert.strictEqual(yield* files.count, 1)
        assert.deepStrictEqual(yield* Stream.runCollect(files.names), ["f"])
        assert.deepStrictEqual(
          (yield* faults.calls).map(({ fault, nth, operation }) => [operation, nth, fault]),
          [
            ["write", 1, undefined],
            ["read", 1, undefined],
            ["count", 1, undefined],
            ["count", 2, undefined],
            ["names", 1, undefined]
          ]
        )
      })
    )
  )

  it.effect("works on services that are instances of classes", () =>
    Effect.gen(function* () {
      class Counter {
        #count = 0
        readonly next = (): Effect.Effect<number> => Effect.sync(() => ++this.#count)
        get doubled(): Effect.Effect<number> {
          return Effect.sync(() => this.#count * 2)
        }
        last(): Effect.Effect<number> {
          return Effect.sync(() => this.#count)
        }
      }
      const Tag = Context.Service<Counter, Pick<Counter, "next" | "doubled" | "last">>("test/Counter")
      const faults = Faults.make(Tag, { rules: [{ operation: "last", fault: Fault.answer((last) => -last) }] })
      const counter = faults.wrap(new Counter())
      assert.strictEqual(yield* counter.next(), 1)
      assert.strictEqual(yield* counter.doubled, 2)
      assert.strictEqual(yield* counter.last(), -1)
    })
  )

  describe("fail", () => {
    it.effect("before: nothing was done", () =>
      withFaults([{ operation: "append", fault: Fault.fail(full) }], (files) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* outcome(files.append("f", Buffer.from("!"))), "Full")
          assert.strictEqual(yield* files.readText("f"), "content")
        })
      )
    )

    it.effect("after: only the answer is lost", () =>
      withFaults([{ operation: "append", fault: Fault.fail(full, "after") }], (files) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* outcome(files.append("f", Buffer.from("!"))), "Full")
          assert.strictEqual(yield* files.readText("f"), "content!")
        })
      )
    )

    it.effect("in the middle of what is given", () =>
      withFaults([{ operation: "write", fault: Fault.fail(full, 3) }], (files) =>
        Effect.gen(function* () {
          let given = 0
          const counted = Stream.tap(content("replaced", 2), (chunk) => Effect.sync(() => (given += chunk.length)))
          assert.strictEqual(yield* outcome(files.write("f", counted)), "Full")
          assert.isAtLeast(given, 3)
          assert.strictEqual(yield* files.readText("f"), "content")
        })
      )
    )

    it.effect("in the middle of what is answered, and at its end", () =>
      withFaults(
        Faults.script("read", [Fault.fail(full), Fault.fail(full, 4), Fault.fail(full, "after"), undefined]),
        (files) =>
          Effect.gen(function* () {
            const seen = Effect.gen(function* () {
              let read = ""
              const end = yield* outcome(
                Stream.runForEach(files.read("f"), (chunk) => Effect.sync(() => void (read += Buffer.from(chunk))))
              )
              return [read, end]
            })
            assert.deepStrictEqual(yield* seen, ["", "Full"])
            assert.deepStrictEqual(yield* seen, ["cont", "Full"])
            assert.deepStrictEqual(yield* seen, ["content", "Full"])
            assert.deepStrictEqual(yield* seen, ["content", undefined])
          })
      )
    )

    it.effect("dies where there is no content to fail in", () =>
      withFaults([{ operation: "count", fault: Fault.fail(full, 3) }], (files) =>
        Effect.map(Effect.exit(files.count), (exit) => assert.isTrue(Exit.hasDies(exit)))
      )
    )
  })

  it.effect("die", () =>
    withFaults([{ operation: "any", fault: Fault.die("bug") }], (files) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* Effect.exit(files.count), Exit.die("bug"))
        assert.deepStrictEqual(yield* Effect.exit(text(files.read("f"))), Exit.die("bug"))
      })
    )
  )

  describe("hang", () => {
    const rules: Rules = [
      { operation: "count", fault: Fault.hang() },
      { operation: "append", fault: Fault.hang("after") },
      { operation: "read", fault: Fault.hang(4) }
    ]

    it.effect("never ends, and can be interrupted", () =>
      withFaults(rules, (files) =>
        Effect.gen(function* () {
          for (const call of [files.count, files.append("f", Buffer.from("!")), text(files.read("f"))]) {
            const fiber = yield* Effect.forkChild(call)
            yield* TestClock.adjust("1 day")
            assert.isUndefined(fiber.pollUnsafe())
            yield* Fiber.interrupt(fiber)
          }
          assert.strictEqual(yield* files.readText("f"), "content!")
        })
      )
    )

    it.effect("gives what comes before it", () =>
      withFaults(rules, (files) =>
        Effect.gen(function* () {
          const head = Stream.runHead(files.read("f"))
          assert.deepStrictEqual(Option.getOrThrow(yield* head), Buffer.from("con"))
        })
      )
    )
  })

  it.effect("delay", () =>
    withFaults([{ operation: "any", fault: Fault.delay("1 second") }], (files) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(Effect.all([files.count, text(files.read("f"))]))
        yield* TestClock.adjust("1999 millis")
        assert.isUndefined(fiber.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        assert.deepStrictEqual(yield* Fiber.join(fiber), [1, "content"])
      })
    )
  )

  describe("truncate", () => {
    const rules: Rules = [{ operation: "any", fault: Fault.truncate(4) }]

    it.effect("what is answered", () =>
      withFaults(rules, (files) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* text(files.read("f")), "cont")
          assert.strictEqual(yield* files.readText("f"), "cont")
        })
      )
    )

    it.effect("what is given", () =>
      Effect.gen(function* () {
        const written = withFaults([{ operation: "write", fault: Fault.truncate(4) }], (files) =>
          Effect.andThen(files.write("g", content("replaced")), files.readText("g"))
        )
        assert.strictEqual(yield* written, "repl")
        const appended = withFaults([{ operation: "append", fault: Fault.truncate(4) }], (files) =>
          Effect.andThen(files.append("f", Buffer.from("123456")), files.readText("f"))
        )
        assert.strictEqual(yield* appended, "content1234")
      })
    )

    it.effect("to nothing, and not what is shorter", () =>
      Effect.gen(function* () {
        const cut = (length: number) =>
          withFaults([{ operation: "read", fault: Fault.truncate(length) }], (files) => text(files.read("f")))
        assert.deepStrictEqual(yield* Effect.forEach([0, 1, 3, 6, 7, 100], cut), [
          "",
          "c",
          "con",
          "conten",
          "content",
          "content"
        ])
      })
    )
  })

  it.effect("corrupt flips one bit, of what is given or answered", () =>
    withFaults([{ operation: "any", fault: Fault.corrupt, when: Fault.first(1) }], (files) =>
      Effect.gen(function* () {
        const flipped = yield* text(files.read("f"))
        assert.strictEqual(flipped, "cnntent")
        assert.strictEqual(yield* text(files.read("f")), "content")
        assert.strictEqual(yield* files.readText("f"), "conuent")
        const own = Buffer.from("abc")
        yield* files.append("g", own)
        assert.strictEqual(own.toString(), "abc")
        assert.strictEqual(yield* files.readText("g"), "acc")
        yield* files.write("h", content("abc", 0))
        assert.strictEqual(yield* files.readText("h"), "acc")
      })
    )
  )

  it.effect("answer is another one", () =>
    withFaults(
      [
        { operation: "size", fault: Fault.answer((size) => size + 1) },
        { operation: "names", fault: Fault.answer((name) => name.toUpperCase()) }
      ],
      (files) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* files.size("f"), 8)
          assert.deepStrictEqual(yield* Stream.runCollect(files.names), ["F"])
        })
    )
  )

  describe("schedules", () => {
    /** Which of the first calls fail. */
    const failing = (when: Fault.When, calls: number, seed?: number) =>
      withFaults(
        [{ operation: "count", fault: Fault.fail(full), when }],
        (files) =>
          Effect.map(
            Effect.forEach(
              Array.from({ length: calls }, (_, i) => i + 1),
              (i) => Effect.map(outcome(files.count), (end) => (end === "Full" ? [i] : []))
            ),
            (numbers) => numbers.flat()
          ),
        seed
      )

    it.effect("by count", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* failing(Fault.always, 3), [1, 2, 3])
        assert.deepStrictEqual(yield* failing(Fault.nth(2), 4), [2])
        assert.deepStrictEqual(yield* failing(Fault.first(2), 4), [1, 2])
        assert.deepStrictEqual(yield* failing(Fault.afterFirst(2), 4), [3, 4])
        assert.deepStrictEqual(yield* failing(Fault.every(3), 7), [3, 6])
      })
    )

    it.effect("by chance, which the seed decides", () =>
      Effect.gen(function* () {
        const once = yield* failing(Fault.chance(0.3), 1_000, 1)
        assert.deepStrictEqual(yield* failing(Fault.chance(0.3), 1_000, 1), once)
        assert.notDeepEqual(yield* failing(Fault.chance(0.3), 1_000, 2), once)
        assert.isAbove(once.length, 220)
        assert.isBelow(once.length, 380)
        assert.deepStrictEqual(yield* failing(Fault.chance(0), 100), [])
        assert.strictEqual((yield* failing(Fault.chance(1), 100)).length, 100)
      })
    )

    it.effect("by script, each operation on its own, and the first rule decides", () =>
      withFaults(
        [
          ...Faults.script("count", [undefined, Fault.fail(full), undefined]),
          { operation: "any", fault: Fault.die("third"), when: Fault.nth(3) }
        ],
        (files, faults) =>
          Effect.gen(function* () {
            assert.strictEqual(yield* outcome(files.count), 1)
            assert.strictEqual(yield* files.size("f"), 7)
            assert.strictEqual(yield* outcome(files.count), "Full")
            assert.isTrue(Exit.hasDies(yield* Effect.exit(files.count)))
            assert.deepStrictEqual(
              (yield* faults.calls).slice(1).map(({ fault, operation }) => [operation, fault]),
              [
                ["count", undefined],
                ["size", undefined],
                ["count", "Fail"],
                ["count", "Die"]
              ]
            )
          })
      )
    )

    it.effect("rules can change, and count calls anew", () =>
      withFaults([{ operation: "count", fault: Fault.fail(full), when: Fault.first(1) }], (files, faults) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* outcome(files.count), "Full")
          assert.strictEqual(yield* outcome(files.count), 1)
          yield* faults.set([{ operation: "count", fault: Fault.fail(full), when: Fault.first(1) }])
          assert.strictEqual(yield* outcome(files.count), "Full")
          yield* faults.set([{ operation: "any", fault: Fault.hang() }])
          yield* faults.clear
          assert.strictEqual(yield* outcome(files.count), 1)
        })
      )
    )

    it.effect("a decision is made each time that an effect is run", () =>
      withFaults([{ operation: "size", fault: Fault.answer(() => 0), when: Fault.nth(2) }], (files) =>
        Effect.gen(function* () {
          const size = files.size("f")
          assert.deepStrictEqual([yield* size, yield* size, yield* size], [7, 0, 7])
        })
      )
    )
  })
})
