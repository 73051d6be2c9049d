/**
 * Durable workflows on one SQLite file, at `synchronous=FULL` and with their journal: against Effect's engine in memory,
 * which keeps nothing, Effect Cluster with one runner on the same SQLite, and DBOS on Postgres.
 */
import * as Postgres from "@strata/durable/testing/postgres"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as WorkflowEngine from "effect/workflow/WorkflowEngine"
import { join } from "node:path"
import { type Bench, type Case, type Run, temporaryFolder, timed, Unavailable } from "./Harness.ts"
import * as Cluster from "./rivals/clusterWorkflow.ts"
import * as Dbos from "./rivals/dbos.ts"
import * as Flow from "./workflow/flow.ts"
import * as Ours from "./workflow/ours.ts"

type Engine<E> = Layer.Layer<WorkflowEngine.WorkflowEngine, E>

const onFile =
  <E>(engine: (filename: string) => Engine<E>) =>
  <A, E2>(body: Effect.Effect<A, E2, WorkflowEngine.WorkflowEngine | Scope.Scope>) =>
    Effect.flatMap(temporaryFolder, (folder) => on(engine(join(folder, "bench.db")))(body))

const on =
  <E>(engine: Engine<E>) =>
  <A, E2>(body: Effect.Effect<A, E2, WorkflowEngine.WorkflowEngine | Scope.Scope>) =>
    Effect.provide(body, Layer.fresh(Flow.layer.pipe(Layer.provideMerge(engine))))

// ---------------------------------------------------------------------------------------------------------------------
// throughput
// ---------------------------------------------------------------------------------------------------------------------

const five = (workflows: number, concurrency: number) =>
  Effect.map(
    timed(
      Effect.forEach(
        Array.from({ length: workflows }, (_, n) => String(n)),
        (id) => Flow.Five.execute({ id }),
        { concurrency, discard: true }
      )
    ),
    (ms) => (workflows / ms) * 1000
  )

const throughput = (concurrency: number, workflows: { readonly fast: number; readonly slow: number }): Case => ({
  name: `c${concurrency}`,
  about: `workflows of five trivial activities, ${concurrency} at a time; ${workflows.fast} of them, ${workflows.slow} on Cluster and DBOS`,
  unit: "workflows/s",
  better: "higher",
  contenders: Effect.gen(function* () {
    const dbos = yield* Effect.result(
      Effect.gen(function* () {
        const { url } = yield* Effect.mapError(
          Postgres.make({ durable: true }),
          (cause) => new Unavailable({ what: "Postgres", cause })
        )
        return yield* Dbos.workflowsPerSecond({ url, workflows: workflows.slow, concurrency })
      })
    )
    return {
      ours: onFile(Ours.engine)(five(workflows.fast, concurrency)),
      rivals: {
        memory: on(WorkflowEngine.layerMemory)(five(workflows.fast, concurrency)),
        "cluster-sqlite": onFile(Cluster.engine)(five(workflows.slow, concurrency)),
        dbos: dbos._tag === "Success" ? dbos.success : Effect.fail(dbos.failure)
      } satisfies Record<string, Run>
    }
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// clocks
// ---------------------------------------------------------------------------------------------------------------------

const naps = Effect.forEach(
  Array.from({ length: 100 }, (_, n) => String(n)),
  (id) => Flow.Nap.execute({ id, start: Date.now() }),
  { concurrency: "unbounded" }
)

const lateness = (name: string, quantile: number): Case => ({
  name,
  about: `how late runs go on after a durable sleep of one second, 100 at a time, ${quantile === 0.5 ? "median" : "p99"}; the time to start them is in it`,
  unit: "ms",
  better: "lower",
  quantile,
  maxRounds: 3,
  contenders: Effect.succeed({
    ours: onFile(Ours.engine)(naps),
    rivals: { memory: on(WorkflowEngine.layerMemory)(naps), "cluster-sqlite": onFile(Cluster.engine)(naps) }
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// resuming
// ---------------------------------------------------------------------------------------------------------------------

const steps = 5000

/** A run that has done its steps and waits, taken up by an engine that knows nothing of it. */
const resume = <E>(engine: (filename: string) => Engine<E>): Run =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "bench.db")
    const executionId = yield* Flow.Long.executionId({ id: "long", steps })
    const first = yield* Scope.fork(yield* Effect.scope)
    const layer = Flow.layer.pipe(Layer.provideMerge(engine(filename)))
    const before = yield* Layer.buildWithScope(Layer.fresh(layer), first)
    yield* Effect.provideContext(Flow.Long.execute({ id: "long", steps }, { discard: true }), before)
    while (true) {
      const found = yield* Effect.provideContext(Flow.Long.poll(executionId), before)
      if (found._tag === "Some") break
      yield* Effect.sleep(20)
    }
    yield* Scope.close(first, Exit.void)
    const context = yield* Layer.build(Layer.fresh(layer))
    const token = DurableDeferred.tokenFromExecutionId(Flow.Gate, { workflow: Flow.Long, executionId })
    return yield* timed(
      Effect.provideContext(
        Effect.andThen(
          DurableDeferred.succeed(Flow.Gate, { token, value: undefined }),
          Flow.Long.execute({ id: "long", steps })
        ),
        context
      )
    )
  })

const resuming: Case = {
  name: "resume",
  about: `a suspended run with ${steps} activities: from its deferred's completion in a new process to its result`,
  unit: "ms",
  better: "lower",
  maxRounds: 3,
  contenders: Effect.succeed({ ours: resume(Ours.engine), rivals: { "cluster-sqlite": resume(Cluster.engine) } })
}

export const workflow: Bench = {
  name: "workflow",
  cases: [
    throughput(1, { fast: 100, slow: 50 }),
    throughput(64, { fast: 2000, slow: 400 }),
    lateness("clock-lateness", 0.5),
    lateness("clock-lateness-p99", 0.99),
    resuming
  ]
}
