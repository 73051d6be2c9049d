import * as Event from "@strata/journal/Event"
import { DecodeFailed, JournalError } from "@strata/journal/JournalError"
import type { StoredEntry as JournalEntry } from "@strata/journal/JournalStorage"
import { StreamName } from "@strata/journal/StreamName"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { Collected, Evicted, Quarantined, Recorded } from "../CacheEvents.ts"
import type { StagedEvent } from "../StepCacheStorage.ts"

/** The events that the tables are made of. */
export const events = [Recorded, Quarantined, Evicted, Collected] as const

export type TableEvent = Event.Typed<(typeof events)[number]>

/** What events do to the tables. */
export interface Effects {
  readonly events: ReadonlyArray<StagedEvent>
  readonly collected: ReadonlyArray<number>
}

/** Effects to which more are added. */
export interface Collecting extends Effects {
  readonly events: Array<StagedEvent>
  readonly collected: Array<number>
  /** The last row of the ledger. */
  ledger: number
}

export const recorded = ({
  artifacts,
  from,
  key,
  ledger,
  digest,
  metadata
}: typeof Recorded.schema.Type): StagedEvent => ({
  ledger,
  key,
  digest,
  artifacts:
    artifacts.length === 0 ? "[]" : JSON.stringify(artifacts.map(({ digest, name, size }) => ({ digest, name, size }))),
  recording: metadata.recording,
  recordedBy: metadata.recordedBy,
  recordedAt: metadata.recordedAt,
  action: metadata.action,
  version: metadata.version,
  durationMs: metadata.durationMs,
  from: from ?? null
})

/** Adds what one entry of the journal does. Most are of a form that is seen at once; Schemas look at the others. */
export const add = (effects: Collecting, entry: JournalEntry): JournalError | undefined => {
  const payload: Schema.Json = JSON.parse(entry.payload)
  if (entry.type === Recorded.type && isRecorded(payload)) return addRecorded(effects, entry, payload)
  if (entry.type === Evicted.type && isEvicted(payload)) {
    effects.events.push({ key: payload.key, ledger: null })
    return undefined
  }
  const decoded = decode({
    ...entry,
    stream: StreamName.make(entry.stream),
    payload,
    identity: entry.identity ?? undefined
  })
  if (Result.isFailure(decoded)) return decoded.failure
  return Option.isSome(decoded.success) ? apply(effects, entry, decoded.success.value) : undefined
}

const decode = Event.decoderResult(events)

const apply = (effects: Collecting, entry: JournalEntry, event: TableEvent): JournalError | undefined => {
  switch (event.type) {
    case "cache-recorded":
      return addRecorded(effects, entry, event.payload)
    case "cache-quarantined":
    case "cache-evicted":
      effects.events.push({ key: event.payload.key, ledger: null })
      return undefined
    case "cache-collected":
      for (const { key } of event.payload.entries) effects.events.push({ key, ledger: null })
      effects.collected.push(...event.payload.ledger)
      return undefined
  }
}

/** The ids of the ledger rise in the journal as they do in the table: a row that comes too late is none of it. */
const addRecorded = (
  effects: Collecting,
  { seq, stream, type }: JournalEntry,
  payload: typeof Recorded.schema.Type
): JournalError | undefined => {
  if (payload.ledger <= effects.ledger) {
    const detail = `row ${payload.ledger} of the ledger comes behind row ${effects.ledger}`
    return new JournalError({ reason: new DecodeFailed({ stream, seq, type, detail }) })
  }
  effects.events.push(recorded(payload))
  effects.ledger = payload.ledger
  return undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// the form that is seen at once
// ---------------------------------------------------------------------------------------------------------------------

/** Accepts nothing that the Schema refuses; entries with artifacts are left to it. */
const isRecorded = (payload: unknown): payload is typeof Recorded.schema.Type => {
  if (!isObject(payload)) return false
  const { artifacts, digest, from, key, ledger, metadata } = payload
  return (
    Number.isSafeInteger(ledger) &&
    isDigest(key) &&
    isDigest(digest) &&
    Array.isArray(artifacts) &&
    artifacts.length === 0 &&
    (from === undefined || typeof from === "string") &&
    isObject(metadata) &&
    isRecordingName(metadata.recording) &&
    isText(metadata.recordedBy) &&
    Number.isSafeInteger(metadata.recordedAt) &&
    isText(metadata.action) &&
    isText(metadata.version) &&
    typeof metadata.durationMs === "number"
  )
}

const isEvicted = (payload: unknown): payload is typeof Evicted.schema.Type =>
  isObject(payload) && isDigest(payload.key) && isRecordingName(payload.recording)

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isText = (value: unknown): boolean => typeof value === "string" && value !== ""

const isDigest = (value: unknown): boolean => typeof value === "string" && digestPattern.test(value)

const isRecordingName = (value: unknown): boolean => typeof value === "string" && recordingPattern.test(value)

const digestPattern = /^[0-9a-f]{64}$/

const recordingPattern = /^[0-9a-f]{32}$/
