import * as SqliteClient from "@strata/sqlite/SqliteClient"
import { transactionEnded } from "@strata/sqlite/TransactionObserver"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Semaphore from "effect/Semaphore"
import type * as SqlClient from "effect/sql/SqlClient"
import type * as SqlConnection from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import type { SqlWrite } from "./sqlWrite.ts"

type Transaction = Context.Service.Shape<SqlClient.SqlClient["transactionService"]>

/** A savepoint that was opened in a write. */
interface Savepoint {
  readonly name: string
  readonly opened: number
  readonly isOfWrite: boolean
  /** That of the nested write that it is of. */
  connection: TransactionConnection | undefined
}

/** Counts what happens on connections, to know what came first. */
let now = 0

/**
 * The connection as a write of any `SqlClient` has it. Fibers and nested writes may go on when the body of the write has
 * ended; it lets nothing of theirs slip in between then and the COMMIT, or into what the connection is used for next.
 */
export class TransactionConnection implements SqlConnection.Connection {
  readonly write: SqlWrite
  readonly depth: number
  ended = false
  /** Whether a savepoint that no write has opened was taken back before its effect had ended. */
  hasCutOthers = false
  private readonly raw: SqlConnection.Connection
  private readonly reserve: SqlConnection.Acquirer
  private readonly parent: TransactionConnection | undefined
  private readonly savepoints: Array<Savepoint> = []
  /** Whether the savepoint that is opened next is that of a nested write. */
  private isNesting = false
  private children: Semaphore.Semaphore | undefined = undefined
  /** Statements of this write, and of those nested in it, that are under way. */
  private pending = 0
  private onIdle: (() => void) | undefined = undefined
  /** When its body last ran a statement while a savepoint in it was open. */
  private touched = 0

  constructor(
    write: SqlWrite,
    depth: number,
    raw: SqlConnection.Connection,
    reserve: SqlConnection.Acquirer,
    parent: TransactionConnection | undefined
  ) {
    this.write = write
    this.depth = depth
    this.raw = raw
    this.reserve = reserve
    this.parent = parent
  }

  /** Puts one in the place of the connection that the transaction of a write has, which begins. */
  static enter(sql: SqlClient.SqlClient, context: Context.Context<never>, write: SqlWrite): TransactionConnection {
    const transaction = Context.getUnsafe(context, sql.transactionService)
    const [connection, depth] = transaction
    const parent = connection instanceof TransactionConnection ? connection : undefined
    const entered = new TransactionConnection(write, depth, parent?.raw ?? connection, sql.reserve, parent)
    const savepoint = parent?.savepoints.at(-1)
    if (savepoint !== undefined) savepoint.connection = entered
    // The client knows a transaction, and its callbacks for after the commit, by this very object.
    Object.assign(transaction, [entered])
    return entered
  }

  /** The innermost write that has not ended: its own, or one that it is nested in. */
  get standing(): TransactionConnection | undefined {
    return this.ended ? this.parent?.standing : this
  }

  /** Whether nothing can be nested in it any more. */
  get isOver(): boolean {
    return this.ended || this.write.lost
  }

  get isOpen(): boolean {
    return (!this.ended && !this.write.lost) || this.parent?.isOpen === true
  }

  /**
   * Nested writes of one level run one after the other, or rolling one back would take the changes of its sibling. One
   * whose turn comes too late is refused.
   */
  inTurn<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R> {
    return Effect.uninterruptibleMask((restore) => {
      this.children ??= Semaphore.makeUnsafe(1)
      const { children } = this
      return Effect.flatMap(restore(children.take(1)), () => {
        this.isNesting = true
        const inTime: Effect.Effect<A, E | SqlError, R> = this.isOver ? refused : restore(effect)
        return Effect.ensuring(inTime, children.release(1))
      })
    })
  }

