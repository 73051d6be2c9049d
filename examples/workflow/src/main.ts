// npm start -w examples/workflow -- place orders.db A1     places an order, or goes on with it, until it is settled
// npm start -w examples/workflow -- approve orders.db A1   says yes to it, from another terminal; `reject` says no
import { Strata, WorkflowEngineSql } from "@strata/strata"
import { Console, Effect, Layer } from "effect"
import { approve, layer, Order } from "./order.ts"

const [command = "", filename = "orders.db", id = "A1"] = process.argv.slice(2)

const place = Order.execute({ id, amount: 20 }).pipe(
  Effect.flatMap(Console.log),
  Effect.catchTag("Rejected", (error) => Console.log(`${error.id}: rejected`)),
  Effect.provide(layer)
)

const program = { place, approve: approve(id, true), reject: approve(id, false) }[command]

if (program === undefined) {
  console.error("place, approve or reject, a database file, and the id of an order")
  process.exitCode = 2
} else {
  const engine = WorkflowEngineSql.layerSql().pipe(Layer.provide(Strata.layerSqlite({ filename })))
  await Effect.runPromise(Effect.provide(program, engine))
}
