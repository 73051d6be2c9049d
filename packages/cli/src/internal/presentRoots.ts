import type { ContentReader } from "@strata/follower/ContentReader"
import * as ProcessingError from "@strata/follower/ProcessingError"
import * as Roots from "@strata/search/Roots"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { existsSync } from "node:fs"

/**
 * Tells a file that is gone from one whose directory is not here: on a disk that is not mounted, or on another machine
 * that works on the same Postgres. What a scan recorded as there fails then, and stays in the index as it was.
 */
export const make = <A>(base: string, reader: ContentReader<A>): ContentReader<A> => ({
  read: (row) =>
    Effect.flatMap(reader.read(row), (content) => {
      const root = Roots.folderOf(base, row.scope)
      return Option.isSome(content) || row.op === "delete" || existsSync(root)
        ? Effect.succeed(content)
        : ProcessingError.transient(`${root} is not here`)
    })
})
