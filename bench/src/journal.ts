/** What the journal is for: folding it. */
import type { Bench } from "./Harness.ts"
import { fold } from "./journal/fold.ts"

export const journal: Bench = { name: "journal", cases: [fold] }
