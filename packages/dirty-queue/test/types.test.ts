import { describe, expectTypeOf, it } from "@effect/vitest"
import type { Changelog } from "@strata/dirty-queue/Changelog"
import type { D1Changelog, layer } from "@strata/dirty-queue/D1Changelog"
import type { DirtyQueue, Reader } from "@strata/dirty-queue/DirtyQueue"
import type { WriteTransaction } from "@strata/durable/DurableWriter"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"

describe("types", () => {
  it("let changes be recorded only inside of a write", () => {
    expectTypeOf<Effect.Services<ReturnType<Changelog["Service"]["record"]>>>().toEqualTypeOf<WriteTransaction>()
    expectTypeOf<Effect.Services<ReturnType<DirtyQueue["Service"]["claim"]>>>().toEqualTypeOf<never>()
  })

  it("let changes be recorded on D1 anywhere, by a tag that is not the one of writes", () => {
    type Record = D1Changelog["Service"]["record"]
    expectTypeOf<Effect.Services<ReturnType<Record>>>().toEqualTypeOf<never>()
    expectTypeOf<Layer.Success<ReturnType<typeof layer>>>().toEqualTypeOf<D1Changelog>()
    expectTypeOf<Changelog>().not.toExtend<D1Changelog>()
    expectTypeOf<D1Changelog>().not.toExtend<Changelog>()
  })

  it("keep what changes the queue from readers", () => {
    expectTypeOf<
      Extract<keyof Reader, "claim" | "ack" | "fail" | "release" | "renew" | "revive">
    >().toEqualTypeOf<never>()
  })
})
