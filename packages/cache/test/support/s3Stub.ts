/** A bucket in this process whose ways can be changed: for what no server of S3 should do, and for what few of them do. */
import { sha256 } from "@strata/durable/Digest"
import type { Behaviour } from "@strata/cache/testing/cacheServer"
import { createHash } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"

export interface Bucket {
  /** By path. */
  readonly objects: Map<string, Buffer>
  /** Uploads in parts that are neither complete nor aborted, by name. */
  readonly uploads: Map<string, Map<number, Buffer>>
  /** What it answers. */
  readonly behaviour: Behaviour
}

export interface Ways {
  /** A condition that it does not heed. */
  readonly ignores?: "if-none-match" | "if-match"
  /** Whether it takes a tag of a condition only without its quotes. */
  readonly wantsBareTags?: boolean
}

export const make = (ways: Ways = {}): Bucket => {
  const objects = new Map<string, Buffer>()
  const uploads = new Map<string, Map<number, Buffer>>()
  return {
    objects,
    uploads,
    behaviour: (request, response) => {
      if (request.headers.expect !== undefined) response.writeContinue()
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("error", () => {})
      request.on("end", () => serve({ objects, uploads, ways }, request, response, Buffer.concat(chunks)))
    }
  }
}

/** Answers with an error of S3. */
export const refuse =
  (status: number, code?: string, headers: Readonly<Record<string, string>> = {}): Behaviour =>
  (request, response) => {
    request.resume()
    const body =
      code === undefined ? "" : `<?xml version="1.0"?>\n<Error><Code>${code}</Code><Message>x</Message></Error>`
    response.writeHead(status, { "content-type": "application/xml", ...headers })
    response.end(request.method === "HEAD" ? undefined : body)
  }

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

interface State extends Pick<Bucket, "objects" | "uploads"> {
  readonly ways: Ways
}

const tagOf = (content: Buffer): string => createHash("md5").update(content).digest("hex")

const serve = (state: State, request: IncomingMessage, response: ServerResponse, body: Buffer): void => {
  const fail = (status: number, code: string) => refuse(status, code)(request, response, () => {})
  const succeed = (content: string | Buffer = "", headers = {}) => {
    response.writeHead(200, { "content-length": Buffer.byteLength(content), ...headers })
    response.end(request.method === "HEAD" ? undefined : content)
  }
  const { pathname: path, searchParams } = new URL(request.url ?? "", "http://host")
  const { objects, uploads, ways } = state
  if (request.headers["x-amz-content-sha256"] !== sha256(body)) return fail(400, "XAmzContentSHA256Mismatch")
  const uploadId = searchParams.get("uploadId")
  const found = objects.get(path)
  switch (request.method) {
    case "GET":
    case "HEAD":
      return found === undefined ? fail(404, "NoSuchKey") : succeed(found, { etag: `"${tagOf(found)}"` })
    case "PUT":
      if (uploadId !== null) {
        uploads.get(uploadId)?.set(Number(searchParams.get("partNumber")), body)
      } else {
        const isMet = meets(ways, found, request.headers)
        if (!isMet) return fail(412, "PreconditionFailed")
        objects.set(path, body)
      }
      return succeed("", { etag: `"${tagOf(body)}"` })
    case "POST": {
      if (searchParams.has("uploads")) {
        const name = `upload/${uploads.size}+ä`
        uploads.set(name, new Map())
        return succeed(`<InitiateMultipartUploadResult><UploadId>${name}</UploadId></InitiateMultipartUploadResult>`)
      }
      const parts = [...(uploads.get(uploadId ?? "") ?? [])].toSorted(([a], [b]) => a - b).map(([, part]) => part)
      const tags = [...String(body).matchAll(/<ETag>"([0-9a-f]+)"<\/ETag>/g)].map(([, tag]) => tag)
      if (tags.join() !== parts.map(tagOf).join()) return fail(400, "InvalidPart")
      uploads.delete(uploadId ?? "")
      objects.set(path, Buffer.concat(parts))
      return succeed("<CompleteMultipartUploadResult/>")
    }
    case "DELETE":
      if (uploadId !== null) uploads.delete(uploadId)
      else objects.delete(path)
      response.writeHead(204).end()
  }
}

const meets = (ways: Ways, found: Buffer | undefined, headers: IncomingMessage["headers"]): boolean => {
  if (headers["if-none-match"] === "*" && ways.ignores !== "if-none-match") return found === undefined
  const wanted = headers["if-match"]
  if (wanted === undefined || ways.ignores === "if-match") return true
  if (found === undefined) return false
  return wanted === (ways.wantsBareTags === true ? tagOf(found) : `"${tagOf(found)}"`)
}
