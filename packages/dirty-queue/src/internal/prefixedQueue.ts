import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Claim, DirtyQueue } from "../DirtyQueue.ts"
import { DirtyQueueError, OutsidePrefix } from "../DirtyQueueError.ts"
import type { DirtyRow, ListOptions } from "../DirtyRow.ts"
import * as Prefix from "../Prefix.ts"

type Queue = DirtyQueue["Service"]

export const make = (queue: Queue, prefix: Prefix.Prefix): Queue => ({
  ...queue,
  ...registry(queue, prefix),
  ...intake(queue, prefix),
  claim: claim(queue, prefix),
  ...answers(queue, prefix),
  ...lists(queue, prefix)
})

const registry = (queue: Queue, prefix: Prefix.Prefix): Pick<Queue, "register" | "registrations"> => ({
  register: (options) =>
    Effect.map(queue.register({ ...options, prefix: prefix + (options.prefix ?? "") }), (registration) => ({
      ...registration,
      prefix: registration.prefix.slice(prefix.length)
    })),
  registrations: (filter) =>
    Effect.map(queue.registrations(filter), (registrations) =>
      registrations
        .filter((registration) => Prefix.covers(prefix, registration.prefix))
        .map((registration) => ({ ...registration, prefix: registration.prefix.slice(prefix.length) }))
    )
})

const intake = (queue: Queue, prefix: Prefix.Prefix): Pick<Queue, "enqueue" | "revive"> => ({
  enqueue: (options) => queue.enqueue({ ...options, paths: options.paths.map((path) => Prefix.add(prefix, path)) }),
  revive: (options) =>
    queue.revive({
      ...options,
      prefix: prefix + (options?.prefix ?? ""),
      path: options?.path === undefined ? undefined : Prefix.add(prefix, options.path)
    })
})

const claim = (queue: Queue, prefix: Prefix.Prefix): Queue["claim"] =>
  Effect.fnUntraced(function* (options) {
    const claimed = yield* queue.claim(options)
    const outside = claimed.find((claim) => !Prefix.covers(prefix, claim.path))
    if (outside !== undefined) {
      yield* queue.release(claimed)
      return yield* new DirtyQueueError({
        reason: new OutsidePrefix({ follower: options.follower, scope: options.scope, prefix, path: outside.path })
      })
    }
    const nameless = claimed.filter((claim) => claim.path === prefix)
    if (nameless.length > 0) {
      yield* queue.fail(
        nameless.map((claim) => ({ claim, kind: "dead", error: "The path equals the prefix of the view" }))
      )
    }
    return claimed.flatMap((claim) => named<Claim>(prefix, claim))
  })

const answers = (queue: Queue, prefix: Prefix.Prefix): Pick<Queue, "ack" | "fail" | "release" | "renew"> => {
  const whole = (claim: Claim): Claim => ({ ...claim, path: Prefix.add(prefix, claim.path) })
  return {
    ack: (claims) => queue.ack(claims.map(whole)),
    fail: (failures) => queue.fail(failures.map((failure) => ({ ...failure, claim: whole(failure.claim) }))),
    release: (claims, options) => queue.release(claims.map(whole), options),
    renew: (claims, options) => queue.renew(claims.map(whole), options)
  }
}

const lists = (queue: Queue, prefix: Prefix.Prefix): Pick<Queue, "pending" | "failing" | "deadLetters"> => {
  const inside = <A extends ListOptions>(options: A | undefined) => ({
    ...options,
    prefix: prefix + (options?.prefix ?? ""),
    after: options?.after && {
      registration: options.after.registration,
      path: Prefix.add(prefix, options.after.path)
    }
  })
  const strip = Effect.map((rows: ReadonlyArray<DirtyRow>) => rows.flatMap((row) => named<DirtyRow>(prefix, row)))
  return {
    pending: (options) => strip(queue.pending(inside(options))),
    failing: (options) => strip(queue.failing(inside(options))),
    deadLetters: (options) => strip(queue.deadLetters(inside(options)))
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** The item under the name that its path has inside of the prefix, if it has one. */
const named = <A extends Pick<Claim, "path">>(prefix: Prefix.Prefix, item: A): ReadonlyArray<A> =>
  Option.match(Prefix.strip(prefix, item.path), {
    onNone: () => [],
    onSome: (path) => [{ ...item, path }]
  })
