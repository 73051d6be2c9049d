import * as Effect from "effect/Effect"
import * as Effectable from "effect/Effectable"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as SqlClient from "effect/sql/SqlClient"
import type * as SqlConnection from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import type { SqliteConnection } from "./connection.ts"
import * as Level from "./transactionLevel.ts"

/** What statements need of the client they belong to. */
export interface Options {
  /** Builds statements as `effect/sql` does. */
  readonly base: Statement.Constructor
  readonly connection: SqliteConnection
  readonly transactionService: SqlClient.SqlClient["transactionService"]
  /** Lends the connection for one statement outside of transactions. */
  readonly borrower: SqlConnection.Borrower
  readonly transformRows: (<A extends object>(rows: ReadonlyArray<A>) => ReadonlyArray<A>) | undefined
}

/**
 * The statement constructor of a client. Its statements do what those of `effect/sql` do, but cost less when nobody
 * looks on: a template of plain values is joined once for each place in the source instead of compiled for each
 * statement, and no span is made that neither a tracer nor a transformer would see.
 */
export const make = (options: Options) => {
  function sql(value: string): Statement.Identifier
  function sql<A extends object = SqlConnection.Row>(
    strings: TemplateStringsArray,
    ...args: Array<unknown>
  ): Statement.Statement<A>
  function sql(
    strings: string | TemplateStringsArray,
    ...args: Array<unknown>
  ): Statement.Identifier | Statement.Statement<object> {
    return typeof strings === "string"
      ? options.base(strings)
      : new SqliteStatement(options, strings, arePlain(args) ? joined(strings) : undefined, args)
  }
  const unsafe = <A extends object>(text: string, params?: ReadonlyArray<unknown>): Statement.Statement<A> =>
    new SqliteStatement<A>(options, undefined, text, params ?? noParams)
  return Object.assign(sql, { unsafe })
}

// ---------------------------------------------------------------------------------------------------------------------
// statements
// ---------------------------------------------------------------------------------------------------------------------

class SqliteStatement<A extends object> extends Effectable.Class<ReadonlyArray<A>, SqlError> {
  readonly options: Options
  /** Those of a template; a statement without is the `text` as it stands. */
  readonly strings: TemplateStringsArray | undefined
  /** The SQL, unless it depends on the arguments. */
  readonly text: string | undefined
  readonly args: ReadonlyArray<unknown>

  constructor(
    options: Options,
    strings: TemplateStringsArray | undefined,
    text: string | undefined,
    args: ReadonlyArray<unknown>
  ) {
    super()
    this.options = options
    this.strings = strings
    this.text = text
    this.args = args
  }

  get "~effect/sql/Statement/Fragment"() {
    return "~effect/sql/Statement/Fragment" as const
  }

  /** The statement as `effect/sql` builds it. */
  get inner(): Statement.Statement<A> {
    return this.strings === undefined
      ? this.options.base.unsafe(this.text ?? "", this.args)
      : this.options.base(this.strings, ...this.args)
  }

  /** What looks for a transaction by itself is not to find one that has ended. */
  outside<B, E, R>(effect: Effect.Effect<B, E, R>): Effect.Effect<B, E | SqlError, R> {
    const { transactionService } = this.options
    return Effect.withFiber(({ context }): Effect.Effect<B, E | SqlError, R> =>
      Level.placeOfStatement(context, transactionService) === "nowhere"
        ? Level.refused
        : Effect.updateContext(effect, Level.withoutEnded(transactionService))
    )
  }

  get segments(): ReadonlyArray<Statement.Segment> {
    return this.inner.segments
  }

  compile(withoutTransform?: boolean | undefined): readonly [sql: string, params: ReadonlyArray<unknown>] {
    return this.text === undefined ? this.inner.compile(withoutTransform) : [this.text, this.args]
  }

  override asEffect(): Effect.Effect<ReadonlyArray<A>, SqlError> {
    return this
  }

  get withoutTransform(): Effect.Effect<ReadonlyArray<A>, SqlError> {
    return Effect.withFiber((fiber) => run(this, fiber, untransformed) ?? this.outside(this.inner.withoutTransform))
  }

  get raw(): Effect.Effect<unknown, SqlError> {
    return Effect.withFiber((fiber) => run(this, fiber, raw) ?? this.outside(this.inner.raw))
  }

  get values(): Effect.Effect<Values, SqlError> {
    return Effect.withFiber((fiber) => run(this, fiber, values) ?? this.outside(this.inner.values))
  }

  get valuesUnprepared(): Effect.Effect<Values, SqlError> {
    return this.outside(this.inner.valuesUnprepared)
  }

