import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Changelog, Entry } from "../Changelog.ts"
import * as Prefix from "../Prefix.ts"

export const make = (changelog: Changelog["Service"], prefix: Prefix.Prefix): Changelog["Service"] => ({
  record: (changes) =>
    changelog.record(changes.map((change) => ({ ...change, path: Prefix.add(prefix, change.path) }))),
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
