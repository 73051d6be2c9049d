import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"

/** Both ends are allowed. */
export interface Range {
  readonly least: number
  readonly most: number
}

/** A flag for a whole number. A value that is none, or out of its range, is refused in the same words. */
export const flag = (name: string, range: Range): Flag.Flag<number> =>
  Flag.String(name).pipe(
    Flag.withMetavar("integer"),
    Flag.filterMap(parse(range), () => allowed(range))
  )

/** As {@link flag}, for an argument. */
export const argument = (name: string, range: Range): Argument.Argument<number> =>
  Argument.String(name).pipe(
    Argument.withMetavar("integer"),
    Argument.filterMap(parse(range), () => allowed(range))
  )

const parse =
  ({ least, most }: Range) =>
  (text: string): Option.Option<number> => {
    const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN
    return value >= least && value <= most ? Option.some(value) : Option.none()
  }

const allowed = ({ least, most }: Range): string => `a whole number from ${least} to ${most}`
