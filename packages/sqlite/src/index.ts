/**
 * @since 0.1.0
 */
export * as DataVersion from "./DataVersion.ts"
/**
 * @since 0.1.0
 */
export * as SqliteClient from "./SqliteClient.ts"
/**
 * @since 0.1.0
 */
export * as TransactionObserver from "./TransactionObserver.ts"
