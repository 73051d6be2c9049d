import type * as Schema from "effect/Schema"
import type { Rule } from "../Redaction.ts"

export const make = (rules: ReadonlyArray<Rule>, marker: string) => {
  const byType = new Map<string, ReadonlyArray<Rest>>()
  const rulesOf = (type: string): ReadonlyArray<Rest> => {
    const known = byType.get(type)
    if (known !== undefined) return known
    const found = rules
      .filter((rule) => rule.type === undefined || rule.type === type)
      .map((rule) => ({
        path: rule.path,
        index: 0,
        replacement: rule.replacement === undefined ? marker : rule.replacement
      }))
    byType.set(type, found)
    return found
  }
  return {
    redact: (type: string, payload: Schema.Json): Schema.Json => {
      const found = rulesOf(type)
      return found.length === 0 ? payload : walk(payload, found)
    }
  }
}

/** A rule of which the first keys have led here. */
interface Rest {
  readonly path: ReadonlyArray<string>
  readonly index: number
  readonly replacement: Schema.Json
}

/** The value without what the rules name; itself where nothing was replaced. */
const walk = (value: Schema.Json, rests: ReadonlyArray<Rest>): Schema.Json => {
  const end = rests.find(isAtEnd)
  if (end !== undefined) return end.replacement
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) {
    const items: ReadonlyArray<Schema.Json> = value
    return items.map((item, i) => into(item, String(i), rests))
  }
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, into(member, key, rests)]))
}

const into = (value: Schema.Json, key: string, rests: ReadonlyArray<Rest>): Schema.Json => {
  const next = rests.flatMap((rest) => advance(rest, key))
  return next.length === 0 ? value : walk(value, next)
}

/** Whether a rule names the place itself: nothing is left of its path but `**`, which can be no keys. */
const isAtEnd = ({ index, path }: Rest): boolean => path.slice(index).every((key) => key === "**")

const advance = (rest: Rest, key: string): ReadonlyArray<Rest> => {
  const expected = rest.path[rest.index]
  if (expected === undefined) return []
  const next = { ...rest, index: rest.index + 1 }
  if (expected === "**") return [rest, ...advance(next, key)]
  return expected === "*" || expected === key ? [next] : []
}
