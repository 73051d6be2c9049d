/** What the workers and the writers of the crash test keep in Postgres beside the queue, and how they come by it. */
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import * as P from "@strata/dirty-queue/Path"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Layer from "effect/Layer"

export const follower = P.FollowerName.make("derive")
export const scope = P.Scope.make("main")

/** The queue in a schema of the server that the environment names. */
export const layer = (schema: string, leaseMillis: number) =>
  Layer.mergeAll(DirtyQueue.layer({ lease: leaseMillis, minRetryInterval: 50, retryBase: 50 }), Changelog.layer()).pipe(
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
    Layer.provideMerge(Postgres.layerSchema(schema, { maxConnections: 6 }))
  )

/**
 * - `content` is what is written, `derived` what workers make of it.
 * - `attempt` is one row for each claim that a worker began to process: from when, until when it was its own by the lease,
 *   and when it stopped, if it came to that.
 * - `processed` is one row for each state of a path that a worker was acknowledged for, which can be one worker only.
 */
export const tables: ReadonlyArray<string> = [
  `CREATE TABLE content (path TEXT COLLATE "C" PRIMARY KEY, value BIGINT NOT NULL)`,
  `CREATE SEQUENCE content_value`,
  `CREATE TABLE derived (path TEXT COLLATE "C" PRIMARY KEY, value BIGINT NOT NULL)`,
  `CREATE TABLE attempt (
    path TEXT COLLATE "C" NOT NULL,
    lease BIGINT NOT NULL,
    worker TEXT NOT NULL,
    began DOUBLE PRECISION NOT NULL DEFAULT extract(epoch FROM clock_timestamp()) * 1000,
    lease_until BIGINT NOT NULL,
    ended DOUBLE PRECISION,
    PRIMARY KEY (lease, path)
  )`,
  `CREATE TABLE processed (
    path TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    worker TEXT NOT NULL,
    PRIMARY KEY (path, version)
  )`
]
