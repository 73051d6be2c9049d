import type { Failure } from "../Results.ts"

/**
 * Passes on those failures of a source that it did not have, or had for another reason, when it was asked the last
 * time. One that is mended and comes back is passed on again.
 */
export const make = () => {
  const known = new Map<string, ReadonlyMap<string, string>>()
  return (source: string, failures: ReadonlyArray<Failure>): ReadonlyArray<Failure> => {
    const before = known.get(source)
    known.set(source, new Map(failures.map(({ path, reason }) => [path, reason])))
    return failures.filter(({ path, reason }) => before?.get(path) !== reason)
  }
}
