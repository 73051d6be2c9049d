import type { LookupLimits } from "../http/lookupTime.ts"

/** The options of the tier, with their defaults. Sizes in bytes, times in milliseconds. */
export interface Settings {
  readonly tier: string
  /** The schema of the tables, or the first one of the connection's search path. */
  readonly schema: string | undefined
  /** A part of the names of the tables. */
  readonly prefix: string
  readonly readOnly: boolean
  readonly connectMs: number
  readonly responseMs: number
  readonly minBytesPerSecond: number
  readonly maxEntryBytes: number
  readonly maxBlobBytes: number
  /** How old a time of use may get before it is written anew. */
  readonly useGrainMs: number
  readonly lookup: LookupLimits
  readonly artifacts: "exists" | "trust"
}
