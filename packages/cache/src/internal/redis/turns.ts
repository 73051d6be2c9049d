import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/**
 * Who waits for an answer over a connection on which answers come in the order of the commands. Whoever is first has the
 * time of a command, from when it became first; whoever comes after waits for as long as answers come.
 */
export interface Turns {
  /** In the order of the commands. */
  readonly waiting: Set<Turn>
  /** Since when the first one is first, in milliseconds. */
  since: number
  /** For how many milliseconds the first one waited in vain; no answer is waited for any more then. */
  silentMs: number | undefined
}

export interface Turn {
  /** Of the command and of its answer. */
  readonly bytes: number
}

export const make = (): Turns => ({ waiting: new Set(), since: 0, silentMs: undefined })

export const enter = (turns: Turns, bytes: number): Effect.Effect<Turn> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const turn = { bytes }
    if (turns.waiting.size === 0) turns.since = now
    turns.waiting.add(turn)
    return turn
  })

/** `isAnswered`: an answer came. Others leave because nobody waits any more. */
export const leave = (turns: Turns, turn: Turn, isAnswered: boolean): Effect.Effect<void> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    if (isAnswered || first(turns) === turn) turns.since = now
    turns.waiting.delete(turn)
  })

/** Ends for all of them when the first one has waited for too long, with the milliseconds that it had. */
export const silence = (
  turns: Turns,
  deadlines: { readonly responseMs: number; readonly minBytesPerSecond: number }
): Effect.Effect<number> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const bytes = first(turns)?.bytes ?? 0
    const afterMs = Math.ceil(deadlines.responseMs + (bytes / deadlines.minBytesPerSecond) * 1000)
    const leftMs = turns.since + afterMs - now
    if (turns.silentMs === undefined && leftMs > 0) {
      return Effect.andThen(Effect.sleep(leftMs), silence(turns, deadlines))
    }
    turns.silentMs ??= afterMs
    return Effect.succeed(turns.silentMs)
  })

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const first = ({ waiting }: Turns): Turn | undefined => waiting.values().next().value