  get unprepared(): Effect.Effect<ReadonlyArray<A>, SqlError> {
    return this.outside(this.inner.unprepared)
  }

  get stream(): Stream.Stream<A, SqlError> {
    // A stream's own `updateContext` takes nothing out of a context.
    const pulls = Effect.map(Stream.toPull(this.inner.stream), (pull) => this.outside(pull))
    return Stream.scoped(Stream.fromPull(this.outside(pulls)))
  }

  override toJSON(): unknown {
    const [sql, params] = this.compile()
    return { _id: "Statement", segments: this.segments, sql, params }
  }
}

// What `Effectable.Class` evaluates is an effect that `asEffect` makes; a statement saves that one.
void Object.defineProperties(SqliteStatement.prototype, {
  ...Object.getOwnPropertyDescriptors(
    Effectable.Prototype<SqliteStatement<object>>({
      label: "Statement",
      evaluate(fiber) {
        return run(this, fiber, transformed) ?? this.outside(this.inner)
      }
    })
  ),
  toJSON: { value: SqliteStatement.prototype.toJSON }
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

type Rows = Effect.Success<ReturnType<SqlConnection.Connection["execute"]>>
type Values = ReadonlyArray<ReadonlyArray<unknown>>

/** One way of running a statement. */
interface Method<A> {
  readonly withoutTransform: boolean
  readonly evaluate: (options: Options, sql: string, params: ReadonlyArray<unknown>) => Exit.Exit<A, SqlError>
}

const transformed: Method<Rows> = {
  withoutTransform: false,
  evaluate: ({ connection, transformRows }, sql, params) => {
    const exit = connection.unsafe.rows(sql, params)
    return transformRows === undefined ? exit : Exit.map(exit, transformRows)
  }
}

const untransformed: Method<Rows> = {
  withoutTransform: true,
  evaluate: ({ connection }, sql, params) => connection.unsafe.rows(sql, params)
}

const raw: Method<unknown> = {
  withoutTransform: true,
  evaluate: ({ connection }, sql, params) => connection.unsafe.raw(sql, params)
}

const values: Method<Values> = {
  withoutTransform: false,
  evaluate: ({ connection }, sql, params) => connection.unsafe.values(sql, params)
}

/** Runs a statement that nobody looks on, inside of a transaction at once. */
const run = <A>(
  self: SqliteStatement<object>,
  fiber: Fiber.Fiber<unknown, unknown>,
  method: Method<A>
): Effect.Effect<A, SqlError> | undefined => {
  if (isObserved(fiber)) return undefined
  const { args, options, text } = self
  if (text === undefined) {
    const [sql, params] = self.inner.compile(method.withoutTransform)
    return lend(options, fiber, method, sql, params)
  }
  return lend(options, fiber, method, text, args)
}

const lend = <A>(
  options: Options,
  fiber: Fiber.Fiber<unknown, unknown>,
  method: Method<A>,
  sql: string,
  params: ReadonlyArray<unknown>
): Effect.Effect<A, SqlError> => {
  switch (Level.placeOfStatement(fiber.context, options.transactionService)) {
    case "inside":
      return method.evaluate(options, sql, params)
    case "outside":
      return options.borrower(() => method.evaluate(options, sql, params))
    case "nowhere":
      return Level.refused
  }
}

/** Whether anybody would see the span of a statement, or changes statements before they are run. */
const isObserved = (fiber: Fiber.Fiber<unknown, unknown>): boolean => {
  const { tracer, tracerEnabled } = fiber.cache
  return (
    (tracerEnabled && tracer !== undefined && tracer !== Tracer.nativeTracer) ||
    fiber.getRef(Statement.CurrentTransformer) !== undefined
  )
}

const noParams: ReadonlyArray<unknown> = []

/** The SQL of templates whose arguments are all plain: each stands for one parameter. */
const texts = new WeakMap<TemplateStringsArray, string>()

const joined = (strings: TemplateStringsArray): string => {
  const known = texts.get(strings)
  if (known !== undefined) return known
  const text = strings.join("?")
  texts.set(strings, text)
  return text
}

/** Whether arguments can only be parameters: none is a fragment, an identifier or a helper. */
const arePlain = (args: ReadonlyArray<unknown>): boolean => {
  for (let i = 0; i < args.length; i++) {
    const value = args[i]
    const isObject = (typeof value === "object" && value !== null) || typeof value === "function"
    if (isObject && !(value instanceof Date) && !ArrayBuffer.isView(value)) return false
  }
  return true
}
