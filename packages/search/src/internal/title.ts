const titleLimit = 200

/** Whether a title is longer than titles get. */
export const isLong = (title: string): boolean => title.length > titleLimit

/** A title as it is kept. */
export const cut = (title: string): string =>
  isLong(title) ? title.slice(0, titleLimit).replace(/[\ud800-\udbff]$/, "") : title
