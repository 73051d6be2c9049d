import { DurableWriter, insideWrite, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import type { PublicationStorage, RefusalName, StoredRefusal } from "../PublicationStorage.ts"

interface Tier {
  /** Recordings by key. */
  readonly published: Map<string, string>
  readonly refusals: Map<string, StoredRefusal>
  readonly backfilled: Map<string, true>
}

export const make: Effect.Effect<PublicationStorage["Service"], never, DurableWriter> = Effect.map(
  DurableWriter,
  (writer) => {
    const tiers = new Map<string, Tier>()
    const tierOf = (name: string): Tier => {
      const tier = tiers.get(name) ?? { published: new Map(), refusals: new Map(), backfilled: new Map() }
      tiers.set(name, tier)
      return tier
    }
    const change = <A>(name: string, f: (tier: Tier, undo: Array<() => void>) => A) =>
      WriteTransaction.use((transaction) => {
        const undo: Array<() => void> = []
        return Effect.map(
          transaction.onRollback(() => undo.toReversed().forEach((step) => step())),
          () => f(tierOf(name), undo)
        )
      })
    // Waits for the write of another fiber, as on a database with one connection.
    const look = <A>(name: string, f: (tier: Tier) => A) =>
      Effect.flatMap(insideWrite, (isInside) => {
        const look = Effect.sync(() => f(tierOf(name)))
        return isInside ? look : writer.write(look)
      })

    return {
      published: (name, keys) =>
        look(name, ({ published }) =>
          keys.flatMap((key) => {
            const recording = published.get(key)
            return recording === undefined ? [] : [{ key, recording }]
          })
        ),
      publishedCount: (name) => look(name, ({ published }) => published.size),
      publish: (_now, name, entries) =>
        change(name, ({ published, refusals }, undo) => {
          for (const { key, recording } of entries) set(published, key, recording, undo)
          const recordings = new Set(entries.map((entry) => entry.recording))
          dropRefusals(refusals, (refusal) => recordings.has(refusal.recording), undo)
        }),
      forget: (name, keys) =>
        change(name, ({ published, refusals }, undo) => {
          const gone = new Set(keys)
          for (const key of keys) drop(published, key, undo)
          dropRefusals(refusals, (refusal) => gone.has(refusal.key), undo)
        }),
      isRefused: (name, refusal) => look(name, ({ refusals }) => refusals.has(nameOf(refusal))),
      refuse: (name, refusal) =>
        change(name, ({ refusals }, undo) => {
          if (refusals.has(nameOf(refusal))) return false
          set(refusals, nameOf(refusal), refusal, undo)
          return true
        }),
      refusals: (name, limit) => look(name, ({ refusals }) => [...refusals.values()].toReversed().slice(0, limit)),
      isBackfilled: (name) => look(name, ({ backfilled }) => backfilled.has(name)),
      setBackfilled: (_now, name) => change(name, ({ backfilled }, undo) => set(backfilled, name, true, undo))
    }
  }
)

const nameOf = ({ kind, recording, stage }: RefusalName): string => `${recording}/${stage}/${kind}`

const set = <A>(map: Map<string, A>, key: string, value: A, undo: Array<() => void>): void => {
  const before = map.get(key)
  map.set(key, value)
  undo.push(() => (before === undefined ? map.delete(key) : map.set(key, before)))
}

const drop = <A>(map: Map<string, A>, key: string, undo: Array<() => void>): void => {
  const before = map.get(key)
  if (before === undefined) return
  map.delete(key)
  undo.push(() => map.set(key, before))
}

const dropRefusals = (
  refusals: Map<string, StoredRefusal>,
  isGone: (refusal: StoredRefusal) => boolean,
  undo: Array<() => void>
): void => {
  for (const [name, refusal] of refusals) {
    if (isGone(refusal)) drop(refusals, name, undo)
  }
}
