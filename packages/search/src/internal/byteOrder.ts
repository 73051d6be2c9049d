/** The order of UTF-8 bytes, which is the order of code points. JavaScript's own differs above U+D7FF. */
export const compareBytes = (a: string, b: string): number => {
  const length = Math.min(a.length, b.length)
  for (let index = 0; index < length; index++) {
    const x = a.charCodeAt(index)
    const y = b.charCodeAt(index)
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Surrogates stand for code points above every other code unit. */
const rank = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit)

/** The listing of a directory mostly comes in order. */
export const sortBytes = (values: ReadonlyArray<string>): ReadonlyArray<string> => {
  for (let index = 1; index < values.length; index++) {
    if (values[index - 1]! > values[index]!) return values.toSorted(compareBytes)
  }
  return values
}
