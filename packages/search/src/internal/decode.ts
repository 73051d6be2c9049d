/** Recognises text by its bytes and decodes it. */
import { Buffer, isAscii, isUtf8 } from "node:buffer"
import { isBinaryFileSync } from "isbinaryfile"

export type Decoded =
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "Binary" }
  | { readonly _tag: "NotText" }

const binary: Decoded = { _tag: "Binary" }
const notText: Decoded = { _tag: "NotText" }

/**
 * Text is UTF-8, or UTF-16 with a byte order mark. The mark is dropped and line
 * ends become `\n`. A NUL anywhere makes a file binary: no text editor writes
 * one, and formats that start with text, as an archive of a page does, have
 * them soon.
 */
export const decode = (bytes: Uint8Array): Decoded => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (buffer[0] === 0xff && buffer[1] === 0xfe) return decodeUtf16(buffer, "utf-16le")
  if (buffer[0] === 0xfe && buffer[1] === 0xff) return decodeUtf16(buffer, "utf-16be")
  if (isAscii(buffer)) {
    return isBinaryFileSync(buffer) || buffer.includes(0)
      ? binary
      : { _tag: "Text", text: unixLines(buffer.toString("latin1")) }
  }
  if (isBinaryFileSync(buffer) || buffer.includes(0)) return binary
  if (!isUtf8(buffer)) return notText
  const mark = buffer[0] === 0xef && buffer[1] === 0xbb && buffer[2] === 0xbf ? 3 : 0
  return { _tag: "Text", text: unixLines(buffer.toString("utf8", mark)) }
}

const decodeUtf16 = (buffer: Buffer, encoding: "utf-16le" | "utf-16be"): Decoded => {
  const text = new TextDecoder(encoding).decode(buffer)
  if (text.includes("\0")) return binary
  return buffer.length % 2 === 1 || text.includes("\ufffd") ? notText : { _tag: "Text", text: unixLines(text) }
}

const unixLines = (text: string): string => (text.includes("\r\n") ? text.replaceAll("\r\n", "\n") : text)
