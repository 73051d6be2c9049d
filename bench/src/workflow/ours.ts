import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as ClockStore from "@strata/engine/ClockStore"
import * as DeferredStore from "@strata/engine/DeferredStore"
import * as RunStore from "@strata/engine/RunStore"
import * as WorkflowEngineSql from "@strata/engine/WorkflowEngineSql"
import * as Journal from "@strata/journal/Journal"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Layer from "effect/Layer"

/** The engine with its journal, at `synchronous=FULL`. */
export const engine = (filename: string) =>
  WorkflowEngineSql.layer().pipe(
    Layer.provideMerge(Layer.mergeAll(RunStore.layerSql, ClockStore.layerSql())),
    Layer.provideMerge(DeferredStore.layerSql),
    Layer.provideMerge(Journal.layerSql()),
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
    Layer.provideMerge(SqliteClient.layer({ filename, synchronous: "FULL" }))
  )
