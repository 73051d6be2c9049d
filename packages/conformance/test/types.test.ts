import { describe, it } from "@effect/vitest"
import { ArtifactSync } from "@strata/cache/ArtifactSync"
import * as Fault from "@strata/conformance/Fault"
import * as Faults from "@strata/conformance/Faults"
import { JournalStorage } from "@strata/journal/JournalStorage"
import * as Option from "effect/Option"
import { SqlError, UnknownError } from "effect/sql/SqlError"

const lost = new SqlError({ reason: new UnknownError({ cause: "lost" }) })

describe("the rules of a service", () => {
  it("name its operations, and fail and answer as these can", () => {
    Faults.make(JournalStorage, {
      rules: [
        { operation: "append", fault: Fault.fail(lost, "after") },
        { operation: "deleteBelow", fault: Fault.answer((deleted: number) => deleted + 1) },
        { operation: "globalFloor", fault: Fault.hang() },
        // @ts-expect-error It fails with a `SqlError`.
        { operation: "append", fault: Fault.fail("lost") },
        // @ts-expect-error There is no such operation.
        { operation: "forget", fault: Fault.hang() },
        // @ts-expect-error Some operations cannot fail in this way.
        { operation: "any", fault: Fault.fail(lost) }
      ]
    })
    Faults.make(ArtifactSync, {
      rules: [
        { operation: "fetch", fault: Fault.answer(() => Option.none()) },
        // @ts-expect-error It is no operation.
        { operation: "tier", fault: Fault.hang() },
        // @ts-expect-error It never fails.
        { operation: "publish", fault: Fault.fail(lost) }
      ]
    })
  })
})
