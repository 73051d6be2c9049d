// The child of crash-actions.mjs.
//
//   node --conditions=@strata/source scripts/crash/actions.mjs work|settle DATABASE FOLDER URL SEED
//
// `work` runs actions with artifacts until it is killed, and says each key once its outcome is committed. `settle` opens
// the cache and ends when nothing is left to publish.
import * as Cache from "@strata/cache/Cache"
import * as HttpCache from "@strata/cache/HttpCache"
import { Publication } from "@strata/cache/Publication"
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Action from "@strata/engine/Action"
import * as Artifacts from "@strata/engine/Artifacts"
import * as Journal from "@strata/journal/Journal"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { writeSync } from "node:fs"
import { randomFrom } from "./random.mjs"

const [mode, filename, directory, url, seed] = process.argv.slice(2)

const layer = Cache.layerSql({
  directory,
  remote: { steps: HttpCache.stepCache({ url }), artifacts: HttpCache.artifactStore({ url }) }
}).pipe(
  Layer.provideMerge(Layer.mergeAll(Changelog.layer(), Journal.layerSql())),
  Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
  Layer.provideMerge(SqliteClient.layer({ filename }))
)

const say = (line) => Effect.sync(() => writeSync(1, `${line}\n`))

/** Up to 100 KB of bytes that only depend on the number; every eighth is the empty blob. */
const content = (n) => {
  const size = n % 8 === 0 ? 0 : (n * 7919) % 100_000
  return Stream.make(new Uint8Array(size).fill(n % 251))
}

/** Fails for some inputs, and shares blobs between results. */
const action = Action.make({
  name: "crash",
  version: "1",
  input: Schema.Struct({ n: Schema.Int }),
  success: Schema.Struct({ n: Schema.Int, text: Schema.String }),
  error: Schema.String,
  run: Effect.fnUntraced(function* ({ n }) {
    for (let i = 0; i < n % 4; i++) {
      yield* Artifacts.add(`artifact-${i}`, content(Math.floor(n / 3) + i))
    }
    yield* Effect.yieldNow
    if (n % 13 === 0) return yield* Effect.fail("an unlucky number")
    return { n, text: "x".repeat((n * 31) % 5000) }
  })
})

const random = randomFrom(Number(seed))

const runOne = Effect.gen(function* () {
  const n = Math.floor(random() * 1_000_000)
  const outcome = yield* Action.result(action, { n })
  yield* say(outcome.key)
}).pipe(Effect.catch((error) => (error === "an unlucky number" ? Effect.void : Effect.die(error))))

const work = Effect.andThen(
  say("ready"),
  Effect.all(
    Array.from({ length: 4 }, () => Effect.forever(runOne)),
    { concurrency: 4 }
  )
)

const settle = Effect.gen(function* () {
  const publication = yield* Publication
  const left = yield* publication.drain({ timeout: "2 minutes" })
  if (left > 0) return yield* Effect.die(`${left} entries are left to be published`)
})

await Effect.runPromise(Effect.provide(Effect.scoped(mode === "work" ? work : settle), layer))
