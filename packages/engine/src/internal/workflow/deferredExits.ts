import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as DurableDeferred from "effect/workflow/DurableDeferred"
import { type Encoded, type WorkflowEngine, WorkflowInstance } from "effect/workflow/WorkflowEngine"

/**
 * What a body gets of a completed deferred, as from Effect's own `deferredResult` and with its span. But a success is
 * decoded by the Schema of its value, which most deferreds of an app share; that of the exit is each one's own, and
 * compiling it takes longer than all else that a replay does for an await.
 */
export const decoded =
  (stored: Encoded["deferredResult"]): WorkflowEngine["Service"]["deferredResult"] =>
  (deferred) =>
    Effect.contextWith((context: Context.Context<WorkflowInstance>) =>
      Effect.flatMap(stored(deferred), (exit) =>
        Option.isNone(exit) ? Effect.succeedNone : Effect.asSome(Effect.orDie(decode(deferred, exit.value)))
      ).pipe(
        Effect.withSpan(
          "WorkflowEngine.deferredResult",
          { attributes: { name: deferred.name, executionId: Context.get(context, WorkflowInstance).executionId } },
          { captureStackTrace: false }
        )
      )
    )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

type Decoder = (value: unknown) => Effect.Effect<unknown, Schema.SchemaError>

const decode = <Success extends Schema.Constraint, Error extends Schema.Constraint>(
  deferred: DurableDeferred.DurableDeferred<Success, Error>,
  exit: Exit.Exit<unknown, unknown>
) =>
  (Exit.isSuccess(exit)
    ? Effect.mapEager(decoderOf(deferred.successSchema)(exit.value ?? null), Exit.succeed)
    : Schema.decodeUnknownEffect(deferred.exitSchema)(exit)) as Effect.Effect<
    Exit.Exit<Success["Type"], Error["Type"]>,
    Schema.SchemaError
  >

const decoders = new WeakMap<Schema.Constraint, Decoder>()

/** The services of a Schema are those of whoever awaits, which Effect takes out of the types. */
const decoderOf = (schema: Schema.Constraint): Decoder => {
  const known = decoders.get(schema)
  if (known !== undefined) return known
  const decoder = Schema.decodeUnknownEffect(Schema.toCodecJson(schema)) as Decoder
  decoders.set(schema, decoder)
  return decoder
}
