import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { AsyncLocalStorage } from "node:async_hooks"

type AnyFiber = Fiber.Fiber<unknown, unknown>

/** The fiber that started what runs now, also behind promises, timers and callbacks. */
export const current = (): AnyFiber | undefined => Fiber.getCurrent() ?? started.getStore()

/** Makes what fibers start remember them. */
export const follow = (): void => {
  const prototype: object = Object.getPrototypeOf(Effect.runFork(Effect.void))
  const evaluate: unknown = Reflect.get(prototype, "evaluate")
  if (typeof evaluate !== "function") throw new TypeError("Fibers of this version of Effect cannot be followed")
  Reflect.set(prototype, "evaluate", function (this: AnyFiber, ...args: ReadonlyArray<unknown>): unknown {
    return started.run(this, () => Reflect.apply(evaluate, this, args))
  })
}

const started = new AsyncLocalStorage<AnyFiber>()
