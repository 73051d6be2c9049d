import type { S3CacheOptions } from "@strata/cache/S3Cache"
import * as Redacted from "effect/Redacted"

/** A tier as the command line names it. */
export const urlOf = ({ bucket, credentials, endpoint, region }: S3CacheOptions): string => {
  const url = new URL(`s3://${bucket}`)
  url.username = credentials?.accessKeyId ?? ""
  url.password = credentials === undefined ? "" : Redacted.value(credentials.secretAccessKey)
  url.searchParams.set("endpoint", String(endpoint))
  if (region !== undefined) url.searchParams.set("region", region)
  return url.href
}
