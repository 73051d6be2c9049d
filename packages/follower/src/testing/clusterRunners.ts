import * as MessageStorage from "effect/cluster/MessageStorage"
import { PersistenceError } from "effect/cluster/ClusterError"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import * as RunnerHealth from "effect/cluster/RunnerHealth"
import * as Runners from "effect/cluster/Runners"
import * as RunnerStorage from "effect/cluster/RunnerStorage"
import * as Sharding from "effect/cluster/Sharding"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"

/** How soon the runners of these tests notice each other. */
export const config = {
  shardsPerGroup: 20,
  shardLockExpiration: Duration.seconds(9),
  refreshAssignmentsInterval: Duration.seconds(1)
}

/**
 * What the runners of a cluster share: membership by heartbeat, and locks that expire, as a database keeps them, under
 * the clock of the test. Effect's own storage in memory gives every lock to everybody.
 */
export const makeStorage = Effect.sync(() => {
  const runners = new Map<string, { readonly runner: string; healthy: boolean; seen: number }>()
  const locks = new Map<string, { readonly owner: string; at: number }>()
  /** Addresses that do not reach the storage. */
  const cut = new Set<string>()
  let machines = 0

  const by = <A>(address: string, answer: (now: number) => A) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      cut.has(address)
        ? Effect.fail(new PersistenceError({ cause: `${address} is cut off` }))
        : Effect.sync(() => answer(now))
    )
  const isFresh = (now: number, at: number) => now - at < Duration.toMillis(config.shardLockExpiration)
  const hold = (address: string, shards: Iterable<string>, now: number, mayTake: boolean) =>
    Array.from(shards).filter((shard) => {
      const lock = locks.get(shard)
      const mine = lock !== undefined && lock.owner === address && isFresh(now, lock.at)
      const free = lock === undefined || !isFresh(now, lock.at)
      if (mine || (mayTake && free)) locks.set(shard, { owner: address, at: now })
      return mine || (mayTake && free)
    })
  const release = (address: string, isReleased: (shard: string) => boolean) => {
    for (const [shard, { owner }] of locks) if (owner === address && isReleased(shard)) locks.delete(shard)
  }

  const storage = RunnerStorage.makeEncoded({
    getRunners: Effect.map(Clock.currentTimeMillis, (now) =>
      [...runners.values()].filter(({ seen }) => isFresh(now, seen)).map(({ healthy, runner }) => [runner, healthy])
    ),
    register: (address, runner, healthy) =>
      by(address, (now) => {
        runners.set(address, { runner, healthy, seen: now })
        return machines++
      }),
    unregister: (address) => by(address, () => void runners.delete(address)),
    setRunnerHealth: (address, healthy) =>
      Effect.sync(() => {
        const known = runners.get(address)
        if (known !== undefined) known.healthy = healthy
      }),
    acquire: (address, shards) => by(address, (now) => hold(address, shards, now, true)),
    refresh: (address, shards) =>
      by(address, (now) => {
        const known = runners.get(address)
        if (known !== undefined) known.seen = now
        return hold(address, shards, now, false)
      }),
    release: (address, shard) => by(address, () => release(address, (other) => other === shard)),
    releaseAll: (address) => by(address, () => release(address, () => true))
  })
  return {
    storage,
    cut: (port: number) => cut.add(`runner:${port}`),
    mend: (port: number) => cut.delete(`runner:${port}`)
  }
})

export type Storage = Effect.Success<typeof makeStorage>

/** A member of the cluster, known by its port. */
export const layer = ({ storage }: Storage, port: number): Layer.Layer<Sharding.Sharding> =>
  Sharding.layer.pipe(
    Layer.provide(Runners.layerNoop),
    Layer.provide(Layer.mergeAll(MessageStorage.layerNoop, RunnerHealth.layerNoop)),
    Layer.provide(Layer.succeed(RunnerStorage.RunnerStorage, storage)),
    Layer.provide(
      ShardingConfig.layer({
        ...config,
        runnerAddress: Option.some(RunnerAddress.make("runner", port))
      })
    )
  )
