/**
 * @since 0.1.0
 */
export * as Fault from "./Fault.ts"
/**
 * @since 0.1.0
 */
export * as Faults from "./Faults.ts"
/**
 * @since 0.1.0
 */
export * as SocketGuard from "./SocketGuard.ts"
/**
 * @since 0.1.0
 */
export * from "./suites.ts"
