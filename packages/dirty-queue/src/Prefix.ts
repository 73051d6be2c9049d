/**
 * Prefixes of paths. A prefix is a plain string, compared exactly in bytes: no wildcards, no folding of case, no
 * meaning of slashes, so that `d/` covers `d/a` and not `d0`. The empty prefix covers every path.
 *
 * @since 0.1.0
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Text from "@strata/durable/Text"
import { Path } from "./Path.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The beginning of paths: well-formed Unicode without NUL, possibly empty.
 *
 * @since 0.1.0
 * @category models
 */
export const Prefix = Schema.String.check(
  Schema.makeFilter((text: string) => Text.isStorable(text) || "well-formed Unicode without NUL")
)

/**
 * @since 0.1.0
 * @category models
 */
export type Prefix = typeof Prefix.Type

// ---------------------------------------------------------------------------------------------------------------------
// operations
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Whether `path` starts with exactly `prefix`.
 *
 * @since 0.1.0
 * @category predicates
 */
export const covers = (prefix: Prefix, path: string): boolean => path.startsWith(prefix)

/**
 * The path as it is called inside of the prefix. `None` when the prefix does not cover it, and when nothing would be
 * left of it.
 *
 * @since 0.1.0
 * @category operations
 */
export const strip = (prefix: Prefix, path: Path): Option.Option<Path> =>
  path.length > prefix.length && covers(prefix, path)
    ? Option.some(Path.make(path.slice(prefix.length)))
    : Option.none()

/**
 * The full name of a path that is called `path` inside of the prefix.
 *
 * @since 0.1.0
 * @category operations
 */
export const add = (prefix: Prefix, path: Path): Path => Path.make(prefix + path)

/**
 * The first string, in byte order, behind all strings that start with `prefix`: the open end of a range scan that
 * starts at `prefix`. `None` when there is no such string.
 *
 * @since 0.1.0
 * @category operations
 */
export const upperBound = (prefix: Prefix): Option.Option<string> => {
  const points = Array.from(prefix, (character) => character.codePointAt(0)!)
  while (points.length > 0) {
    const last = points.pop()!
    if (last < lastCodePoint) {
      return Option.some(String.fromCodePoint(...points, last === beforeSurrogates ? afterSurrogates : last + 1))
    }
  }
  return Option.none()
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const lastCodePoint = 0x10ffff
const beforeSurrogates = 0xd7ff
const afterSurrogates = 0xe000
