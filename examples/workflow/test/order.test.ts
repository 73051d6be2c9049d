import { assert, it } from "@effect/vitest"
import { Strata, WorkflowEngineSql } from "@strata/strata"
import { Effect, Exit, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { approve, layer, Order } from "../src/order.ts"

const inMemory = layer.pipe(Layer.provideMerge(WorkflowEngineSql.layerMemory()), Layer.provide(Strata.layerTest))

it.effect("charges an order that is approved, in memory and in no time", () =>
  Effect.gen(function* () {
    const order = yield* Effect.forkChild(Order.execute({ id: "A1", amount: 5 }))
    const executionId = yield* Order.executionId({ id: "A1", amount: 5 })
    while (Option.isNone(yield* Order.poll(executionId))) yield* Effect.yieldNow
    yield* TestClock.adjust("2 seconds")
    yield* approve("A1", true)
    assert.deepStrictEqual(yield* Fiber.await(order), Exit.succeed("A1: 5 paid"))
  }).pipe(Effect.provide(inMemory))
)

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

/** A process of the example, and what it says. */
const start = (command: string, file: string) => {
  const child = spawn(process.execPath, ["--conditions=@strata/source", "--no-warnings", main, command, file, "A1"], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  const closed = once(child, "close")
  const lines: Array<string> = []
  child.stdout.setEncoding("utf8").on("data", (text: string) => lines.push(...text.split("\n").filter(Boolean)))
  return {
    lines,
    ended: () => closed,
    /** An activity that ran and is not committed when its process dies runs again, so this waits for the commit. */
    killAfter: async (activity: string) => {
      while (!isCommitted(file, activity)) {
        if (child.exitCode !== null) assert.fail(`it ended before ${activity}: ${lines.join(", ")}`)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      child.kill("SIGKILL")
      await closed
    }
  }
}

const isCommitted = (file: string, activity: string): boolean => {
  if (!existsSync(file)) return false
  const database = new DatabaseSync(file, { timeout: 1000 })
  try {
    const [table] = database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'strata_run_activity'").all()
    if (table === undefined) return false
    return database.prepare("SELECT 1 FROM strata_run_activity WHERE name = ?").all(activity).length > 0
  } finally {
    database.close()
  }
}

for (const [answer, after] of [
  ["approve", ["charged 20 for A1", "A1: 20 paid"]],
  ["reject", ["released A1", "A1: rejected"]]
] as const) {
  it(`goes on where it was after each kill, until somebody says ${answer}`, { timeout: 60_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "strata-example-"))
    try {
      const file = join(folder, "orders.db")
      const first = start("place", file)
      await first.killAfter("reserve")
      const second = start("place", file)
      await second.killAfter("ask")
      const third = start("place", file)
      await start(answer, file).ended()
      await third.ended()
      assert.deepStrictEqual(first.lines, ["reserved A1"])
      assert.deepStrictEqual(second.lines, ["asked for the approval of A1"])
      assert.deepStrictEqual(third.lines, [...after])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
}
