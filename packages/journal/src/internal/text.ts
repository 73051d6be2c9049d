/** Text that every store takes and gives back unchanged: no lone surrogate, no NUL. */
export const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes("\0")
