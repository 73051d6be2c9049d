import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Workflow from "effect/workflow/Workflow"
import type { StoredRun } from "../../RunStore.ts"
import { NotDecodable, NotEncodable, WorkflowError } from "../../WorkflowError.ts"
import * as Exits from "./exits.ts"

/**
 * Payloads and results of a workflow as JSON text. The engine gets and gives decoded ones, so these are made from the
 * workflow's Schemas, and need the services of those from whoever calls.
 */
export interface Codecs {
  readonly encodePayload: (payload: object, executionId: string) => Effect.Effect<string, WorkflowError>
  readonly decodePayload: (run: StoredRun) => Effect.Effect<object, WorkflowError>
  readonly encodeResult: (settled: Settled, executionId: string) => Effect.Effect<string, WorkflowError>
  readonly decodeResult: (text: string, executionId: string) => Effect.Effect<Settled, WorkflowError>
}

/** How a run ended. An exit that was not captured, see `Workflow.CaptureDefects`, is no result, but the end of the call. */
export interface Settled {
  readonly exit: Exit.Exit<unknown, unknown>
  readonly captured: boolean
}

const cache = new WeakMap<Workflow.Any, Codecs>()

export const of = (workflow: Workflow.Any): Codecs => {
  const known = cache.get(workflow)
  if (known !== undefined) return known
  const made = make(workflow)
  cache.set(workflow, made)
  return made
}

const make = (workflow: Workflow.Any): Codecs => {
  const payload = Schema.toCodecJson(workflow.payloadSchema)
  const success = Schema.toCodecJson(workflow.successSchema)
  const result = Schema.toCodecJson(Schema.Exit(workflow.successSchema, workflow.errorSchema, Schema.Defect()))
  const encodePayload = provided(Schema.encodeUnknownEffect(payload))
  const decodePayload = provided(Schema.decodeUnknownEffect(payload))
  const encodeSuccess = provided(Schema.encodeUnknownEffect(success))
  const decodeSuccess = provided(Schema.decodeUnknownEffect(success))
  const encodeExit = provided(Schema.encodeUnknownEffect(result))
  const decodeExit = provided(Schema.decodeUnknownEffect(result))
  const fail = (executionId: string, reason: WorkflowError["reason"]) =>
    new WorkflowError({ workflow: workflow._tag, executionId, reason })
  /** `Schema.Any` lets through what is no JSON. */
  const toText = (what: NotEncodable["what"], encoded: unknown, executionId: string) =>
    Effect.fromResult(
      Result.try({
        try: () => JSON.stringify(encoded),
        catch: () => fail(executionId, new NotEncodable({ what, detail: "what its Schema makes of it is no JSON" }))
      })
    )

  return {
    encodePayload: (value, executionId) =>
      Effect.flatMapEager(
        Effect.mapErrorEager(encodePayload(value), (error) =>
          fail(executionId, new NotEncodable({ what: "payload", detail: error.issue.toString() }))
        ),
        (encoded) => toText("payload", encoded ?? null, executionId)
      ),
    decodePayload: (run) => {
      const refused = (detail: string) => fail(run.executionId, new NotDecodable({ what: "payload", detail }))
      return Effect.flatMapEager(
        Effect.fromResult(Result.try({ try: () => JSON.parse(run.payload), catch: () => refused("no JSON") })),
        (json) =>
          Effect.mapBothEager(decodePayload(json), {
            onFailure: (error) => refused(error.issue.toString()),
            onSuccess: (value) => value as object
          })
      )
    },
    encodeResult: ({ captured, exit }, executionId) => {
      const tag = captured ? "complete" : "cut"
      const encoding = Exit.isSuccess(exit)
        ? Effect.mapEager(encodeSuccess(exit.value), (value) => ({ _tag: "Success", value: value ?? null }))
        : encodeExit(exit)
      return Effect.flatMapEager(
        Effect.mapErrorEager(encoding, (error) =>
          fail(executionId, new NotEncodable({ what: "result", detail: error.issue.toString() }))
        ),
        (encoded) => toText("result", { [tag]: encoded }, executionId)
      )
    },
    decodeResult: (text, executionId) =>
      Effect.suspend(() => {
        const parsed = JSON.parse(text) as { readonly complete?: ExitJson; readonly cut?: ExitJson }
        const exit = parsed.complete ?? parsed.cut
        return Effect.mapBothEager(
          exit?._tag === "Success" ? Effect.mapEager(decodeSuccess(exit.value), Exit.succeed) : decodeExit(exit),
          {
            onFailure: (error) =>
              fail(executionId, new NotDecodable({ what: "result", detail: error.issue.toString() })),
            onSuccess: (exit) => ({
              exit: exit as Exit.Exit<unknown, unknown>,
              captured: parsed.complete !== undefined
            })
          }
        )
      })
  }
}

interface ExitJson {
  readonly _tag: string
  readonly value?: unknown
}

/** `WorkflowEngine` asks its callers for the services of the Schemas, and takes them out of the types it hands on. */
const provided = <A, E, R>(f: (input: unknown) => Effect.Effect<A, E, R>): ((input: unknown) => Effect.Effect<A, E>) =>
  f as (input: unknown) => Effect.Effect<A, E>

/** What `poll` gives of a run. */
export const resultOf = (
  workflow: Workflow.Any,
  run: StoredRun
): Effect.Effect<Option.Option<Workflow.Result<unknown, unknown>>, WorkflowError> => {
  if (run.result !== null) return Effect.asSome(complete(workflow, run.result, run.executionId))
  return run.status === "suspended" ? Effect.asSome(suspended(run)) : Effect.succeedNone
}

export const complete = (
  workflow: Workflow.Any,
  result: string,
  executionId: string
): Effect.Effect<Workflow.Result<unknown, unknown>, WorkflowError> =>
  Effect.flatMapEager(of(workflow).decodeResult(result, executionId), ({ captured, exit }) => {
    if (captured || Exit.isSuccess(exit)) return Effect.succeed(new Workflow.Complete({ exit }))
    // An exit that was not captured ends the call instead, by a defect or an interruption.
    return Effect.failCause(exit.cause) as Effect.Effect<never>
  })

export const suspended = (run: StoredRun): Effect.Effect<Workflow.Result<unknown, unknown>> => {
  if (!run.held) return Effect.succeed(new Workflow.Suspended({}))
  if (run.cause === null) return Effect.succeed(new Workflow.Suspended({ failed: true }))
  return Exits.decodeCause(run.cause).pipe(
    Effect.orElseSucceed(() => undefined),
    Effect.map((cause) => new Workflow.Suspended(cause === undefined ? { failed: true } : { cause, failed: true }))
  )
}
