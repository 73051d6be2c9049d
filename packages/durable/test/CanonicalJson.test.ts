import { assert, describe, it } from "@effect/vitest"
import * as CanonicalJson from "@strata/durable/CanonicalJson"
import * as Digest from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** The double whose IEEE 754 bits these are. */
const double = (bits: string): number => {
  const view = new DataView(new ArrayBuffer(8))
  view.setBigUint64(0, BigInt(`0x${bits}`))
  return view.getFloat64(0)
}

/** RFC 8785, appendix B. */
const numbers: ReadonlyArray<readonly [bits: string, text: string]> = [
  ["0000000000000000", "0"],
  ["8000000000000000", "0"],
  ["0000000000000001", "5e-324"],
  ["8000000000000001", "-5e-324"],
  ["7fefffffffffffff", "1.7976931348623157e+308"],
  ["ffefffffffffffff", "-1.7976931348623157e+308"],
  ["4340000000000000", "9007199254740992"],
  ["c340000000000000", "-9007199254740992"],
  ["4430000000000000", "295147905179352830000"],
  ["44b52d02c7e14af5", "9.999999999999997e+22"],
  ["44b52d02c7e14af6", "1e+23"],
  ["44b52d02c7e14af7", "1.0000000000000001e+23"],
  ["444b1ae4d6e2ef4e", "999999999999999700000"],
  ["444b1ae4d6e2ef4f", "999999999999999900000"],
  ["444b1ae4d6e2ef50", "1e+21"],
  ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
  ["3eb0c6f7a0b5ed8d", "0.000001"],
  ["41b3de4355555553", "333333333.3333332"],
  ["41b3de4355555554", "333333333.33333325"],
  ["41b3de4355555555", "333333333.3333333"],
  ["41b3de4355555556", "333333333.3333334"],
  ["41b3de4355555557", "333333333.33333343"],
  ["becbf647612f3696", "-0.0000033333333333333333"],
  ["43143ff3c1cb0959", "1424953923781206.2"]
]

/** RFC 8785, section 3.2.2, and its canonical bytes from section 3.2.4. */
const sample = String.raw`{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`
const sampleBytes =
  "7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e756d62657273223a5b3333333333333333332e333333333333" +
  "332c31652b33302c342e352c302e3030322c31652d32375d2c22737472696e67223a22e282ac245c75303030665c6e4127425c225c5c5c5c5c" +
  "222f227d"

/** RFC 8785, section 3.2.3. */
const unordered = String.raw`{
  "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
  "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"
}`
const ordered = [
  "Carriage Return",
  "One",
  "Control",
  "Latin Small Letter O With Diaeresis",
  "Euro Sign",
  "Emoji: Grinning Face",
  "Hebrew Letter Dalet With Dagesh"
]

const parse = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Json))

/** The same value with the keys of every object the other way around. */
const reversed = (value: Schema.Json): Schema.Json => {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, member]) => [key, reversed(member)])
  )
}

/** `JSON.stringify` escapes lone surrogates, and nothing else of that range. */
const isWellFormed = (value: Schema.Json): boolean => !/(?<!\\)(\\\\)*\\ud/.test(JSON.stringify(value))

describe("CanonicalJson", () => {
  it.effect("prints the numbers of RFC 8785, appendix B", () =>
    Effect.gen(function* () {
      for (const [bits, text] of numbers) {
        assert.strictEqual(yield* CanonicalJson.encode(double(bits)), text, bits)
      }
    })
  )

  it.effect("prints the sample of RFC 8785, section 3.2", () =>
    Effect.gen(function* () {
      const bytes = yield* CanonicalJson.encodeBytes(yield* parse(sample))
      assert.strictEqual(Buffer.from(bytes).toString("hex"), sampleBytes)
    })
  )

  it.effect("orders keys by UTF-16 units, as in RFC 8785, section 3.2.3", () =>
    Effect.gen(function* () {
      const text = yield* CanonicalJson.encode(yield* parse(unordered))
      const found = Array.from(text.matchAll(/:"([^"]*)"/g), (match) => match[1])
      assert.deepStrictEqual(found, ordered)
    })
  )

  it.effect("refuses what RFC 8785 refuses, and says where it is", () =>
    Effect.gen(function* () {
      const reason = (value: Schema.Json) => Effect.map(Effect.flip(CanonicalJson.encode(value)), (e) => e.reason)
      for (const number of [double("7fffffffffffffff"), double("7ff0000000000000"), -Infinity]) {
        const found = yield* reason({ a: [1, number] })
        assert.strictEqual(found._tag, "NonFiniteNumber")
        assert.deepStrictEqual(found.path, ["a", 1])
        assert.include(found.message, "/a/1")
      }
      for (const value of ["\ud83d", "\ude00", "a\ud83db", "\ude00\ud83d"]) {
        assert.strictEqual((yield* reason(value))._tag, "LoneSurrogate")
        assert.deepStrictEqual((yield* reason({ "a/b": { [value]: 1 } })).path, ["a/b", value])
      }
      const circular: { [key: string]: Schema.Json } = {}
      circular.self = { circular }
      assert.strictEqual((yield* reason(circular))._tag, "NotJson")
    })
  )

  it.effect("gives one digest for all orders of keys", () =>
    Effect.gen(function* () {
      const one = yield* CanonicalJson.digest({ b: [1, { d: 1, c: 2 }], a: "x" })
      assert.strictEqual(yield* CanonicalJson.digest({ a: "x", b: [1, { c: 2, d: 1 }] }), one)
      assert.strictEqual(one, Digest.sha256(`{"a":"x","b":[1,{"c":2,"d":1}]}`))
      assert.notStrictEqual(yield* CanonicalJson.digest({ a: "x", b: [1, { c: 2, d: 2 }] }), one)
    })
  )

  it.effect("is bounded by memory, not by the depth of the value", () =>
    Effect.gen(function* () {
      let value: Schema.Json = 1
      for (let depth = 0; depth < 100_000; depth++) value = [value]
      assert.strictEqual((yield* CanonicalJson.encode(value)).length, 200_001)
    })
  )

  it.effect.prop("keeps every value, and forgets the order of keys", { value: Schema.Json }, ({ value }) =>
    Effect.gen(function* () {
      if (!isWellFormed(value)) {
        assert.strictEqual((yield* Effect.flip(CanonicalJson.encode(value))).reason._tag, "LoneSurrogate")
        return
      }
      const text = yield* CanonicalJson.encode(value)
      // JSON has no negative zero.
      assert.deepStrictEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)))
      assert.strictEqual(yield* CanonicalJson.encode(yield* parse(text)), text)
      assert.strictEqual(yield* CanonicalJson.encode(reversed(value)), text)
    })
  )
})
