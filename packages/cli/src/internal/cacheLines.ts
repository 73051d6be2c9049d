import { type Style, visible } from "../Output.ts"
import type { CacheGcResult, CacheStatsResult, CacheVerifyResult, JournalEntry } from "../Results.ts"
import { bytes, count, waitingWords } from "./lines.ts"

/** Results of the cache and the journal as lines for people. */

export const journalLine = (entry: JournalEntry, style: Style): string =>
  [
    style.faint(new Date(entry.recordedAt).toISOString()),
    style.path(visible(entry.stream)),
    String(entry.seq),
    style.strong(visible(entry.type)),
    visible(JSON.stringify(entry.payload))
  ].join("  ")

export const statsLines = (stats: CacheStatsResult, style: Style): ReadonlyArray<string> => {
  const rows: ReadonlyArray<readonly [string, string]> = [
    ["entries", String(stats.entries)],
    ...stats.origins.map(
      ({ entries, from }) => [from === null ? "from here" : "from afar", origin(entries, from)] as const
    ),
    ["ledger", count(stats.ledger, "row")],
    ["results", `${stats.results} (${bytes(stats.resultBytes)})`],
    ["artifacts", `${stats.artifacts} (${bytes(stats.artifactBytes)})`],
    ...stats.unpublished.map((waiting) => ["to be shared", visible(waitingWords(waiting))] as const)
  ]
  return rows.map(([name, value]) => `${style.faint(name.padEnd(12))}  ${value}`)
}

const origin = (entries: number, from: string | null): string =>
  from === null ? String(entries) : `${entries} (${visible(from)})`

export const verifyCacheLines = (result: CacheVerifyResult, style: Style): ReadonlyArray<string> => {
  if (result.ok) return ["the cache agrees with its journal"]
  const lines = (["missing", "unexplained", "unjoined", "corrupt"] as const).flatMap((kind) =>
    result[kind].map((name) => `${style.strong(kind.padEnd(11))}  ${visible(name)}`)
  )
  const hint =
    "what is corrupt is not served, and made anew when it is asked for; strata cache gc --max-size 0 takes all results out"
  return result.corrupt.length === 0 ? lines : [...lines, hint]
}

export const gcLines = ({ artifactBytes, artifacts, dryRun, entries, resultBytes, results }: CacheGcResult) => [
  `${dryRun ? "would take" : "took"} out ${entries === 1 ? "1 entry" : `${entries} entries`}, ` +
    `${count(results, "result")} (${bytes(resultBytes)}), ${count(artifacts, "artifact")} (${bytes(artifactBytes)})`
]
