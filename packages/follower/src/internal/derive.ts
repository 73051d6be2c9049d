import type { Claim } from "@strata/dirty-queue/DirtyQueue"
import type { Path } from "@strata/dirty-queue/Path"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Content, ContentReader } from "../ContentReader.ts"
import * as ProcessingError from "../ProcessingError.ts"

/** What has to happen to the index for one claimed path. */
export type Derived<A> =
  | { readonly _tag: "Upsert"; readonly claim: Claim; readonly digest: string; readonly value: A }
  | { readonly _tag: "Removal"; readonly claim: Claim }
  | { readonly _tag: "Unchanged"; readonly claim: Claim }
  | { readonly _tag: "Failed"; readonly claim: Claim; readonly error: ProcessingError.ProcessingError }

/**
 * Reads the current content of a claimed path and compares it with the digest that the index holds. `held` is absent
 * when the index cannot tell. Never fails: one path's failure is an outcome of that path.
 */
export const derive =
  <A>(reader: ContentReader<A>, held: ReadonlyMap<Path, string> | undefined) =>
  (claim: Claim): Effect.Effect<Derived<A>> =>
    reader.read({ scope: claim.scope, path: claim.path, op: claim.op }).pipe(
      Effect.flatMap((content) =>
        Option.isNone(content) ? Effect.succeed(removal(claim, held)) : load(claim, content.value, held)
      ),
      Effect.catchTag("ProcessingError", (error) =>
        Effect.succeed<Derived<A>>(
          error.reason._tag === "Gone" ? removal(claim, held) : { _tag: "Failed", claim, error }
        )
      ),
      Effect.catchDefect((defect) => Effect.as(logDefect(claim, defect), failedByDefect(claim, defect)))
    )

const load = <A>(
  claim: Claim,
  content: Content<A>,
  held: ReadonlyMap<Path, string> | undefined
): Effect.Effect<Derived<A>, ProcessingError.ProcessingError> =>
  held?.get(claim.path) === content.digest
    ? Effect.succeed({ _tag: "Unchanged", claim })
    : Effect.map(content.load, (value) => ({ _tag: "Upsert", claim, digest: content.digest, value }))

const removal = (claim: Claim, held: ReadonlyMap<Path, string> | undefined): Derived<never> =>
  held !== undefined && !held.has(claim.path) ? { _tag: "Unchanged", claim } : { _tag: "Removal", claim }

/** A bug that one path's content sets off must not stop the others; the path is retried and then set aside. */
const failedByDefect = (claim: Claim, defect: unknown): Derived<never> => ({
  _tag: "Failed",
  claim,
  error: ProcessingError.transient("The reader died", defect)
})

const logDefect = (claim: Claim, defect: unknown): Effect.Effect<void> =>
  Effect.annotateLogs(Effect.logError("A content reader died", Cause.die(defect)), {
    scope: claim.scope,
    path: claim.path
  })