  /** The body of its write has ended. Gives what is left to do before the transaction or savepoint does. */
  end(): Effect.Effect<void, SqlError> | undefined {
    this.ended = true
    this.letAllGo()
    if (this.savepoints.length === 0 && this.pending === 0) return this.write.lost ? refused : undefined
    this.hasCutOthers = this.savepoints.some(isOfOthers)
    for (const { connection } of this.savepoints) connection?.cutOff()
    return Effect.andThen(
      this.idle,
      Effect.suspend(() => this.undoLeftOver())
    )
  }

  /** It can only fail. */
  private cutOff(): void {
    this.write.lose()
    for (const { connection } of this.savepoints) connection?.cutOff()
    this.letAllGo()
  }

  private undone(): void {
    for (const { connection } of this.savepoints.toReversed()) connection?.undone()
    this.write.undone()
  }

  /** Those that wait for a turn have nothing to wait for any more. */
  private letAllGo(): void {
    if (this.children !== undefined) Effect.runFork(this.children.resize(Number.MAX_SAFE_INTEGER))
  }

  private readonly idle: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.pending === 0) resume(Effect.void)
    else this.onIdle = () => resume(Effect.void)
  })

  /** Takes back a savepoint whose body has not ended: half of it would be committed, and then be told that it failed. */
  private undoLeftOver(): Effect.Effect<void, SqlError> {
    const [savepoint] = this.savepoints
    this.hasCutOthers = this.savepoints.some(isOfOthers)
    if (savepoint === undefined) return this.write.lost ? refused : Effect.void
    for (const { connection } of this.savepoints.toReversed()) connection?.undone()
    this.savepoints.length = 0
    return Effect.flatMap(this.raw.executeUnprepared(`ROLLBACK TO SAVEPOINT ${savepoint.name}`, [], undefined), () =>
      this.takeAlong(savepoint) ? refused : Effect.void
    )
  }

  /** Who ran statements around a savepoint that was taken back has lost them, and fails: whether it is this write. */
  private takeAlong(savepoint: Savepoint): boolean {
    const lost = this.outermostTouched(savepoint.opened)
    if (lost === undefined) return false
    lost.cutOff()
    lost.undone()
    return true
  }

  private outermostTouched(since: number): TransactionConnection | undefined {
    return this.parent?.outermostTouched(since) ?? (this.touched > since ? this : undefined)
  }

  // -------------------------------------------------------------------------------------------------------------------
  // statements
  // -------------------------------------------------------------------------------------------------------------------

  execute: SqlConnection.Connection["execute"] = (sql, params, transformRows) =>
    this.run(sql, (connection) => connection.execute(sql, params, transformRows))

  executeRaw: SqlConnection.Connection["executeRaw"] = (sql, params) =>
    this.run(sql, (connection) => connection.executeRaw(sql, params))

  executeValues: SqlConnection.Connection["executeValues"] = (sql, params) =>
    this.run(sql, (connection) => connection.executeValues(sql, params))

  executeValuesUnprepared: SqlConnection.Connection["executeValuesUnprepared"] = (sql, params) =>
    this.run(sql, (connection) => connection.executeValuesUnprepared(sql, params))

  executeUnprepared: SqlConnection.Connection["executeUnprepared"] = (sql, params, transformRows) =>
    this.run(sql, (connection) => connection.executeUnprepared(sql, params, transformRows))

  executeStream: SqlConnection.Connection["executeStream"] = (sql, params, transformRows) =>
    Stream.unwrap(
      Effect.suspend(() => {
        const { standing } = this
        if (this.hasCutOthers || standing?.write.lost === true) return refused
        standing?.touch()
        const connection = standing === undefined ? this.reserve : Effect.succeed(standing.raw)
        return Effect.map(connection, (connection) => connection.executeStream(sql, params, transformRows))
      })
    )

  private run<A>(
    sql: string,
    f: (connection: SqlConnection.Connection) => Effect.Effect<A, SqlError>
  ): Effect.Effect<A, SqlError> {
    const control = controls.exec(sql)
    if (control !== null) return this.control(control[1]!, control[2]!, f)
    return Effect.suspend(() => {
      const { standing } = this
      if (this.hasCutOthers) return refused
      if (standing === undefined) return Effect.scoped(Effect.flatMap(this.reserve, f))
      standing.touch()
      return standing.counted(f)
    })
  }

  /** What opens and ends savepoints: of nested writes, and of transactions that no write has opened. */
  private control<A>(
    kind: string,
    name: string,
    f: (connection: SqlConnection.Connection) => Effect.Effect<A, SqlError>
  ): Effect.Effect<A, SqlError> {
    if (kind === "SAVEPOINT") return this.counted(f, this.opened(name))
    return Effect.map(this.counted(f), (result) => {
      const place = this.savepoints.findLastIndex((savepoint) => savepoint.name === name)
      const savepoint = this.savepoints[place]
      if (savepoint === undefined) return result
      this.savepoints.length = place
      if (kind === "ROLLBACK TO") this.takeAlong(savepoint)
      else savepoint.connection?.write.joined()
      return result
    })
  }

  /** Called when a savepoint is opened; gives what to call if that fails. */
  private readonly opened = (name: string) => (): (() => void) => {
    const savepoint: Savepoint = { name, opened: ++now, isOfWrite: this.isNesting, connection: undefined }
    this.isNesting = false
    this.savepoints.push(savepoint)
    return () => void this.savepoints.splice(this.savepoints.indexOf(savepoint), 1)
  }

  /** One that is under way is waited for when the write ends, so that it is known on which side of that it was. */
  private counted<A>(
    f: (connection: SqlConnection.Connection) => Effect.Effect<A, SqlError>,
    onStart?: () => () => void
  ): Effect.Effect<A, SqlError> {
    return Effect.suspend(() => {
      let counts = false
      let undo: (() => void) | undefined
      return Effect.onExitPrimitive(
        Effect.suspend(() => {
          if (this.isOver) return refused
          counts = true
          this.count(1)
          undo = onStart?.()
          return f(this.raw)
        }),
        (exit) => {
          if (Exit.isFailure(exit)) undo?.()
          if (counts) this.count(-1)
          return undefined
        }
      )
    })
  }

  private count(by: 1 | -1): void {
    this.pending += by
    if (this.pending === 0) this.onIdle?.()
    this.parent?.count(by)
  }

  private touch(): void {
    // Those of a transaction in it that no write has opened come this way too.
    if (this.savepoints.length > 0 && !this.savepoints.some(isOfOthers)) {
      this.touched = ++now
    }
  }
}

