import * as Effect from "effect/Effect"
import type { CacheEntry } from "../CacheEntry.ts"
import { CacheError, type CacheErrorReason, Invalid, ReadOnly } from "../CacheError.ts"
import { contradiction } from "./storedEntry.ts"

/*
 * What every shared tier refuses by itself, before its server is asked.
 */

interface Settings {
  readonly tier: string
  readonly readOnly: boolean
}

export const failWith = (reason: CacheErrorReason): Effect.Effect<never, CacheError> =>
  Effect.fail(new CacheError({ reason }))

export const checkWritable = ({ readOnly, tier }: Settings): Effect.Effect<void, CacheError> =>
  readOnly ? failWith(new ReadOnly({ tier })) : Effect.void

/** Whether an entry may be put: nothing of it contradicts the rest. */
export const checkEntry = (settings: Settings, entry: CacheEntry): Effect.Effect<void, CacheError> =>
  Effect.suspend(() => {
    if (settings.readOnly) return checkWritable(settings)
    const detail = contradiction(entry)
    return detail === undefined ? Effect.void : failWith(new Invalid({ tier: settings.tier, detail }))
  })
