import * as Effect from "effect/Effect"
import { type BigIntStats, statSync } from "node:fs"
import { dirname } from "node:path"

/** The folder that is at a path now, of which a watcher may keep hold when another one takes its place. */
export const make = (path: string) => {
  const first = identify(path)
  let isGone = first === undefined
  return {
    /** A watcher has seen it go: that ends the watch, even if the same folder is back before anyone looks. */
    lost: () => {
      isGone = true
    },
    /** Ends when there is another folder at the path, or a folder again. Tells once that there is none. */
    awaitOther: (onGone: Effect.Effect<void>): Effect.Effect<void> =>
      Effect.gen(function* () {
        for (;;) {
          yield* Effect.sleep(lookEvery)
          const now = identify(path)
          if (now !== undefined && (isGone || first === undefined || isOther(path, first, now))) return
          if (now === undefined && !isGone) {
            isGone = true
            yield* onGone
          }
        }
      })
  }
}

/** Of one folder, as `make` gives it. */
export type WatchedFolder = ReturnType<typeof make>

/** The watcher of a folder that was moved away tells nothing of it. */
const lookEvery = "1 second"

/** What cannot be looked at is not there for a watcher either; the scan of it says why. */
const identify = (path: string): BigIntStats | undefined => {
  try {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
    return stats?.isDirectory() === true ? stats : undefined
  } catch {
    return undefined
  }
}

/** The number of an inode is given again as soon as its folder is removed, which the time of creation tells. */
const isOther = (path: string, before: BigIntStats, now: BigIntStats): boolean =>
  before.dev !== now.dev ||
  before.ino !== now.ino ||
  (before.birthtimeNs !== now.birthtimeNs && keepsBirthtime(dirname(path)))

/** A system that does not tell the time of creation answers with that of the last change, for every folder. */
const keepsBirthtime = (path: string): boolean => {
  const stats = identify(path)
  return stats !== undefined && stats.birthtimeNs !== stats.ctimeNs
}
