import { assert, describe, it } from "@effect/vitest"
import { create, createFileRegistry, fromBinary, toBinary, toJson, fromJson } from "@bufbuild/protobuf"
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema
} from "@bufbuild/protobuf/wkt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Buffer } from "node:buffer"
import * as ActionResult from "../src/internal/http/actionResult.ts"

/** The messages as the library itself reads and writes them, from their description. */
const described = (() => {
  const { BOOL, BYTES, INT32, INT64, MESSAGE, STRING } = FieldDescriptorProto_Type
  const field = (
    name: string,
    number: number,
    type: FieldDescriptorProto_Type,
    typeName?: string,
    repeated = false
  ) => ({
    name,
    jsonName: name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
    number,
    type,
    label: repeated ? FieldDescriptorProto_Label.REPEATED : FieldDescriptorProto_Label.OPTIONAL,
    ...(typeName === undefined ? {} : { typeName: `.reapi.${typeName}` })
  })
  const file = create(FileDescriptorProtoSchema, {
    name: "reapi.proto",
    package: "reapi",
    syntax: "proto3",
    messageType: [
      { name: "Digest", field: [field("hash", 1, STRING), field("size_bytes", 2, INT64)] },
      {
        name: "OutputFile",
        field: [
          field("path", 1, STRING),
          field("digest", 2, MESSAGE, "Digest"),
          field("is_executable", 4, BOOL),
          field("contents", 5, BYTES)
        ]
      },
      { name: "ExecutedActionMetadata", field: [field("worker", 1, STRING)] },
      {
        name: "ActionResult",
        field: [
          field("output_files", 2, MESSAGE, "OutputFile", true),
          field("exit_code", 4, INT32),
          field("stdout_raw", 5, BYTES),
          field("stdout_digest", 6, MESSAGE, "Digest"),
          field("stderr_raw", 7, BYTES),
          field("execution_metadata", 9, MESSAGE, "ExecutedActionMetadata")
        ]
      }
    ]
  })
  return (
    createFileRegistry(file, () => undefined).getMessage("reapi.ActionResult") ?? assert.fail("it has been described")
  )
})()

const file = { path: "result.json", hash: "a".repeat(64), size: 5_000_000_000, contents: Buffer.from("{}") }

const message: ActionResult.ActionResult = {
  outputFiles: [{ path: "artifacts/ä", hash: "b".repeat(64), size: 0, contents: new Uint8Array() }, file],
  stdoutRaw: Buffer.from("note"),
  worker: "host"
}

const json = {
  outputFiles: [
    { path: "artifacts/ä", digest: { hash: "b".repeat(64) } },
    { path: "result.json", digest: { hash: "a".repeat(64), sizeBytes: "5000000000" }, contents: "e30=" }
  ],
  stdoutRaw: "bm90ZQ==",
  executionMetadata: { worker: "host" }
}

const plain = (bytes: Uint8Array) => {
  const decoded = Result.getOrThrow(ActionResult.decode(bytes))
  return {
    ...decoded,
    stdoutRaw: Buffer.from(decoded.stdoutRaw),
    outputFiles: decoded.outputFiles.map((file) => ({ ...file, contents: Buffer.from(file.contents) }))
  }
}

const expected = {
  ...message,
  outputFiles: message.outputFiles.map((file) => ({ ...file, contents: Buffer.from(file.contents) }))
}

describe("ActionResult", () => {
  it("is written as its description says", () => {
    assert.deepStrictEqual(toJson(described, fromBinary(described, ActionResult.encode(message))), json)
  })

  it("is read as its description says, whatever else it holds", () => {
    const more = { ...json, exitCode: 3, stderrRaw: "AAAA", stdoutDigest: { hash: "x", sizeBytes: "7" } }
    assert.deepStrictEqual(plain(toBinary(described, fromJson(described, more))), expected)
  })

  it("comes back as it was", () => {
    assert.deepStrictEqual(plain(ActionResult.encode(message)), expected)
  })

  it("is none when it is cut off", () => {
    const bytes = ActionResult.encode({ ...message, outputFiles: [file] })
    const ends = Array.from({ length: bytes.length }, (_, end) => ActionResult.decode(bytes.subarray(0, end)))
    // A cut between two fields leaves a message: what it lacks is found by whoever reads it.
    assert.isAtLeast(ends.filter(Result.isFailure).length, bytes.length - 3)
  })

  it.effect.prop(
    "never throws, whatever the bytes",
    { bytes: Schema.Uint8Array },
    ({ bytes }) => Effect.sync(() => assert.include(["Success", "Failure"], ActionResult.decode(bytes)._tag)),
    { arbitrary: { runs: 500, seed: 7 } }
  )
})
