import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8")

describe("README.md", () => {
  it("shows a test that is run", () => {
    const [, code] = /```ts\n(.*?)```/s.exec(read("../README.md")) ?? []
    assert.strictEqual(code, read("ownTier.test.ts"))
  })
})