/** The connection of the write whose own transaction or savepoint, not one in it, a context has. */
export const own = (transaction: Transaction | undefined): TransactionConnection | undefined =>
  transaction !== undefined &&
  transaction[0] instanceof TransactionConnection &&
  transaction[0].depth === transaction[1]
    ? transaction[0]
    : undefined

/** Whether a transaction has ended, however those go on that it is nested in; one that nobody can tell of has not. */
export const hasEnded = (transaction: Transaction): boolean => {
  const [connection, depth] = transaction
  return connection instanceof TransactionConnection
    ? connection.ended && (connection.depth === depth || !connection.hasCutOthers)
    : SqliteClient.hasEndedTransaction(transaction)
}

/** Whether a transaction, or one that it is nested in, goes on; one that nobody can tell of does. */
export const isOpen = (transaction: Transaction): boolean => {
  const [connection] = transaction
  return connection instanceof TransactionConnection ? connection.isOpen : SqliteClient.isOpenTransaction(transaction)
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const isOfOthers = ({ connection, isOfWrite }: Savepoint): boolean => !isOfWrite && connection === undefined

const refused = Exit.fail(transactionEnded)

const controls = /^(SAVEPOINT|RELEASE|ROLLBACK TO)(?: SAVEPOINT)? (\S+)$/
