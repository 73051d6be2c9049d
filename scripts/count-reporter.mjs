import { lines } from "./tier-table.mjs"

/** The titles of the suites that a test is in, outermost first. */
const titlesOf = (test) => {
  const titles = []
  for (let parent = test.parent; parent?.type === "suite"; parent = parent.parent) titles.unshift(parent.name)
  return titles
}

/**
 * Vitest reporter: closes a run with how many contract tests ran on each tier, a line a tag, and one plain line that
 * counts all tests, `N passed, N failed, N skipped`.
 */
export default class CountReporter {
  onTestRunEnd(modules, errors) {
    const count = { passed: 0, failed: errors.length, skipped: 0, pending: 0 }
    const ran = []
    for (const module of modules) {
      if (module.state() === "failed" && [...module.children.allTests()].length === 0) count.failed++
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        count[state]++
        if (state === "passed" || state === "failed") ran.push(titlesOf(test))
      }
    }
    const table = lines(ran)
    if (table.length > 0) process.stdout.write(`\n${table.join("\n")}\n`)
    const skipped = count.skipped + count.pending
    process.stdout.write(
      `\n${count.passed} passed, ${count.failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}\n`
    )
  }
}
