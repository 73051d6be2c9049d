/** The step cache. */
import { blackHoleCase, medianCase } from "./cache/commit.ts"
import { localHit, localHitArtifacts } from "./cache/localHit.ts"
import type { Bench } from "./Harness.ts"

export const cache: Bench = { name: "cache", cases: [localHit, localHitArtifacts, blackHoleCase, medianCase] }
