import { assert, describe, it } from "@effect/vitest"
import { Path, Scope } from "@strata/dirty-queue/Path"
import type { ContentReader, Key } from "@strata/follower/ContentReader"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { tmpdir } from "node:os"
import * as PresentRoots from "../src/internal/presentRoots.ts"

/** Finds no file. */
const nothing: ContentReader<string> = { read: () => Effect.succeedNone }

const { read } = PresentRoots.make(tmpdir(), nothing)

const row = (scope: string, op: Key["op"]): Key => ({ scope: Scope.make(scope), path: Path.make("a.md"), op })

describe("a file that is not there", () => {
  it.effect("is gone when its directory is here, or when it was recorded as gone", () =>
    Effect.gen(function* () {
      for (const one of [row(".", "put"), row(".", undefined), row("no/such/directory", "delete")]) {
        assert.isTrue(Option.isNone(yield* read(one)))
      }
    })
  )

  it.effect("stays in the index when its directory is not here either", () =>
    Effect.gen(function* () {
      for (const op of ["put", undefined] as const) {
        const error = yield* Effect.flip(read(row("no/such/directory", op)))
        assert.strictEqual(error.reason._tag, "Transient")
        assert.match(error.message, /no\/such\/directory is not here/)
      }
    })
  )
})
