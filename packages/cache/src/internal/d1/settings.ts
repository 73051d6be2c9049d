import type { ArtifactStore } from "../../ArtifactStore.ts"

/** The options of the tier, with their defaults. Sizes in bytes, times in milliseconds. */
export interface Settings {
  readonly tier: string
  /** A part of the names of the tables. */
  readonly prefix: string
  readonly readOnly: boolean
  readonly deadlineMs: number
  /** Of a result and its metadata together. */
  readonly maxEntryBytes: number
  /** How old a time of use may get before it is written anew. */
  readonly useGrainMs: number
  /** Where the blobs of entries are, if it is to be asked for them. */
  readonly blobs: ArtifactStore["Service"] | undefined
}
