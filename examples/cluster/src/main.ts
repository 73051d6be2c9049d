// npm start -w examples/cluster -- run                          a runner: start several, each with a PORT of its own
// npm start -w examples/cluster -- save acme todo 'call #bob'   saves a note of a tenant, whose runner indexes its tags
// npm start -w examples/cluster -- tagged acme '#bob'           finds it
//
// DATABASE_URL is the Postgres that they share. Others reach a runner at HOST and PORT; SHARD_LOCK_EXPIRATION is how long
// it may be silent before they take its tenants over, 35 seconds by default.
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Path } from "@strata/dirty-queue"
import { Config, Console, Effect, Layer, Schema } from "effect"
import { layerFollowers, layerStore, Notes } from "./notes.ts"

const [command = "", ...words] = process.argv.slice(2)

const postgres = PgClient.layerConfig({ url: Config.Redacted("DATABASE_URL") })
const store = layerStore.pipe(Layer.provideMerge(postgres))
const notes = Notes.layer.pipe(Layer.provideMerge(store))

const run = layerFollowers(process.env["PORT"] ?? "34431").pipe(
  Layer.provide(NodeClusterSocket.layer()),
  Layer.provide(store),
  Layer.launch
)

const save = Effect.gen(function* () {
  const decode = Schema.decodeUnknownEffect(Schema.Tuple([Path.Scope, Path.Path, Schema.String]))
  const [tenant, title, text] = yield* decode(words)
  const app = yield* Notes
  yield* app.addTenant(tenant)
  yield* app.save(tenant, title, text)
})

const tagged = Effect.gen(function* () {
  const [tenant, tag] = yield* Schema.decodeUnknownEffect(Schema.Tuple([Path.Scope, Schema.String]))(words)
  yield* Console.log((yield* Notes.use((app) => app.tagged(tenant, tag))).join("\n"))
})

switch (command) {
  case "run":
    NodeRuntime.runMain(run)
    break
  case "save":
    NodeRuntime.runMain(Effect.provide(save, notes))
    break
  case "tagged":
    NodeRuntime.runMain(Effect.provide(tagged, notes))
    break
  default:
    console.error("run, save TENANT TITLE TEXT, or tagged TENANT TAG")
    process.exitCode = 2
}
