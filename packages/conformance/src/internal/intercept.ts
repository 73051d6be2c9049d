import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Fault, Moment } from "../Fault.ts"
import * as Content from "./content.ts"

type AnyEffect = Effect.Effect<unknown, unknown, unknown>
type AnyStream = Content.AnyStream

/** A fault of any operation. */
export type AnyFault = Fault<unknown, unknown>

/** An operation with its arguments, which can be run with others. */
export interface Operation {
  readonly name: string
  readonly args: ReadonlyArray<unknown>
  readonly run: (args: ReadonlyArray<unknown>) => unknown
}

/** The operation, with the fault that is decided on whenever it is run. What is neither effect nor stream stays. */
export const intercept = (
  operation: Operation,
  decide: (operation: string) => Effect.Effect<AnyFault | undefined>
): unknown => {
  const answer = operation.run(operation.args)
  if (Stream.isStream(answer)) {
    return Stream.unwrap(
      Effect.map(decide(operation.name), (fault) => (fault === undefined ? answer : faultyStream(answer, fault)))
    )
  }
  if (Effect.isEffect(answer)) {
    return Effect.flatMap(decide(operation.name), (fault) =>
      fault === undefined ? answer : faultyEffect(operation, answer, fault)
    )
  }
  return answer
}

// ---------------------------------------------------------------------------------------------------------------------
// streams
// ---------------------------------------------------------------------------------------------------------------------

const faultyStream = (answer: AnyStream, fault: AnyFault): AnyStream => {
  switch (fault._tag) {
    case "Fail":
      return endStream(answer, fault.at, Stream.fail(fault.error))
    case "Hang":
      return endStream(answer, fault.at, Stream.never)
    case "Die":
      return Stream.die(fault.defect)
    case "Delay":
      return Stream.unwrap(Effect.as(Effect.sleep(fault.duration), answer))
    case "Truncate":
      return Content.truncate(fault.length).stream(answer)
    case "Corrupt":
      return Content.corrupt.stream(answer)
    case "Answer":
      return Stream.map(answer, (element) => fault.alter(element))
  }
}

const endStream = (answer: AnyStream, at: Moment, end: AnyStream): AnyStream => {
  if (at === "before") return end
  return at === "after" ? Stream.concat(answer, end) : Content.thenAt(at, end).stream(answer)
}

// ---------------------------------------------------------------------------------------------------------------------
// effects
// ---------------------------------------------------------------------------------------------------------------------

const faultyEffect = (operation: Operation, answer: AnyEffect, fault: AnyFault): AnyEffect => {
  switch (fault._tag) {
    case "Fail":
      return endEffect(operation, answer, fault.at, Effect.fail(fault.error))
    case "Hang":
      return endEffect(operation, answer, fault.at, Effect.never)
    case "Die":
      return Effect.die(fault.defect)
    case "Delay":
      return Effect.delay(answer, fault.duration)
    case "Truncate":
      return withContent(operation, answer, Content.truncate(fault.length))
    case "Corrupt":
      return withContent(operation, answer, Content.corrupt)
    case "Answer":
      return Effect.map(answer, (given) => fault.alter(given))
  }
}

const endEffect = (operation: Operation, answer: AnyEffect, at: Moment, end: AnyEffect): AnyEffect => {
  if (at === "before") return end
  return at === "after"
    ? Effect.andThen(answer, end)
    : withContent(operation, answer, Content.thenAt(at, Stream.fromEffectDrain(end)))
}

/** Alters the content: what is given, or else what is answered. A name, being a text, is no content that is given. */
const withContent = (operation: Operation, answer: AnyEffect, alteration: Content.Alteration): AnyEffect => {
  const index = operation.args.findIndex((arg) => Stream.isStream(arg) || arg instanceof Uint8Array)
  if (index < 0) return Effect.flatMap(answer, (given) => alter(operation, given, alteration))
  return Effect.flatMap(alter(operation, operation.args[index], alteration), (given) => {
    const again = operation.run(operation.args.with(index, given))
    return Effect.isEffect(again) ? again : Effect.succeed(again)
  })
}

const alter = (operation: Operation, content: unknown, alteration: Content.Alteration): Effect.Effect<unknown> => {
  if (Stream.isStream(content)) return Effect.succeed(alteration.stream(content))
  if (Content.isPiece(content) && alteration.piece !== undefined) return Effect.succeed(alteration.piece(content))
  return Effect.die(new TypeError(`${operation.name} has no content for this fault`))
}
