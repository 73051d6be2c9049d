/** What the callers of runs see when their server is ended and started again. */
import { assert, describe, it } from "@effect/vitest"
import * as PgClient from "@effect/sql-pg/PgClient"
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Postgres from "@strata/durable/testing/postgres"
import * as WorkflowEngineSql from "@strata/engine/WorkflowEngineSql"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Workflow from "effect/workflow/Workflow"
import * as Tiers from "./workflowTiers.ts"

const Waits = Workflow.make("Waits", {
  payload: { id: Schema.String },
  success: Schema.String,
  idempotencyKey: ({ id }) => id,
  // Asks often, so that it asks while there is no server.
  suspendedRetrySchedule: Schedule.spaced("50 millis")
})

const gate = DurableDeferred.make("gate", { success: Schema.String })

const opened = (executionId: string) =>
  DurableDeferred.succeed(gate, {
    token: DurableDeferred.tokenFromExecutionId(gate, { workflow: Waits, executionId }),
    value: "through"
  })

/** The engine, and a promise of the first call that has to wait for the storage. */
const waiting = Effect.map(Deferred.make<void>(), (told) => ({
  told: Deferred.await(told),
  logger: Logger.layer([
    Logger.make(({ message }) => {
      if (String(message).includes("A call cannot go on for now")) Deferred.doneUnsafe(told, Effect.void)
    })
  ])
}))

const isSuspended = (executionId: string) =>
  Waits.poll(executionId).pipe(
    Effect.repeat({
      schedule: Schedule.spaced("10 millis"),
      until: (found) => Option.isSome(found) && found.value._tag === "Suspended"
    })
  )

let started = 0
const waits = Waits.toLayer(() =>
  Effect.suspend(() => {
    started++
    return DurableDeferred.await(gate)
  })
)

const onServer = Effect.gen(function* () {
  const server = yield* Postgres.make({ durable: true, quiet: true })
  const { logger, told } = yield* waiting
  const context = yield* Layer.build(
    waits.pipe(
      Layer.provideMerge(WorkflowEngineSql.layer()),
      Layer.provideMerge(Tiers.onSql),
      Layer.provide(PgClient.layer({ url: server.url, maxConnections: 4 })),
      Layer.provideMerge(logger)
    )
  )
  return { context, server, told }
})

describe("a server that is ended and started again", { timeout: 60_000 }, () => {
  it.live.skipIf(!Postgres.isAvailable())("is waited for by who waits for a run", () =>
    Effect.gen(function* () {
      const { context, server, told } = yield* onServer
      yield* Effect.gen(function* () {
        const id = yield* Waits.executionId({ id: "waits" })
        const caller = yield* Effect.forkChild(Waits.execute({ id: "waits" }))
        yield* isSuspended(id)
        yield* server.kill
        yield* Effect.raceFirst(told, Fiber.join(caller))
        yield* server.restart
        yield* Effect.retry(Effect.sandbox(opened(id)), Schedule.spaced("50 millis"))
        assert.strictEqual(yield* Fiber.join(caller), "through")
      }).pipe(Effect.provideContext(context))
    })
  )

  it.live.skipIf(!Postgres.isAvailable())("is waited for by who starts a run, and can be interrupted", () =>
    Effect.gen(function* () {
      const { context, server, told } = yield* onServer
      yield* Effect.gen(function* () {
        const id = yield* Waits.executionId({ id: "starts" })
        yield* server.kill
        const [caller, other] = [
          yield* Effect.forkChild(Waits.execute({ id: "starts" })),
          yield* Effect.forkChild(Waits.execute({ id: "other" }))
        ]
        yield* Effect.raceAllFirst([told, Fiber.join(caller), Fiber.join(other)])
        yield* Fiber.interrupt(other)
        yield* server.restart
        yield* isSuspended(id)
        yield* opened(id)
        assert.strictEqual(yield* Fiber.join(caller), "through")
      }).pipe(Effect.provideContext(context))
    })
  )
})

it.live("a start that was committed, and told to have failed, is the same run, and is run", () =>
  Effect.gen(function* () {
    started = 0
    const lost = new SqlError({ reason: new ConnectionError({ cause: new Error("gone"), message: "gone" }) })
    let lose = false
    const uncertain = Layer.effectContext(
      Effect.map(Effect.context<DurableWriter>(), (context) => {
        const writer = Context.get(context, DurableWriter)
        return Context.make(DurableWriter, {
          write: (effect, options) =>
            Effect.flatMap(writer.write(effect, options), (value) => {
              if (!lose) return Effect.succeed(value)
              lose = false
              return Effect.fail(lost) as Effect.Effect<never>
            })
        })
      })
    )
    const stores = yield* Tiers.sqlite.database
    const { logger } = yield* waiting
    const context = yield* Layer.build(
      waits.pipe(
        Layer.provideMerge(WorkflowEngineSql.layer()),
        Layer.provideMerge(uncertain),
        Layer.provideMerge(stores),
        Layer.provideMerge(logger)
      )
    )
    yield* Effect.gen(function* () {
      const id = yield* Waits.executionId({ id: "uncertain" })
      lose = true
      const caller = yield* Effect.forkChild(Waits.execute({ id: "uncertain" }))
      yield* Effect.raceFirst(isSuspended(id), Fiber.join(caller))
      assert.strictEqual(started, 1)
      yield* opened(id)
      assert.strictEqual(yield* Fiber.join(caller), "through")
    }).pipe(Effect.provideContext(context))
  }).pipe(Effect.timeout("8 seconds"))
)
