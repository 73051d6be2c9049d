import type { LookupLimits } from "../http/lookupTime.ts"

/** The options of the tier, with their defaults. Sizes in bytes. */
export interface Settings {
  readonly tier: string
  readonly readOnly: boolean
  readonly maxEntryBytes: number
  readonly maxBlobBytes: number
  /** Larger blobs are sent in parts. */
  readonly multipartBytes: number
  readonly lookup: LookupLimits
  readonly artifacts: "exists" | "trust"
}
