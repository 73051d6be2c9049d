import * as CanonicalJson from "@strata/durable/CanonicalJson"
import * as Digest from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { SqlError } from "effect/sql/SqlError"
import type { NewEvent } from "../Event.ts"
import type { Appended } from "../Journal.ts"
import { EncodeFailed, IdentityConflict, JournalError } from "../JournalError.ts"
import type { Cursor, JournalStorage, StoredEvent } from "../JournalStorage.ts"
import type { Redactor } from "../Redaction.ts"
import * as Text from "@strata/durable/Text"

/** The one point at which payloads are encoded, and redacted. */
export const encode = (
  redactor: typeof Redactor.Service,
  event: NewEvent
): Effect.Effect<StoredEvent, JournalError> => {
  const { identity = null, type } = event
  if (type === "" || !Text.isStorable(type) || (identity !== null && !Text.isStorable(identity))) {
    const detail = "type and identity have to be well-formed Unicode without NUL, and the type not empty"
    return Effect.fail(new JournalError({ reason: new EncodeFailed({ type: type.toWellFormed(), detail }) }))
  }
  return Effect.flatMap(event.encode, (encoded) => {
    const payload = CanonicalJson.encodeResult(redactor.redact(type, encoded))
    if (Result.isFailure(payload)) {
      return Effect.fail(new JournalError({ reason: new EncodeFailed({ type, detail: payload.failure.message }) }))
    }
    // A type holds no line break, so the two cannot run into each other.
    const digest = identity === null ? null : Digest.sha256(`${JSON.stringify(type)}\n${payload.success}`)
    return Effect.succeed({ type, payload: payload.success, identity, digest })
  })
}

/** What is to be appended, and how to give every event its place once that is done. */
export interface Plan {
  readonly fresh: ReadonlyArray<StoredEvent>
  readonly place: (appended: ReadonlyArray<Cursor & { readonly seq: number }>) => ReadonlyArray<Appended>
}

/** Leaves out events that the stream, or the list itself, has already. */
export const plan = Effect.fnUntraced(function* (
  storage: JournalStorage["Service"],
  stream: string,
  events: ReadonlyArray<StoredEvent>
): Effect.fn.Return<Plan, SqlError | JournalError> {
  const identities = events.flatMap(({ identity }) => identity ?? [])
  if (identities.length === 0) {
    return { fresh: events, place: (appended) => appended.map((at) => ({ ...at, duplicate: false })) }
  }
  const stored = new Map((yield* storage.identities(stream, identities)).map((found) => [found.identity, found]))
  const fresh: Array<StoredEvent> = []
  const freshAt = new Map<string, number>()
  const places: Array<(appended: ReadonlyArray<Cursor & { readonly seq: number }>) => Appended> = []
  for (const event of events) {
    const before = event.identity === null ? undefined : stored.get(event.identity)
    const within = event.identity === null ? undefined : freshAt.get(event.identity)
    if (before !== undefined) {
      if (before.digest !== event.digest) return yield* conflict(stream, before.identity, before.seq)
      const { ordinal, seq, transaction } = before
      places.push(() => ({ transaction, ordinal, seq, duplicate: true }))
    } else if (within !== undefined) {
      if (fresh[within]!.digest !== event.digest) return yield* conflict(stream, fresh[within]!.identity!, 0)
      places.push((appended) => ({ ...appended[within]!, duplicate: true }))
    } else {
      const index = fresh.push(event) - 1
      if (event.identity !== null) freshAt.set(event.identity, index)
      places.push((appended) => ({ ...appended[index]!, duplicate: false }))
    }
  }
  return { fresh, place: (appended) => places.map((place) => place(appended)) }
})

const conflict = (stream: string, identity: string, seq: number) =>
  new JournalError({ reason: new IdentityConflict({ stream, identity, seq }) })
