import type { LookupLimits } from "./lookupTime.ts"

/** The options of the tier, with their defaults. Sizes in bytes. */
export interface Settings {
  readonly tier: string
  readonly readOnly: boolean
  readonly maxEntryBytes: number
  readonly maxBlobBytes: number
  readonly inlineBytes: number
  readonly lookup: LookupLimits
  readonly artifacts: "exists" | "trust"
}
