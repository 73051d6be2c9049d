// Preloaded (`node --import`) into a process whose memory is to be known: at its end writes the peaks, in bytes, as JSON
// to the file that STRATA_MEMORY_PEAK names.
import { writeFileSync } from "node:fs"

const everyMillis = 20

let heap = 0
const look = () => {
  heap = Math.max(heap, process.memoryUsage().heapUsed)
}

setInterval(look, everyMillis).unref()

process.on("exit", () => {
  look()
  const rss = process.resourceUsage().maxRSS * 1024
  writeFileSync(process.env.STRATA_MEMORY_PEAK, JSON.stringify({ heap, rss }))
})
