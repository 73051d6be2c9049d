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
  const event = seenAtOnce(entry)
  if (event !== undefined) return addEvent(effects, entry, event)
  const decoded = decode({
    ...entry,
    stream: StreamName.make(entry.stream),
    payload: JSON.parse(entry.payload) as Schema.Json,
    identity: entry.identity ?? undefined
  })
  if (Result.isFailure(decoded)) return decoded.failure
  return Option.isSome(decoded.success) ? apply(effects, entry, decoded.success.value) : undefined
}

const decode = Event.decoderResult(events)

const apply = (effects: Collecting, entry: JournalEntry, event: TableEvent): JournalError | undefined => {
  switch (event.type) {
    case "cache-recorded":
      return addEvent(effects, entry, recorded(event.payload))
    case "cache-quarantined":
    case "cache-evicted":
      return addEvent(effects, entry, { key: event.payload.key, ledger: null })
    case "cache-collected":
      for (const { key } of event.payload.entries) effects.events.push({ key, ledger: null })
      effects.collected.push(...event.payload.ledger)
      return undefined
  }
}

/** The ids of the ledger rise in the journal as they do in the table: a row that comes too late is none of it. */
const addEvent = (
  effects: Collecting,
  { seq, stream, type }: JournalEntry,
  event: StagedEvent
): JournalError | undefined => {
  if (event.ledger !== null) {
    if (event.ledger <= effects.ledger) {
      const detail = `row ${event.ledger} of the ledger comes behind row ${effects.ledger}`
      return new JournalError({ reason: new DecodeFailed({ stream, seq, type, detail }) })
    }
    effects.ledger = event.ledger
  }
  effects.events.push(event)
  return undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// the form that is seen at once
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What an entry does that records or evicts, without artifacts and without anything to unescape. Payloads are canonical
 * JSON, so that one pattern reads such an entry several times as fast as a parser. It takes nothing that the Schema
 * refuses or reads otherwise.
 */
export const seenAtOnce = ({ payload, type }: Pick<JournalEntry, "payload" | "type">): StagedEvent | undefined => {
  if (type === Recorded.type) return seenRecorded(recordedPattern.exec(payload))
  if (type === Evicted.type) return seenEvicted(evictedPattern.exec(payload))
  return undefined
}

const seenRecorded = (groups: RegExpExecArray | null): StagedEvent | undefined =>
  groups === null
    ? undefined
    : {
        digest: groups[1]!,
        from: groups[2] ?? null,
        key: groups[3]!,
        ledger: Number(groups[4]),
        action: groups[5]!,
        durationMs: Number(groups[6]),
        recordedAt: Number(groups[7]),
        recordedBy: groups[8]!,
        recording: groups[9]!,
        version: groups[10]!,
        artifacts: "[]"
      }

const seenEvicted = (groups: RegExpExecArray | null): StagedEvent | undefined =>
  groups === null ? undefined : { key: groups[1]!, ledger: null }

const hex = (length: number): string => `"([0-9a-f]{${length}})"`

const text = String.raw`"([^"\\\x00-\x1f]+)"`

const integer = String.raw`(0|[1-9]\d{0,14})`

const decimal = String.raw`((?:0|[1-9]\d{0,8})(?:\.\d{0,5}[1-9])?)`

const recordedPattern = RegExp(
  `^{"artifacts":\\[\\],"digest":${hex(64)},(?:"from":${text},)?"key":${hex(64)},"ledger":${integer},"metadata":` +
    `{"action":${text},"durationMs":${decimal},"recordedAt":${integer},"recordedBy":${text},"recording":${hex(32)},` +
    `"version":${text}}}$`
)

const evictedPattern = RegExp(`^{"key":${hex(64)},"recording":${hex(32)}}$`)
