/** Effect Cluster's workflow engine in one process, on the same SQLite client. */
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as ClusterWorkflowEngine from "effect/cluster/ClusterWorkflowEngine"
import * as SingleRunner from "effect/cluster/SingleRunner"
import * as Digest from "effect/crypto/Digest"
import * as Layer from "effect/Layer"

export const engine = (filename: string) =>
  ClusterWorkflowEngine.layer.pipe(
    Layer.provideMerge(SingleRunner.layer({ runnerStorage: "sql" })),
    Layer.provide(Digest.layerWebCrypto),
    Layer.provideMerge(SqliteClient.layer({ filename, synchronous: "FULL" }))
  )
