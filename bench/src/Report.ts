/**
 * Figures as text: Markdown tables for people, or one line of JSON each.
 */
import { arch, cpus, platform } from "node:os"
import type { Bench, Figure, Skipped, Spread } from "./Harness.ts"

/** What the figures were measured on. */
export const machine = (): string => {
  const processors = cpus()
  const model = processors[0]?.model.trim() ?? "unknown processor"
  return `${processors.length} × ${model}, Node ${process.versions.node}, SQLite ${process.versions["sqlite"] ?? "?"}, ${platform()} ${arch()}`
}

/** One figure as a line of JSON: `ratio` above 1 always means that ours is better. */
export const jsonLine = (figure: Figure): string =>
  JSON.stringify({
    bench: figure.bench,
    case: figure.case,
    value: round(figure.ours.median),
    unit: figure.unit,
    min: round(figure.ours.min),
    max: round(figure.ours.max),
    rival: figure.rival,
    rivalValue: round(figure.theirs.median),
    rivalMin: round(figure.theirs.min),
    rivalMax: round(figure.theirs.max),
    ratio: round(figure.ratio),
    runs: figure.runs
  })

/** A rival that was left out, in words. */
export const skippedLine = (skip: Skipped): string =>
  `${skip.bench} ${skip.case}: ${skip.rival} skipped, ${skip.reason}`

/** The figures of a bench as a Markdown table, each with the least and greatest of its runs, and what its cases measure. */
export const table = (
  bench: Bench,
  figures: ReadonlyArray<Figure>,
  skipped: ReadonlyArray<Skipped>
): ReadonlyArray<string> => [
  `## ${bench.name}`,
  "",
  "| case | unit | ours | rival | its figure | ratio | runs |",
  "| --- | --- | --- | --- | --- | --- | --- |",
  ...figures.map((figure) =>
    row([
      figure.case,
      figure.unit,
      spread(figure.ours),
      figure.rival,
      spread(figure.theirs),
      String(round(figure.ratio)),
      String(figure.runs)
    ])
  ),
  "",
  ...bench.cases.map((self) => `- ${self.name}: ${self.about}`),
  ...skipped.map((skip) => `- ${skip.case}: ${skip.rival} skipped, ${skip.reason}`),
  ""
]

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const row = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`

const spread = ({ max, median, min }: Spread): string => `${show(median)} [${show(min)}–${show(max)}]`

const show = (value: number): string => round(value).toLocaleString("en-US")

/** Three significant digits, or whole numbers above. */
const round = (value: number): number => (Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3)))
