import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/* Why a run failed, as far as its stored result tells: it is of Schemas that are not known here. */

const Told = Schema.Struct({ message: Schema.String })
const Tagged = Schema.Struct({ _tag: Schema.String })

const Stored = Schema.fromJsonString(
  Schema.Struct({
    complete: Schema.Struct({
      cause: Schema.Array(
        Schema.Struct({ error: Schema.optionalKey(Schema.Unknown), defect: Schema.optionalKey(Schema.Unknown) })
      )
    })
  })
)

const decode = Schema.decodeUnknownOption(Stored)
const decodeTold = Schema.decodeUnknownOption(Told)
const decodeTagged = Schema.decodeUnknownOption(Tagged)

/** Only the message or the tag of the first failure: its other fields may be secrets. */
export const failureMessage = (result: string | null): string | undefined => {
  const causes = Option.match(decode(result), { onNone: () => [], onSome: ({ complete }) => complete.cause })
  for (const { defect, error } of causes) {
    const words = wordsOf(error ?? defect)?.replaceAll(/(?<=:\/\/)[^\s/?#]*@/g, "…@")
    if (words !== undefined && words !== "") return words.length > longest ? `${words.slice(0, longest)}…` : words
  }
  return undefined
}

const longest = 300

const wordsOf = (failure: unknown): string | undefined => {
  if (typeof failure === "string") return failure
  const message = Option.map(decodeTold(failure), (told) => told.message)
  const tag = Option.map(decodeTagged(failure), ({ _tag }) => _tag)
  if (Option.isSome(message) && message.value !== "") {
    return Option.isSome(tag) ? `${tag.value}: ${message.value}` : message.value
  }
  return Option.getOrUndefined(tag)
}
