import { assert, describe, it } from "@effect/vitest"
import * as P from "@strata/dirty-queue/Path"
import * as Prefix from "@strata/dirty-queue/Prefix"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

const compareEncoded = (a: string, b: string) => Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b)))

/** Texts of few, telling characters: they share prefixes, and border on the surrogates from both sides. */
const Text = Schema.Array(
  Schema.Literals(["a", "b", "/", "\u007f", "é", "\ud7ff", "\ue000", "\uffff", "😀", "\u{10ffff}"])
)
const join = (parts: ReadonlyArray<string>) => parts.join("")

describe("Path", () => {
  it("is well-formed, non-empty text without NUL", () => {
    for (const good of ["a", "a/b", "/", "😀", "%_", " ", "\ud83d\ude00", "\u0001"]) {
      assert.strictEqual(P.Path.make(good), good)
    }
    for (const bad of ["", "\0", "a\0b", "\ud800", "a\udc00b"]) {
      assert.isTrue(Option.isNone(Schema.decodeOption(P.Path)(bad)), JSON.stringify(bad))
      assert.isTrue(Option.isNone(Schema.decodeOption(P.Scope)(bad)), JSON.stringify(bad))
      assert.isTrue(Option.isNone(Schema.decodeOption(P.FollowerName)(bad)), JSON.stringify(bad))
    }
    assert.isTrue(Option.isSome(Schema.decodeOption(Prefix.Prefix)("")))
    assert.isTrue(Option.isNone(Schema.decodeOption(Prefix.Prefix)("\ud800")))
  })

  it.effect.prop("has its limit in bytes of UTF-8", { text: Text }, ({ text }) =>
    Effect.sync(() => {
      const long = join(text)
        .padEnd(700, join(text) + "é")
        .repeat(2)
      assert.strictEqual(P.isTooLong(long), Buffer.byteLength(long) > P.maxPathBytes)
      assert.strictEqual(P.isTooLong(join(text)), Buffer.byteLength(join(text)) > P.maxPathBytes)
    })
  )

  it("says of a name that is too long which one it is, and does not say all of it", () => {
    const { message } = new P.NameTooLong({ kind: "path", text: "a".repeat(5000), limit: P.maxPathBytes })
    assert.strictEqual(message, `The path "${"a".repeat(60)}"… has more than 2048 bytes`)
  })

  it.effect.prop("is ordered by the bytes of UTF-8", { a: Text, b: Text }, ({ a, b }) =>
    Effect.sync(() => assert.strictEqual(P.OrderBytes(join(a), join(b)), compareEncoded(join(a), join(b))))
  )
})

describe("Prefix", () => {
  it.effect.prop("covers what starts with its bytes", { prefix: Text, text: Text }, ({ prefix, text }) =>
    Effect.sync(() => {
      const starts = Buffer.from(join(text)).subarray(0, Buffer.byteLength(join(prefix)))
      assert.strictEqual(Prefix.covers(join(prefix), join(text)), starts.equals(Buffer.from(join(prefix))))
    })
  )

  it.effect.prop("bounds what it covers", { prefix: Text, text: Text }, ({ prefix, text }) =>
    Effect.sync(() => {
      const bound = Prefix.upperBound(join(prefix))
      const below = Option.match(bound, {
        onNone: () => true,
        onSome: (bound) => bound.isWellFormed() && compareEncoded(join(text), bound) < 0
      })
      const within = compareEncoded(join(text), join(prefix)) >= 0 && below
      assert.strictEqual(within, Prefix.covers(join(prefix), join(text)))
    })
  )

  it("is taken off and put back", () => {
    const path = P.Path.make("a_b/😀.md")
    assert.deepStrictEqual(Prefix.strip("a_b/", path), Option.some(P.Path.make("😀.md")))
    assert.strictEqual(Prefix.add("a_b/", P.Path.make("😀.md")), path)
    assert.deepStrictEqual(Prefix.strip("", path), Option.some(path))
    for (const other of ["aXb/", "A_B/", "a_b/😀.md", "a_b/😀.md2"]) {
      assert.deepStrictEqual(Prefix.strip(other, path), Option.none())
    }
  })
})
