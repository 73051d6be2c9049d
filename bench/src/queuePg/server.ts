/** What all contenders are given, and a schema of one's own. */
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import { randomUUID } from "node:crypto"

export interface QueueOptions {
  readonly url: Redacted.Redacted
  /** How many, added and taken in batches of that many, by as many adders and then workers. */
  readonly jobs: number
  readonly batch: number
  readonly workers: number
}

/** The name of a schema that does not exist yet, and is dropped with the scope. */
export const schemaName = (url: Redacted.Redacted) =>
  Effect.acquireRelease(
    Effect.sync(() => `bench_${randomUUID().replaceAll("-", "")}`),
    (name) => administer(url, `DROP SCHEMA IF EXISTS ${name} CASCADE`)
  )

export const administer = (url: Redacted.Redacted, statement: string) =>
  PgClient.PgClient.use((sql) => Effect.asVoid(sql.unsafe(statement).unprepared)).pipe(
    Effect.provide(PgClient.layer({ url, maxConnections: 1, startupParameters: { client_min_messages: "warning" } })),
    Effect.orDie
  )

/** The share of each adder, in batches: from which job to which. */
export const shares = ({
  batch,
  jobs,
  workers
}: QueueOptions): ReadonlyArray<ReadonlyArray<readonly [number, number]>> => {
  const all = Array.from(
    { length: Math.ceil(jobs / batch) },
    (_, i) => [i * batch, Math.min(jobs, (i + 1) * batch)] as const
  )
  return Array.from({ length: workers }, (_, worker) => all.filter((_, i) => i % workers === worker))
}

export const pathOf = (i: number): string => `docs/${i % 100}/page-${i}.md`
