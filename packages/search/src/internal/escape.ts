/** Names that are no paths, in a form that can be printed. */
import type { Buffer } from "node:buffer"

/** Control characters as `\x0a`. */
export const escapeName = (name: string): string => name.replace(/\p{Cc}/gu, (char) => hex(char.charCodeAt(0)))

/** Bytes that are not ASCII as `\xff`. */
export const escapeBytes = (name: Buffer): string =>
  Array.from(name, (byte) => (byte < 0x20 || byte > 0x7e ? hex(byte) : String.fromCharCode(byte))).join("")

const hex = (code: number): string => `\\x${code.toString(16).padStart(2, "0")}`
