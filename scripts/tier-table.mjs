/**
 * Counts contract tests by tag and tier. A suite that runs on several tiers is called by its tag and the tier, `Tag …
 * (tier, variant)` or `Tag … on tier`; the outermost title of that kind counts.
 */

/** How tiers are called in titles, by their first word, and in the table. */
const tiers = new Map([
  ["memory", "memory"],
  ["sqlite", "sqlite"],
  ["postgres", "postgres"],
  ["d1", "d1"],
  ["file", "files"],
  ["http", "http"],
  ["nginx", "http"],
  ["s3", "s3"],
  ["redis", "redis"]
])

/** Tag and tier of a title, if it is one of a suite that runs on tiers. */
export const parse = (title) => {
  const match = /^(?<subject>.+?) \((?<place>.+)\)$/.exec(title) ?? /^(?<subject>[A-Z].*) on (?<place>\w+)$/.exec(title)
  if (match === null) return undefined
  const { place, subject } = match.groups
  const tier = tiers.get(place.split(/[\s,-]/, 1)[0].toLowerCase())
  if (tier === undefined) return undefined
  // What follows the tag is a part of its suite.
  const tag = /^[A-Z]/.test(subject) ? subject.split(/[\s,]/, 1)[0] : subject
  return { tag, tier }
}

/** The lines of the table, for the titles of each test that ran, outermost first; none when no suite is on a tier. */
export const lines = (tests) => {
  const counts = new Map()
  const seen = new Set()
  for (const titles of tests) {
    const found = titles.map(parse).find((one) => one !== undefined)
    if (found === undefined) continue
    seen.add(found.tier)
    const row = counts.get(found.tag) ?? new Map()
    counts.set(found.tag, row.set(found.tier, (row.get(found.tier) ?? 0) + 1))
  }
  if (counts.size === 0) return []
  const columns = [...new Set(tiers.values())].filter((tier) => seen.has(tier))
  const width = Math.max("contract tests".length, ...[...counts.keys()].map((tag) => tag.length))
  const line = (head, cells) => [head.padEnd(width), ...cells.map((cell) => String(cell).padStart(9))].join("")
  const rows = [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))
  return [
    line("contract tests", columns),
    ...rows.map(([tag, row]) =>
      line(
        tag,
        columns.map((tier) => row.get(tier) ?? "")
      )
    )
  ].map((text) => text.trimEnd())
}
