/**
 * A service whose operations go wrong as a test says: any service whose members are effects, streams, and functions that
 * give them. It shows what is built on the service when a disk is full, a tier is silent, or an answer is lost.
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import type * as Stream from "effect/Stream"
import type { Call, Fault, When } from "./Fault.ts"
import * as Schedule from "./Fault.ts"
import { type AnyFault, intercept } from "./internal/intercept.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

type Answer<Member> = Member extends (...args: never) => infer Given ? Given : Member

type ErrorOf<Given> =
  Given extends Effect.Effect<unknown, infer E, unknown>
    ? E
    : Given extends Stream.Stream<unknown, infer E, unknown>
      ? E
      : never

type SuccessOf<Given> =
  Given extends Effect.Effect<infer A, unknown, unknown>
    ? A
    : Given extends Stream.Stream<infer A, unknown, unknown>
      ? A
      : never

/**
 * The members of a service that are effects or streams, or give them.
 *
 * @since 0.1.0
 * @category models
 */
export type Operation<S> = {
  [K in keyof S & string]: Answer<S[K]> extends
    | Effect.Effect<unknown, unknown, unknown>
    | Stream.Stream<unknown, unknown, unknown>
    ? K
    : never
}[keyof S & string]

/**
 * A fault of one operation of a service, or of `any` of them. It fails as the operation can fail.
 *
 * @since 0.1.0
 * @category models
 */
export type Rule<S> =
  | { readonly operation: "any"; readonly fault: Fault<never, never>; readonly when?: When | undefined }
  | {
      [K in Operation<S>]: {
        readonly operation: K
        readonly fault: Fault<ErrorOf<Answer<S[K]>>, SuccessOf<Answer<S[K]>>>
        /** Default: always. Calls are counted from when the rules were set. */
        readonly when?: When | undefined
      }
    }[Operation<S>]

/**
 * A call that was made, and the fault that it had.
 *
 * @since 0.1.0
 * @category models
 */
export interface Record extends Call {
  readonly fault: Fault<unknown, unknown>["_tag"] | undefined
}

/**
 * The faults of a service.
 *
 * @since 0.1.0
 * @category models
 */
export interface Faults<Id, S> {
  /** Puts the faulty service into the place of the one in context. */
  readonly layer: Layer.Layer<Id, never, Id>
  /** The faulty service. Its members are those of `service`, and it is otherwise independent of it. */
  readonly wrap: (service: S) => S
  /** Replaces all rules, and counts calls anew. The first rule that says so decides about a call. */
  readonly set: (rules: ReadonlyArray<Rule<S>>) => Effect.Effect<void>
  /** Lets everything go well. */
  readonly clear: Effect.Effect<void>
  /** All calls so far, in the order in which they were run. */
  readonly calls: Effect.Effect<ReadonlyArray<Record>>
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Faults of the service of a tag, none at first unless there are `rules`. `seed` decides what happens by chance.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <Id, S extends object>(
  tag: Context.Key<Id, S>,
  options: { readonly rules?: ReadonlyArray<Rule<S>> | undefined; readonly seed?: number | string | undefined } = {}
): Faults<Id, S> => {
  const plan = new Plan(options.seed ?? 0, options.rules ?? [])
  const wrap = (service: S): S => faulty(service, plan)
  return {
    layer: Layer.effect(tag, Effect.map(tag, wrap)),
    wrap,
    set: (rules) => Effect.sync(() => plan.set(rules)),
    clear: Effect.sync(() => plan.set([])),
    calls: Effect.sync(() => [...plan.calls])
  }
}

/**
 * Faults of an operation call by call; `undefined` for one that goes well. Calls behind the last one go well.
 *
 * @since 0.1.0
 * @category constructors
 */
export const script = <K extends string, E = never, A = never>(
  operation: K,
  faults: ReadonlyArray<Fault<E, A> | undefined>
): ReadonlyArray<{ readonly operation: K; readonly fault: Fault<E, A>; readonly when: When }> =>
  faults.flatMap((fault, i) => (fault === undefined ? [] : [{ operation, fault, when: Schedule.nth(i + 1) }]))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

interface AnyRule {
  readonly operation: string
  readonly fault: AnyFault
  readonly when?: When | undefined
}

/** What is to go wrong, and how often each operation was called. */
class Plan {
  readonly calls: Array<Record> = []
  private counts = new Map<string, number>()
  private readonly seed: number | string
  private rules: ReadonlyArray<AnyRule>

  constructor(seed: number | string, rules: ReadonlyArray<AnyRule>) {
    this.seed = seed
    this.rules = rules
  }

  set(rules: ReadonlyArray<AnyRule>): void {
    this.rules = rules
    this.counts = new Map()
  }

  readonly decide = (operation: string): Effect.Effect<AnyFault | undefined> =>
    Effect.suspend(() => {
      const nth = (this.counts.get(operation) ?? 0) + 1
      this.counts.set(operation, nth)
      const call = { operation, nth }
      const rules = this.rules.filter((rule) => rule.operation === operation || rule.operation === "any")
      return Effect.map(
        Effect.findFirst(rules, (rule) => this.isMeant(rule.when ?? Schedule.always, call)),
        (rule) => {
          const fault = rule._tag === "Some" ? rule.value.fault : undefined
          this.calls.push({ ...call, fault: fault?._tag })
          return fault
        }
      )
    })

  private isMeant(when: When, { nth, operation }: Call): Effect.Effect<boolean> {
    switch (when._tag) {
      case "Always":
        return Effect.succeed(true)
      case "Between":
        return Effect.succeed(when.from <= nth && nth <= when.to)
      case "Every":
        return Effect.succeed(nth % when.n === 0)
      case "Chance":
        return Effect.map(Random.next, (drawn) => drawn < when.probability).pipe(
          Random.withSeed(`${this.seed}/${operation}/${nth}`)
        )
    }
  }
}

/** Members are looked up when they are used, as a service may change them. */
const faulty = <S extends object>(service: S, plan: Plan): S => {
  const members = membersOf(service).map((key): [PropertyKey, PropertyDescriptor] => [
    key,
    { enumerable: true, configurable: true, get: () => member(service, key, plan) }
  ])
  // It has the members of the service, each with its type.
  return Object.defineProperties({}, Object.fromEntries(members)) as S
}

/** Also those that a class gives to its instances. */
const membersOf = (service: object): ReadonlyArray<PropertyKey> => {
  const keys = new Set<PropertyKey>()
  for (let at: object | null = service; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const key of Reflect.ownKeys(at)) if (key !== "constructor") keys.add(key)
  }
  return [...keys]
}

const member = (service: object, key: PropertyKey, plan: Plan): unknown => {
  const value: unknown = Reflect.get(service, key)
  const name = String(key)
  if (typeof value !== "function") return intercept({ name, args: [], run: () => value }, plan.decide)
  return (...args: ReadonlyArray<unknown>) =>
    intercept({ name, args, run: (given) => Reflect.apply(value, service, given) }, plan.decide)
}
