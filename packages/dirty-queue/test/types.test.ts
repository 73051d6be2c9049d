import { describe, expectTypeOf, it } from "@effect/vitest"
import type { Changelog } from "@strata/dirty-queue/Changelog"
import type { DirtyQueue, Reader } from "@strata/dirty-queue/DirtyQueue"
import type { WriteTransaction } from "@strata/durable/DurableWriter"
import type * as Effect from "effect/Effect"

describe("types", () => {
  it("let changes be recorded only inside of a write", () => {
    expectTypeOf<Effect.Services<ReturnType<Changelog["Service"]["record"]>>>().toEqualTypeOf<WriteTransaction>()
    expectTypeOf<Effect.Services<ReturnType<DirtyQueue["Service"]["claim"]>>>().toEqualTypeOf<never>()
  })

  it("keep what changes the queue from readers", () => {
    expectTypeOf<
      Extract<keyof Reader, "claim" | "ack" | "fail" | "release" | "renew" | "revive">
    >().toEqualTypeOf<never>()
  })
})
