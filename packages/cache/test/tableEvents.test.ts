import { assert, describe, it } from "@effect/vitest"
import * as CanonicalJson from "@strata/durable/CanonicalJson"
import type { StoredEntry } from "@strata/journal/JournalStorage"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as CacheEvents from "../src/CacheEvents.ts"
import * as TableEvents from "../src/internal/tableEvents.ts"

const Hex = (length: number) => Schema.String.check(Schema.isPattern(new RegExp(`^[0-9a-f]{${length}}$`)))

/** As the Schema of the event, but with strings and numbers that are rare in life. */
const Recorded = Schema.Struct({
  ledger: Schema.Int,
  key: Hex(64),
  digest: Hex(64),
  artifacts: Schema.Array(Schema.Struct({ name: Schema.NonEmptyString, digest: Hex(64), size: Schema.Int })),
  metadata: Schema.Struct({
    recording: Hex(32),
    recordedBy: Schema.String,
    recordedAt: Schema.Int,
    action: Schema.String,
    version: Schema.String,
    durationMs: Schema.Union([Schema.Finite, Schema.Int])
  }),
  from: Schema.optionalKey(Schema.String)
})

const decode = Schema.decodeUnknownOption(CacheEvents.Recorded.schema)

/** What the Schema makes of a payload. */
const bySchema = (payload: string) => {
  const decoded = decode(JSON.parse(payload))
  return decoded._tag === "None" ? undefined : TableEvents.recorded(decoded.value)
}

const digest = "0123456789abcdef".repeat(4)

const usual = {
  artifacts: [],
  digest,
  key: digest.toUpperCase().toLowerCase(),
  ledger: 7,
  metadata: {
    action: "extract",
    durationMs: 12.5,
    recordedAt: 1_700_000_000_000,
    recordedBy: "builder-7",
    recording: digest.slice(0, 32),
    version: "3"
  }
}

const canonical = (value: Schema.Json) => Effect.runSync(CanonicalJson.encode(value))

describe("events of the table", () => {
  it.effect.prop(
    "what is seen at once is what the Schema reads",
    { value: Recorded },
    ({ value }) =>
      Effect.gen(function* () {
        const payload = Option.getOrUndefined(yield* Effect.option(CanonicalJson.encode(value)))
        if (payload === undefined) return // Lone surrogates have no canonical JSON.
        const seen = TableEvents.seenAtOnce({ type: "cache-recorded", payload })
        if (seen !== undefined) assert.deepStrictEqual(seen, bySchema(payload))
      }),
    { arbitrary: { runs: 500, seed: 17 } }
  )

  it("the usual entries are seen at once", () => {
    const payloads = [
      usual,
      { ...usual, from: "https://cache.example" },
      { ...usual, metadata: { ...usual.metadata, durationMs: 0, recordedBy: "é 😀" } },
      { ...usual, metadata: { ...usual.metadata, durationMs: 12.345678 } }
    ].map(canonical)
    for (const payload of payloads) {
      const seen = TableEvents.seenAtOnce({ type: "cache-recorded", payload })
      assert.isDefined(seen)
      assert.deepStrictEqual(seen, bySchema(payload))
    }
    const payload = canonical({ key: digest, recording: digest.slice(0, 32) })
    assert.deepStrictEqual(TableEvents.seenAtOnce({ type: "cache-evicted", payload }), { key: digest, ledger: null })
  })

  it("what the Schema refuses, or reads otherwise, is not", () => {
    const refused = [
      { ...usual, ledger: 1.5 },
      { ...usual, ledger: "7" },
      { ...usual, key: digest.slice(1) },
      { ...usual, digest: digest.toUpperCase() },
      { ...usual, metadata: { ...usual.metadata, action: "" } },
      { ...usual, metadata: { ...usual.metadata, recordedAt: 1e300 } },
      { ...usual, metadata: { ...usual.metadata, durationMs: "1" } },
      { ...usual, metadata: { ...usual.metadata, recordedBy: 'a "quoted" one' } },
      { ...usual, artifacts: [{ name: "a", digest, size: 1 }] }
    ].map(canonical)
    for (const payload of refused) {
      assert.isUndefined(TableEvents.seenAtOnce({ type: "cache-recorded", payload }), payload)
    }
    assert.isUndefined(TableEvents.seenAtOnce({ type: "cache-quarantined", payload: canonical(usual) }))
  })

  it("what is not seen at once is read by the Schema", () => {
    const effects: TableEvents.Collecting = { events: [], collected: [], ledger: 0 }
    const payload = canonical({ ...usual, metadata: { ...usual.metadata, recordedBy: 'a "quoted" one' } })
    assert.isUndefined(TableEvents.add(effects, { ...entry, payload }))
    assert.deepStrictEqual(effects.events, [bySchema(payload)])
  })
})

const entry: StoredEntry = {
  transaction: 0,
  ordinal: 1,
  stream: "cache",
  seq: 1,
  type: "cache-recorded",
  payload: "",
  identity: null,
  recordedAt: 0
}
