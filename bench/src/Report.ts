/**
 * Prints figures: as a table for people or, with `--json`, one line each.
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
    rival: figure.rival,
    ratio: round(figure.ratio),
    runs: figure.runs
  })

/** A rival that was left out, in words. */
export const skippedLine = (skip: Skipped): string =>
  `${skip.bench} ${skip.case}: ${skip.rival} skipped, ${skip.reason}`

/** The figures of a bench as a table, each with the least and greatest of its runs. */
export const table = (
  bench: Bench,
  figures: ReadonlyArray<Figure>,
  skipped: ReadonlyArray<Skipped>
): ReadonlyArray<string> => [
  bench.name,
  ...bench.cases.flatMap((self) => [
    `  ${self.name}: ${self.about}`,
    ...figures
      .filter((figure) => figure.case === self.name)
      .map(
        (figure) =>
          `    ours ${spread(figure.ours)}   ${figure.rival} ${spread(figure.theirs)} ${figure.unit}` +
          `   ratio ${round(figure.ratio)} (${figure.runs} runs)`
      ),
    ...skipped.filter((skip) => skip.case === self.name).map((skip) => `    ${skip.rival} skipped, ${skip.reason}`)
  ])
]

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const spread = ({ max, median, min }: Spread): string => `${show(median)} [${show(min)}–${show(max)}]`

const show = (value: number): string => round(value).toLocaleString("en-US")

/** Three significant digits, or whole numbers above. */
const round = (value: number): number => (Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3)))
