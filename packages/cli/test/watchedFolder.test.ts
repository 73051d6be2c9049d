import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as WatchedFolder from "../src/internal/watchedFolder.ts"

/** A folder with a file that is looked at, and after each second whether its watch has ended. */
const looking = (
  body: (tree: {
    readonly folder: string
    readonly watched: WatchedFolder.WatchedFolder
    readonly hasEnded: Effect.Effect<boolean>
    readonly timesGone: () => number
  }) => Effect.Effect<void>
) =>
  Effect.gen(function* () {
    const parent = yield* Effect.acquireRelease(
      Effect.sync(() => fs.mkdtempSync(join(tmpdir(), "strata-watched-"))),
      (path) => Effect.sync(() => fs.rmSync(path, { recursive: true }))
    )
    // A change within the same tick of the clock would leave it looking as one that was never changed.
    while (isNew(parent)) fs.chmodSync(parent, 0o700)
    const folder = join(parent, "docs")
    fill(folder)
    const watched = WatchedFolder.make(folder)
    let gone = 0
    const onGone = Effect.sync(() => void gone++)
    const fiber = yield* Effect.forkChild(watched.awaitOther(onGone), { startImmediately: true })
    const hasEnded = Effect.andThen(
      TestClock.adjust("1 second"),
      Effect.sync(() => fiber.pollUnsafe() !== undefined)
    )
    yield* body({ folder, watched, hasEnded, timesGone: () => gone })
    yield* Fiber.interrupt(fiber)
  })

const isNew = (folder: string): boolean => {
  const { birthtimeNs, ctimeNs } = fs.statSync(folder, { bigint: true })
  return birthtimeNs === ctimeNs
}

const fill = (folder: string) => {
  fs.mkdirSync(folder)
  fs.writeFileSync(join(folder, "a.txt"), "alpha")
}

describe("the folder that is watched", () => {
  it.effect("stays the same whatever changes in it", () =>
    looking(({ folder, hasEnded, timesGone }) =>
      Effect.gen(function* () {
        assert.isFalse(yield* hasEnded)
        fs.writeFileSync(join(folder, "b.txt"), "beta")
        fs.rmSync(join(folder, "a.txt"))
        fs.chmodSync(folder, 0o700)
        assert.isFalse(yield* hasEnded)
        fs.rmSync(join(folder, "b.txt"))
        assert.isFalse(yield* hasEnded)
        assert.strictEqual(timesGone(), 0)
      })
    )
  )

  it.effect("is another one when it was moved away and one was made in its place", () =>
    looking(({ folder, hasEnded, timesGone }) =>
      Effect.gen(function* () {
        fs.renameSync(folder, `${folder}-away`)
        fs.mkdirSync(folder)
        assert.isTrue(yield* hasEnded)
        assert.strictEqual(timesGone(), 0)
      })
    )
  )

  it.effect("is another one when it was removed and made again, though it may have the inode of the first", () =>
    looking(({ folder, hasEnded }) =>
      Effect.gen(function* () {
        const { birthtimeNs } = fs.statSync(folder, { bigint: true })
        do {
          fs.rmSync(folder, { recursive: true })
          fill(folder)
        } while (fs.statSync(folder, { bigint: true }).birthtimeNs === birthtimeNs)
        assert.isTrue(yield* hasEnded)
      })
    )
  )

  it.effect("is told once to be gone, and is watched anew when it is back, even if it is the same", () =>
    looking(({ folder, hasEnded, timesGone }) =>
      Effect.gen(function* () {
        fs.renameSync(folder, `${folder}-away`)
        assert.isFalse(yield* hasEnded)
        fs.writeFileSync(folder, "no folder")
        assert.isFalse(yield* hasEnded)
        assert.strictEqual(timesGone(), 1)
        fs.rmSync(folder)
        fs.renameSync(`${folder}-away`, folder)
        assert.isTrue(yield* hasEnded)
      })
    )
  )

  it.effect("is watched anew when the watcher has lost it, though it is back before anyone looks", () =>
    looking(({ hasEnded, watched }) =>
      Effect.gen(function* () {
        watched.lost()
        assert.isTrue(yield* hasEnded)
      })
    )
  )
})
