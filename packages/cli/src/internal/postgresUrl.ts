import { userInfo } from "node:os"

/* What Postgres addresses of the command line have in common. A URL that cannot be parsed is for others to refuse. */

/** The parameters that the driver knows; it ignores others without a word. */
const driverParameters = [
  "host",
  "port",
  "user",
  "password",
  "dbname",
  "application_name",
  "options",
  "connect_timeout",
  "sslmode"
]

/** What is wrong with the parameters of a URL that may have `own` ones besides those of the driver. */
export const wrongParameter = (text: string, own: ReadonlyArray<string>): string | undefined => {
  const known = new Set([...driverParameters, ...own])
  const names = [...(URL.parse(text)?.searchParams.keys() ?? [])]
  const unknown = names.find((name) => !known.has(name))
  if (unknown === undefined) return undefined
  // What comes after a password may be the rest of it.
  return names.includes("password")
    ? "the URL has a parameter that is not known"
    : `the URL has a parameter that is not known: ${unknown}`
}

/**
 * The URL with the user of the operating system where it, and the environment that the driver looks at, name none;
 * `undefined` where the system knows none either.
 */
export const withUser = (text: string, env = process.env): string | undefined => {
  const url = URL.parse(text)
  if (url === null || url.username !== "" || url.searchParams.has("user")) return text
  if (env["USER"] !== undefined || env["USERNAME"] !== undefined) return text
  try {
    url.username = encodeURIComponent(userInfo().username)
    return url.href
  } catch {
    return undefined
  }
}
