// Records dirty rows and drains them through a follower that reads nothing and stores nothing, so that what memory is
// taken is that of the queue and the follower. Run by memory-check.mjs, with --conditions=@strata/source.
//
//   memory-drain.mjs DATABASE ROWS
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import { Path, Scope } from "@strata/dirty-queue/Path"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Follower from "@strata/follower/Follower"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"

const [filename, rows] = [process.argv[2], Number(process.argv[3])]

const scope = Scope.make("docs")
const perWrite = 10_000

const record = (first) =>
  DurableWriter.write(
    Changelog.Changelog.use((changelog) =>
      changelog.record(
        Array.from({ length: Math.min(perWrite, rows - first) }, (_, i) =>
          Changelog.put({ scope, path: Path.make(`docs/${(first + i) % 100}/page-${first + i}.md`) })
        )
      )
    )
  )

const program = Effect.gen(function* () {
  let written = 0
  const follower = yield* Follower.make({
    name: "memory",
    version: "1",
    scope,
    queue: yield* DirtyQueue.DirtyQueue,
    reader: { read: ({ path }) => Effect.succeed(Option.some({ digest: path, load: Effect.succeed(path) })) },
    writer: {
      mode: "transactional",
      write: (batch) =>
        Effect.sync(() => {
          written += batch.upserts.length
        })
    },
    batchSize: 500
  })
  for (let first = 0; first < rows; first += perWrite) yield* record(first)
  while ((yield* follower.drain(scope)).hasMore);
  if (written !== rows) return yield* Effect.die(`wrote ${written} of ${rows} rows`)
})

const layer = Layer.mergeAll(DirtyQueue.layer(), Changelog.layer()).pipe(
  Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
  Layer.provideMerge(SqliteClient.layer({ filename, synchronous: "NORMAL" }))
)

await Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(layer)))
