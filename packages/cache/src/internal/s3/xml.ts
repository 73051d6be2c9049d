import type { parseXml } from "@rgrove/parse-xml"
import * as Effect from "effect/Effect"
import type { CacheError } from "../../CacheError.ts"
import { load } from "./library.ts"

/** A message of S3: the name of its root, and the texts of what is in it. */
export interface Message {
  readonly root: string
  readonly fields: ReadonlyMap<string, string>
}

/** Gives nothing for what is no XML. */
export type Parse = (bytes: Uint8Array) => Message | undefined

export const makeParse = (tier: string): Effect.Effect<Parse, CacheError> =>
  Effect.map(
    load(tier, "@rgrove/parse-xml", () => import("@rgrove/parse-xml")),
    ({ parseXml, XmlElement }): Parse =>
      (bytes) => {
        const root = parse(parseXml, bytes)?.root
        if (root === null || root === undefined) return undefined
        const elements = root.children.filter((child) => child instanceof XmlElement)
        return { root: root.name, fields: new Map(elements.map(({ name, text }) => [name, text.trim()])) }
      }
  )

const parse = (parseXml_: typeof parseXml, bytes: Uint8Array): ReturnType<typeof parseXml> | undefined => {
  try {
    return parseXml_(decoder.decode(bytes).trimStart())
  } catch {
    return undefined
  }
}

const decoder = new TextDecoder()

/** Text as the content of an element. */
export const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
