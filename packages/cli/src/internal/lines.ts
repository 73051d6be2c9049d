import { visible, type Style } from "../Output.ts"
import type {
  DoctorResult,
  Failure,
  Hit,
  IndexResult,
  Listed,
  RebuildResult,
  StatusResult,
  Unpublished,
  VerifyResult,
  WatchResult
} from "../Results.ts"

/** Results as lines for people. */

export const indexLines = (result: IndexResult): ReadonlyArray<string> => [
  `${count(result.scanned, "file")} in ${duration(result.elapsedMs)}: ${result.indexed} indexed, ` +
    `${result.unchanged} unchanged, ${result.skipped} skipped, ${result.removed} removed, ${result.failed} failed`,
  ...skipLines(result)
]

export const interruptedLine = (waiting: number): string => {
  const files = waiting === 0 ? "" : `${count(waiting, "file")} ${waiting === 1 ? "waits" : "wait"}; `
  return `interrupted: ${files}the same command goes on`
}

export const unpublishedLine = ({ dead, pending, reason, tier }: Unpublished): string => {
  const waiting =
    pending === 0 ? [] : [`${count(pending, "result")} ${pending === 1 ? "waits" : "wait"} here to be shared`]
  const refused = dead === 0 ? [] : [`${count(dead, "result")} ${dead === 1 ? "is" : "are"} refused for good`]
  return `shared cache ${[reason ?? tier, ...waiting, ...refused].join("; ")}`
}

/** As a row of what is there. */
export const waitingWords = ({ dead, pending, tier }: Unpublished): string =>
  `${pending} with ${tier}${dead === 0 ? "" : `, which refuses ${dead} more for good`}`

export const notSwitchedLine = ({ lost }: RebuildResult): string =>
  `the old index serves on: ${count(lost, "file")} that it has cannot be read now. Mend that, or exclude what is not to be ` +
  "found, and rebuild again, which goes on from here"

export const watchLines = (result: WatchResult): ReadonlyArray<string> => [
  `${count(result.indexed, "file")} indexed, ${result.removed} removed, ${result.failed} failed`
]

/** A hit as the operation gives it: the snippet in parts, so that matches can be marked in any way. */
export interface MarkedHit extends Omit<Hit, "snippet"> {
  readonly snippet: ReadonlyArray<{ readonly text: string; readonly match: boolean }>
}

export const hitLines = (hits: ReadonlyArray<MarkedHit>, style: Style): ReadonlyArray<string> =>
  hits.flatMap((hit, i) => [
    ...(i === 0 ? [] : [""]),
    `${style.path(visible(hit.path))}:${hit.line}${hit.heading === "" ? "" : `  ${style.strong(visible(hit.heading))}`}`,
    `  ${hit.snippet.map(({ match, text }) => (match ? style.match(line(text)) : line(text))).join("")}`
  ])

export const statusLines = (status: StatusResult, style: Style): ReadonlyArray<string> => {
  const rows: ReadonlyArray<readonly [string, string]> = [
    ["database", `${visible(status.database)} (${bytes(status.databaseBytes)})`],
    ...status.directories.map((directory) => ["directory", visible(directory)] as const),
    ["documents", String(status.documents)],
    ["waiting", status.dirty === 0 ? "0" : `${status.dirty}, the oldest for ${duration(status.oldestDirtyMs)}`],
    ["failed", String(status.failed)],
    ["failing", String(status.failing)],
    ["dead letters", String(status.deadLetters)],
    ["skipped", String(status.skipped)],
    ...status.unpublished.map((waiting) => ["to be shared", visible(waitingWords(waiting))] as const)
  ]
  return [
    ...rows.map(([name, value]) => `${style.faint(name.padEnd(12))}  ${value}`),
    ...failureLines(status),
    ...skipLines(status)
  ]
}

export const verifyLines = (result: VerifyResult, style: Style): ReadonlyArray<string> => {
  const differences = (["missing", "stale", "orphaned"] as const).flatMap((kind) =>
    result[kind].map((path) => `${style.strong(kind.padEnd(8))}  ${style.path(visible(path))}`)
  )
  const remedy =
    result.repaired === undefined
      ? "strata verify --repair rebuilds it"
      : "what cannot be read keeps it from being rebuilt"
  const damage = result.damaged ? [`the full-text index is damaged: ${remedy}`] : []
  const wrong = [...damage, ...differences]
  const summary = result.failed === 0 ? "the index agrees with the directories" : "all else in the index agrees"
  return [
    ...repairLines(result, style),
    ...failureLines(result),
    ...skipLines(result),
    ...(wrong.length === 0 ? [summary] : wrong)
  ]
}

const repairLines = ({ repaired }: VerifyResult, style: Style): ReadonlyArray<string> => {
  if (repaired === undefined) return []
  const kinds = (["missing", "stale", "orphaned", "failed"] as const).filter((kind) => repaired[kind].length > 0)
  const counts = [
    ...kinds.map((kind) => `${repaired[kind].length} ${kind}`),
    ...(repaired.damaged ? ["the index"] : [])
  ]
  if (counts.length === 0) return ["nothing was to be repaired"]
  const paths = kinds.flatMap((kind) => {
    const lines = repaired[kind]
      .slice(0, shownPaths)
      .map((path) => `${"repaired".padEnd(8)}  ${kind.padEnd(8)}  ${style.path(visible(path))}`)
    const more = repaired[kind].length - lines.length
    return more > 0 ? [...lines, `${"".padEnd(8)}  and ${more} more`] : lines
  })
  return [...paths, `repaired: ${counts.join(", ")}`]
}

export const doctorLines = (result: DoctorResult, style: Style): ReadonlyArray<string> =>
  (["database", "shared"] as const).flatMap((subject) => {
    const name = result[subject]
    const heading = subject === "database" ? "database" : "shared cache"
    return [
      ...(name === null ? [] : [`${style.faint(heading)}  ${visible(name)}`]),
      ...result.checks
        .filter((check) => check.subject === subject)
        .map(
          ({ check, detail, reason, status }) =>
            `  ${style.strong(status.padEnd(7))}  ${check.padEnd(11)}  ${visible(detail)}${reason === undefined ? "" : ` [${reason}]`}`
        )
    ]
  })

/** How many paths that failed or were skipped people are shown. */
const shownPaths = 20

const pathLines = (kind: string, list: ReadonlyArray<Failure>, total: number): ReadonlyArray<string> => {
  const shown = list.slice(0, shownPaths)
  const lines = shown.map(({ path, reason }) => `${kind.padEnd(8)}  ${visible(path)}: ${visible(reason)}`)
  return total > shown.length ? [...lines, `${"".padEnd(8)}  and ${total - shown.length} more`] : lines
}

export const failureLines = ({ failed, failures }: Pick<Listed, "failed" | "failures">): ReadonlyArray<string> =>
  pathLines("failed", failures, failed)

const skipLines = ({ skipped, skips }: Listed): ReadonlyArray<string> => pathLines("skipped", skips, skipped)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Text of several lines as one. */
const line = (text: string): string => visible(text.replaceAll(/\s+/g, " "))

export const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`

export const duration = (ms: number): string => {
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}

export const bytes = (n: number): string => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"]
  const step = n < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(n) / 10))
  return `${step === 0 ? n : (n / 1024 ** step).toFixed(1)} ${units[step]!}`
}
