import { Strata } from "@strata/strata"
import { Console, Effect, Layer } from "effect"
import { App, Notes } from "./app.ts"

const program = Effect.gen(function* () {
  const app = yield* App
  yield* app.save("groceries", "milk, bread #home")
  yield* app.save("release", "write the notes #work #today")
  yield* app.save("release", "publish #work")
  yield* Console.log(`#work: ${(yield* app.tagged("#work")).join(", ")}`)
  yield* app.remove("release")
  yield* Console.log(`#work: ${(yield* app.tagged("#work")).join(", ") || "nothing"}`)
})

const layer = App.layer.pipe(
  Layer.provide(Notes.layer),
  Layer.provide(Strata.layerSqlite({ filename: process.argv[2] ?? ":memory:" }))
)

await Effect.runPromise(Effect.provide(program, layer))
