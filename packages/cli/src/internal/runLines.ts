import { type Style, visible } from "../Output.ts"
import type { RebuildStateResult, RunResult, RunShowResult, UnjoinedReference } from "../Results.ts"
import { count } from "./lines.ts"

/** Runs of workflows as lines for people. */

export const runLine = (run: RunResult, style: Style): string =>
  [
    style.faint(time(run.startedAt)),
    style.strong(stateOf(run).padEnd(11)),
    style.path(visible(run.executionId)),
    visible(run.workflow)
  ].join("  ")

/** How a run stands, in one word. */
const stateOf = ({ held, outcome, state }: RunResult): string => {
  if (state === "completed") return outcome ?? state
  return held ? "held" : state
}

export const showLines = (run: RunShowResult, style: Style): ReadonlyArray<string> => {
  const rows: ReadonlyArray<readonly [string, string]> = [
    ["run", visible(run.executionId)],
    ["workflow", visible(run.workflow)],
    ["state", stateOf(run)],
    ...(run.message === undefined ? [] : [["because", visible(run.message)] as const]),
    ...(run.interrupted === "none" ? [] : [["interrupted", run.interrupted] as const]),
    ...(run.parent === null ? [] : [["parent", visible(run.parent)] as const]),
    ...(run.owner === null ? [] : [["owner", String(run.owner)] as const]),
    ["started", time(run.startedAt)],
    ...(run.settledAt === null ? [] : [["settled", time(run.settledAt)] as const]),
    ...run.clocks.map(({ deadline, name }) => ["clock", `${visible(name)}, ${deadlineOf(deadline)}`] as const),
    ...run.deferreds.map((name) => ["deferred", visible(name)] as const)
  ]
  return [
    ...rows.map(([name, value]) => `${style.faint(name.padEnd(12))}  ${value}`),
    ...(run.floor === 0 ? [] : [style.faint(`what was before ${run.floor} was compacted`)]),
    ...run.entries.map(({ payload, recordedAt, seq, type }) =>
      [style.faint(time(recordedAt)), String(seq), style.strong(visible(type)), visible(JSON.stringify(payload))].join(
        "  "
      )
    )
  ]
}

export const rebuildStateLines = (result: RebuildStateResult, style: Style): ReadonlyArray<string> => {
  if (!result.ok) return result.unjoined.map((reference) => unjoinedLine(reference, style))
  const { clocks, deferreds, dryRun, runs, unexplained } = result
  return [
    `${dryRun ? "would make" : "made"} ${count(clocks, "clock")} and the times of ${count(deferreds, "deferred")} of ` +
      `${count(runs, "run")} again` +
      (unexplained === 0 ? "" : `; no entry explains ${count(unexplained, "completion")}`)
  ]
}

const unjoinedLine = (reference: UnjoinedReference, style: Style): string => {
  const details = [
    style.strong(reference.kind.padEnd(18)),
    style.path(visible(reference.executionId)),
    ...("deferred" in reference ? [visible(reference.deferred)] : []),
    ...("part" in reference ? [reference.part] : []),
    ...("floor" in reference ? [String(reference.floor)] : [])
  ]
  return details.join("  ")
}

const time = (at: number): string => new Date(at).toISOString()

/** One that is too far away for a date never comes. */
const deadlineOf = (deadline: number): string => (deadline > 8.64e15 ? "never" : time(deadline))
