import { assert, describe, it } from "@effect/vitest"
import * as Cache from "@strata/cache/Cache"
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import * as MemoryStore from "@strata/dirty-queue/MemoryStore"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Journal from "@strata/journal/Journal"
import * as CachedExtractor from "@strata/search/CachedExtractor"
import * as Extractor from "@strata/search/Extractor"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"

const cache = Cache.layerMemory().pipe(
  Layer.provideMerge(Layer.mergeAll(Journal.layerMemory(), Changelog.layerMemory(), DirtyQueue.layerMemory())),
  Layer.provide(MemoryStore.layer),
  Layer.provideMerge(Layer.mergeAll(DurableWriter.layerMemory(), ChangeSignal.layer))
)

const asJson = (value: object): unknown => JSON.parse(JSON.stringify(value))

const bytes = (text: string) => new TextEncoder().encode(text)

const files: ReadonlyArray<readonly [path: string, text: string]> = [
  ["a/titled.md", "# Title\n\ntext\n\n## Part\n\nmore"],
  ["a/untitled.md", "text only"],
  ["b/other name.md", "text only"],
  ["a/page.HTML", "<title>Page</title><p>one<p>two"],
  [`a/${"long".repeat(60)}.md`, "text of a long name"],
  ["a/plain.txt", "lines\n\nof text"],
  ["a/code.ts", "export const a = 1"],
  ["README", "<!doctype html><p>page"],
  [".md", "# not markdown"],
  ["a/empty.md", ""],
  ["a/binary.md", "\0\x01\x02\0"]
]

const it_ = <A, E>(name: string, effect: Effect.Effect<A, E, Layer.Success<typeof cache>>) =>
  it.effect(name, () => Effect.provide(effect, cache))

describe("an extractor that remembers", () => {
  for (const which of ["structured", "all"] as const) {
    it_(
      `gives what one that does not gives, the first time and the second, for ${which} files`,
      Effect.gen(function* () {
        const plain = Extractor.make()
        const cached = yield* CachedExtractor.make({ which })
        for (const _ of [1, 2]) {
          for (const [path, text] of files) {
            const expected = yield* Effect.exit(plain.extract(path, bytes(text)))
            const found = yield* Effect.exit(cached.extractor.extract(path, bytes(text)))
            assert.deepStrictEqual(asJson(found), asJson(expected), path)
            assert.strictEqual(Exit.isSuccess(found), Exit.isSuccess(expected))
          }
        }
        const { extracted, localHits } = yield* cached.counts
        // The same bytes under another name are known.
        const through = which === "all" ? files.length : 7
        assert.deepStrictEqual([extracted, localHits], [through - 1, through + 1])
      })
    )
  }

  it_(
    "extracts again what another version has extracted",
    Effect.gen(function* () {
      for (const version of ["1", "2"]) {
        const cached = yield* CachedExtractor.make({ version })
        yield* cached.extractor.extract("a.md", bytes("# a"))
        assert.deepInclude(yield* cached.counts, { extracted: 1 })
      }
    })
  )

  it_(
    "works inside of a write too, without the cache",
    Effect.gen(function* () {
      const cached = yield* CachedExtractor.make()
      const found = yield* DurableWriter.write(cached.extractor.extract("a.md", bytes("# a\n\nb")))
      assert.strictEqual(found.title, "a")
      assert.deepInclude(yield* cached.counts, { extracted: 0 })
    })
  )
})
