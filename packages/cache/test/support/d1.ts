/** Empty D1 databases as a shared tier, and what breaks one. */
import type { D1Client } from "@effect/sql-d1/D1Client"
import * as D1Cache from "@strata/cache/D1Cache"
import * as D1 from "@strata/durable/testing/d1"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"

/** A tier over a database, by a client of its own. */
export const tierAt = (db: D1.Database, options?: D1Cache.D1CacheOptions) =>
  Effect.flatMap(Layer.build(Layer.fresh(D1.layerOf(db))), (context) =>
    Effect.provideContext(D1Cache.stepCache(options), context)
  )

export const pruneAt = (db: D1.Database, limits: D1Cache.PruneOptions, options: D1Cache.D1CacheOptions = {}) =>
  Effect.provide(D1Cache.prune(options, limits), D1.layerOf(db))

/** Statements for the database, beside the tier. */
export const administer = (db: D1.Database) =>
  Effect.map(Layer.build(D1.layerOf(db)), (context: Context.Context<D1Client | SqlClient.SqlClient>) =>
    Context.get(context, SqlClient.SqlClient)
  )

/** What a database does: its work, nothing at all, or refuse. */
export type Mood = "work" | "silent" | "lost"

/** The database, with a mood in place of whatever lies between a Worker and it. */
export const moody = (db: D1.Database) => {
  const state = { mood: "work" as Mood, asked: 0 }
  const answer = <A>(work: () => Promise<A>): Promise<A> => {
    state.asked++
    if (state.mood === "work") return work()
    if (state.mood === "silent") return new Promise(() => {})
    return Promise.reject(new Error("D1_ERROR: Network connection lost."))
  }
  const statements = new WeakMap<object, ReturnType<D1.Database["prepare"]>>()
  const wrap = (statement: ReturnType<D1.Database["prepare"]>): ReturnType<D1.Database["prepare"]> => {
    const wrapped = new Proxy(statement, {
      get(target, property, receiver) {
        if (property === "bind") return (...values: Array<unknown>) => wrap(target.bind(...values))
        if (property === "raw") return () => answer(() => target.raw())
        if (property === "all") return () => answer(() => target.all())
        return Reflect.get(target, property, receiver)
      }
    })
    statements.set(wrapped, statement)
    return wrapped
  }
  const database = new Proxy(db, {
    get(target, property, receiver) {
      if (property === "prepare") return (query: string) => wrap(target.prepare(query))
      if (property === "batch") {
        return (batch: ReadonlyArray<object>) =>
          answer(() => target.batch(batch.flatMap((statement) => statements.get(statement) ?? [])))
      }
      return Reflect.get(target, property, receiver)
    }
  })
  return { db: database, state }
}
