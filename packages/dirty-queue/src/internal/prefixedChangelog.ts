import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Change, Changelog, Entry } from "../Changelog.ts"
import * as Prefix from "../Prefix.ts"

type Service = Changelog["Service"]

export const make = (changelog: Service, prefix: Prefix.Prefix): Service => ({
  ...reading(changelog, prefix),
  record: (changes) => changelog.record(add(prefix, changes))
})

/** Changes under the names that their paths have outside of the prefix. */
export const add = (prefix: Prefix.Prefix, changes: ReadonlyArray<Change>): ReadonlyArray<Change> =>
  changes.map((change) => ({ ...change, path: Prefix.add(prefix, change.path) }))

/** What does not depend on how changes are recorded. */
export const reading = (
  changelog: Pick<Service, "read" | "prune">,
  prefix: Prefix.Prefix
): Pick<Service, "read" | "prune"> => ({
  read: (options) =>
    Effect.map(changelog.read({ ...options, prefix: prefix + (options?.prefix ?? "") }), (entries) =>
      entries.flatMap((entry) => strip(prefix, entry))
    ),
  prune: (options) => changelog.prune({ ...options, prefix: prefix + (options.prefix ?? "") })
})

const strip = (prefix: Prefix.Prefix, entry: Entry): ReadonlyArray<Entry> =>
  Option.match(Prefix.strip(prefix, entry.path), {
    onNone: () => [],
    onSome: (path) => [{ ...entry, path }]
  })
