/**
 * A `ChangeSignal` over the processes that share a Postgres: `LISTEN` tells what `NOTIFY` sent with the commits after
 * which rows are ready. Asks for `@effect/sql-pg`, which is an optional peer of this package.
 *
 * @since 0.1.0
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import * as ChangeSignal from "./ChangeSignal.ts"
import { channel } from "./internal/postgresSchema.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category models
 */
export interface PostgresSignalOptions {
  /**
   * How often waiters are woken without a notification, in case one was lost with a connection, and how long a lost
   * connection is waited for. Default 30 seconds, and 1 second.
   */
  readonly backstop?: Duration.Input | undefined
  readonly reconnect?: Duration.Input | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A signal that also notifies when another process made rows ready, for the life of the scope. It listens when this
 * ends. Its connection, one of the pool's, is made again when it breaks; after that it notifies once, as something may
 * have been missed.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  options: PostgresSignalOptions = {}
): Effect.fn.Return<ChangeSignal.ChangeSignal["Service"], SqlError, PgClient.PgClient | Scope.Scope> {
  const sql = yield* PgClient.PgClient
  const signal = yield* ChangeSignal.make
  const [row] = yield* sql`SELECT current_schema()`.values
  const follow = Effect.fnUntraced(function* (notifications: Notifications) {
    while (true) {
      // Many commits at a time wake once.
      const given = yield* Queue.takeAll(notifications)
      if (given.some((notification) => notification.payload === row?.[0])) yield* signal.notify
    }
  })
  const first = yield* sql.listen(channel)
  const again = Effect.scoped(
    Effect.flatMap(sql.listen(channel), (queue) => Effect.andThen(signal.notify, follow(queue)))
  )
  const pause = Effect.sleep(options.reconnect ?? "1 second")
  yield* follow(first).pipe(
    Effect.catch(() => Effect.forever(Effect.andThen(pause, Effect.ignore(again)))),
    Effect.forkScoped
  )
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.sleep(options.backstop ?? "30 seconds"), signal.notify))
  )
  return signal
})

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A signal over the processes that share the Postgres in context, see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options?: PostgresSignalOptions
): Layer.Layer<ChangeSignal.ChangeSignal, SqlError, PgClient.PgClient> =>
  Layer.effect(ChangeSignal.ChangeSignal, make(options))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

type Notifications = Effect.Success<ReturnType<PgClient.PgClient["listen"]>>
