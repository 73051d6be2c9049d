import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { CacheError } from "../../CacheError.ts"
import type { Connection } from "./connection.ts"
import * as Reply from "./reply.ts"

/** The most that comes at a time, so that other commands get their turn, and silence shows soon. */
export const pieceBytes = 128 * 1024

/**
 * A value in pieces, `most` bytes of it: the first piece, of `first` bytes, and further ones while there is more. What is
 * not there is an empty piece, as what is empty. A value that is replaced meanwhile comes in parts of both.
 */
export const pieces = (
  connection: Connection,
  key: string,
  { first, most }: { readonly first: number; readonly most: number }
): Stream.Stream<Buffer, CacheError> =>
  Stream.paginate(
    0,
    Effect.fnUntraced(function* (start) {
      const wanted = Math.min(start === 0 ? first : pieceBytes, most - start)
      const piece = yield* connection.send(Reply.bytes, ["GETRANGE", key, `${start}`, `${start + wanted - 1}`], wanted)
      const end = start + piece.length
      return [[piece], piece.length === wanted && end < most ? Option.some(end) : Option.none()] as const
    })
  )
