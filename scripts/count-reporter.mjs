/** Vitest reporter: closes a run with one plain line that counts its tests, `N passed, N failed, N skipped`. */
export default class CountReporter {
  onTestRunEnd(modules, errors) {
    const count = { passed: 0, failed: errors.length, skipped: 0, pending: 0 }
    for (const module of modules) {
      if (module.state() === "failed" && [...module.children.allTests()].length === 0) count.failed++
      for (const test of module.children.allTests()) count[test.result().state]++
    }
    const skipped = count.skipped + count.pending
    process.stdout.write(
      `\n${count.passed} passed, ${count.failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}\n`
    )
  }
}
