import * as Stream from "effect/Stream"

/** A stream of anything. */
export type AnyStream = Stream.Stream<unknown, unknown, unknown>

/** What has a size, and can be cut. */
export type Piece = Uint8Array | string

/** What is done to content, whichever shape it has. */
export interface Alteration {
  readonly stream: (content: AnyStream) => AnyStream
  /** Absent when only a stream can be altered in this way. */
  readonly piece?: ((content: Piece) => Piece) | undefined
}

/** Goes on as `then` when `length` bytes have passed, or at the end of what is shorter. */
export const thenAt = (length: number, then: AnyStream): Alteration => ({
  stream: (content) => Stream.concat(take(content, length), then)
})

export const truncate = (length: number): Alteration => ({
  stream: (content) => take(content, length),
  piece: (content) => content.slice(0, length)
})

/** Flips a bit, of the first element that has any. */
export const corrupt: Alteration = {
  stream: (content) =>
    Stream.suspend(() => {
      let isDone = false
      return Stream.map(content, (element) => {
        if (isDone || !isPiece(element) || element.length === 0) return element
        isDone = true
        return flip(element)
      })
    }),
  piece: (content) => flip(content)
}

export const isPiece = (value: unknown): value is Piece => value instanceof Uint8Array || typeof value === "string"

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** A prefix, whose last element is cut where it ends. No more is pulled than that takes. */
const take = (content: AnyStream, length: number): AnyStream =>
  Stream.suspend(() => {
    if (length <= 0) return Stream.empty
    let left = length
    return content.pipe(
      Stream.map((element) => {
        const kept = isPiece(element) ? element.slice(0, left) : element
        left -= isPiece(element) ? element.length : 1
        return { kept, isLast: left <= 0 }
      }),
      Stream.takeUntil(({ isLast }) => isLast),
      Stream.map(({ kept }) => kept)
    )
  })

const flip = (piece: Piece): Piece => {
  const middle = piece.length >> 1
  if (typeof piece !== "string") return Uint8Array.from(piece, (byte, i) => (i === middle ? byte ^ 1 : byte))
  if (piece === "") return piece
  return `${piece.slice(0, middle)}${String.fromCharCode(piece.charCodeAt(middle) ^ 1)}${piece.slice(middle + 1)}`
}
