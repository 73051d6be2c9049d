import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire"
import * as Result from "effect/Result"

/**
 * The part of `build.bazel.remote.execution.v2.ActionResult` that the cache uses. Other fields are skipped.
 *
 * Source: https://github.com/bazelbuild/remote-apis, build/bazel/remote/execution/v2/remote_execution.proto
 */
export interface ActionResult {
  /** Field 2. */
  readonly outputFiles: ReadonlyArray<OutputFile>
  /** Field 5. */
  readonly stdoutRaw: Uint8Array
  /** Field 9, `ExecutedActionMetadata`, field 1. Servers that find none write the address of the client there. */
  readonly worker: string
}

export interface OutputFile {
  /** Field 1. */
  readonly path: string
  /** Field 2, `Digest`: the hash is field 1, the size in bytes field 2. */
  readonly hash: string
  readonly size: number
  /** Field 5. Empty when the content is not in the message. */
  readonly contents: Uint8Array
}

// ---------------------------------------------------------------------------------------------------------------------
// encoding
// ---------------------------------------------------------------------------------------------------------------------

export const encode = (message: ActionResult): Uint8Array => {
  const writer = new BinaryWriter()
  for (const file of message.outputFiles) {
    writer.tag(2, WireType.LengthDelimited).fork()
    writer.tag(1, WireType.LengthDelimited).string(file.path)
    writer.tag(2, WireType.LengthDelimited).fork()
    writer.tag(1, WireType.LengthDelimited).string(file.hash)
    if (file.size !== 0) writer.tag(2, WireType.Varint).int64(file.size)
    writer.join()
    if (file.contents.length !== 0) writer.tag(5, WireType.LengthDelimited).bytes(file.contents)
    writer.join()
  }
  writer.tag(5, WireType.LengthDelimited).bytes(message.stdoutRaw)
  writer.tag(9, WireType.LengthDelimited).fork()
  writer.tag(1, WireType.LengthDelimited).string(message.worker).join()
  return writer.finish()
}

// ---------------------------------------------------------------------------------------------------------------------
// decoding
// ---------------------------------------------------------------------------------------------------------------------

/** Fails when the bytes are no such message. */
export const decode = (bytes: Uint8Array): Result.Result<ActionResult, "NoActionResult"> =>
  Result.try({ try: () => decodeActionResult(bytes), catch: () => "NoActionResult" as const })

const empty = new Uint8Array()

const decodeActionResult = (bytes: Uint8Array): ActionResult => {
  const outputFiles: Array<OutputFile> = []
  let stdoutRaw: Uint8Array = empty
  let worker = ""
  eachField(bytes, {
    2: [WireType.LengthDelimited, (reader) => outputFiles.push(decodeOutputFile(reader.bytes()))],
    5: [WireType.LengthDelimited, (reader) => (stdoutRaw = reader.bytes())],
    9: [WireType.LengthDelimited, (reader) => (worker = decodeWorker(reader.bytes()))]
  })
  return { outputFiles, stdoutRaw, worker }
}

const decodeOutputFile = (bytes: Uint8Array): OutputFile => {
  let path = ""
  let hash = ""
  let size = 0n
  let contents: Uint8Array = empty
  eachField(bytes, {
    1: [WireType.LengthDelimited, (reader) => (path = reader.string(true))],
    2: [
      WireType.LengthDelimited,
      (reader) =>
        eachField(reader.bytes(), {
          1: [WireType.LengthDelimited, (reader) => (hash = reader.string(true))],
          2: [WireType.Varint, (reader) => (size = BigInt(reader.int64()))]
        })
    ],
    5: [WireType.LengthDelimited, (reader) => (contents = reader.bytes())]
  })
  return { path, hash, size: Number(size), contents }
}

const decodeWorker = (bytes: Uint8Array): string => {
  let worker = ""
  eachField(bytes, { 1: [WireType.LengthDelimited, (reader) => (worker = reader.string(true))] })
  return worker
}

type Fields = Readonly<Record<number, readonly [type: WireType, read: (reader: BinaryReader) => unknown]>>

/** A known field of another wire type is skipped, as an unknown one. */
const eachField = (bytes: Uint8Array, fields: Fields): void => {
  const reader = new BinaryReader(bytes)
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag()
    const field = fields[number]
    if (field !== undefined && field[0] === type) field[1](reader)
    else reader.skip(type, number)
  }
}
