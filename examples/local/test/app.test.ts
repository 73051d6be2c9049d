import { assert, it } from "@effect/vitest"
import { Strata } from "@strata/strata"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { execFileSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { App, Notes } from "../src/app.ts"

const layer = App.layer.pipe(Layer.provide(Notes.layer), Layer.provide(Strata.layerTest))

const settled = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect)
    yield* TestClock.adjust("1 second")
    return yield* Fiber.join(fiber)
  })

it.effect("follows notes as they are saved, changed and removed", () =>
  Effect.gen(function* () {
    const app = yield* App
    yield* app.save("a", "first #x")
    yield* app.save("b", "second #x #y")
    assert.deepStrictEqual(yield* settled(app.tagged("#x")), ["a", "b"])
    yield* app.save("a", "no tag any more")
    yield* app.remove("b")
    assert.deepStrictEqual(yield* settled(app.tagged("#x")), [])
    assert.deepStrictEqual(yield* settled(app.tagged("#y")), [])
  }).pipe(Effect.provide(layer))
)

it("runs on SQLite as a program", () => {
  const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))
  const args = ["--conditions=@strata/source", "--no-warnings", main]
  assert.strictEqual(execFileSync(process.execPath, args, { encoding: "utf8" }), "#work: release\n#work: nothing\n")
})
