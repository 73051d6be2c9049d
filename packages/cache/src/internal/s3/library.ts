import * as Effect from "effect/Effect"
import { CacheError, Unsupported } from "../../CacheError.ts"

/** A package that is loaded by whoever uses the tier, and not installed by others. */
export const load = <A>(tier: string, name: string, load: () => Promise<A>): Effect.Effect<A, CacheError> =>
  Effect.tryPromise({
    try: load,
    catch: () =>
      new CacheError({
        reason: new Unsupported({ tier, operation: `be used without the package ${name}, which is to be installed` })
      })
  })
