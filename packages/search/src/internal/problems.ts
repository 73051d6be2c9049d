import type { Scope } from "@strata/dirty-queue/Path"
import type { DurableWriter } from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import { type Problem, ProblemReason } from "../FileTree.ts"
import type { SeenStorage } from "./storage.ts"

/** What the last scans could not use, kept so that it can be told without another scan. */

const Rows = Schema.Array(Schema.Struct({ path: Schema.String, reason: Schema.fromJsonString(ProblemReason) }))

/** What is stored was encoded here, so that a row which does not decode is a fault of this module. */
const decode = (rows: ReadonlyArray<object>): Effect.Effect<ReadonlyArray<Problem>> =>
  Effect.catchTag(Schema.decodeUnknownEffect(Rows)(rows), "SchemaError", Effect.die)

export const list = (seen: SeenStorage, scope: Scope, under: string): Effect.Effect<ReadonlyArray<Problem>, SqlError> =>
  Effect.flatMap(seen.problems(scope, under), decode)

/** Puts what a scan found in place of what was known of the part that it looked at. Writes only what is new. */
export const replace = Effect.fnUntraced(function* (
  seen: SeenStorage,
  durable: DurableWriter["Service"],
  scope: Scope,
  under: string,
  problems: ReadonlyArray<Problem>
): Effect.fn.Return<void, SqlError> {
  const known = new Map((yield* seen.problems(scope, under)).map(({ path, reason }) => [path, reason]))
  const found = new Map(problems.map(({ path, reason }) => [path, JSON.stringify(reason)]))
  const gone = [...known.keys()].filter((path) => !found.has(path))
  const fresh = [...found].flatMap(([path, reason]) => (known.get(path) === reason ? [] : [{ path, reason }]))
  if (gone.length + fresh.length === 0) return
  yield* durable.write(seen.replaceProblems(scope, gone, fresh))
})
