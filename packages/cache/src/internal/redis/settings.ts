import type { LookupLimits } from "../http/lookupTime.ts"

/** The options of the tier, with their defaults. Sizes in bytes. */
export interface Settings {
  readonly tier: string
  /** Begins the name of every key. */
  readonly prefix: string
  /** How long what is put stays, in milliseconds. */
  readonly ttlMs: number | undefined
  readonly readOnly: boolean
  readonly maxEntryBytes: number
  readonly maxBlobBytes: number
  readonly lookup: LookupLimits
  readonly artifacts: "exists" | "trust"
}

/** The arguments of a `SET` that end what it puts. */
export const expiry = ({ ttlMs }: Settings): ReadonlyArray<string> => (ttlMs === undefined ? [] : ["PX", `${ttlMs}`])
