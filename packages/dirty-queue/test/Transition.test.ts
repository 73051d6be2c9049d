import { assert, describe, it } from "@effect/vitest"
import * as Transition from "@strata/dirty-queue/Transition"

const identity = { id: 1, registration: 1, path: "a" }
const change = { version: 10, seq: 5, op: "put", cid: "new", mtime: 1, at: 100 } as const

describe("Transition", () => {
  it("advances hints only with a greater sequence number, and the version always", () => {
    const row = Transition.applyChange(undefined, identity, change)
    const late = Transition.applyChange(row, identity, { ...change, version: 11, seq: 4, op: "delete", cid: null })
    assert.deepInclude(late, { version: 11, seq: 5, op: "put", cid: "new" })
    const next = Transition.applyChange(late, identity, { ...change, version: 12, seq: 6, op: "delete", cid: null })
    assert.deepInclude(next, { version: 12, seq: 6, op: "delete", cid: null })
  })

  it("keeps the place of the first change that came in after a claim", () => {
    const claimed = Transition.claim(Transition.applyChange(undefined, identity, change), {
      now: 200,
      token: 20,
      leaseFor: 1000,
      maxAttempts: 3
    })
    assert.isFalse(Transition.isSuperseded(claimed))
    const once = Transition.applyChange(claimed, identity, { ...change, version: 21, seq: 6, at: 300 })
    const twice = Transition.applyChange(once, identity, { ...change, version: 22, seq: 7, at: 400 })
    assert.isTrue(Transition.isSuperseded(twice))
    assert.deepInclude(twice, { readyAt: 1200, queuedAt: 300, dirtyAt: 100 })
    assert.deepInclude(Transition.ackSuperseded({ ...twice, lease: 20 }), { readyAt: 300, dirtyAt: 300, since: 21 })
  })
})
