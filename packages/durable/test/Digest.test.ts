import { assert, describe, it } from "@effect/vitest"
import * as Digest from "@strata/durable/Digest"

describe("Digest", () => {
  it("is SHA-256 of the bytes, with text taken as UTF-8", () => {
    assert.strictEqual(Digest.sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    assert.strictEqual(Digest.sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    assert.strictEqual(Digest.sha256("é😀"), Digest.sha256(new TextEncoder().encode("é😀")))
  })
})
