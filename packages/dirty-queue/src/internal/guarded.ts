import type { WriteOptions } from "@strata/durable/DurableWriter"

/**
 * How operations of the queue write: their statements guard themselves by version and lease, and on Postgres most claims
 * of several workers would fail if they were serializable.
 */
export const guarded: WriteOptions = { isolation: "read committed" }
