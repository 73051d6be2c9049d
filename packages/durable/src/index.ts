/**
 * @since 0.1.0
 */
export * as CanonicalJson from "./CanonicalJson.ts"
/**
 * @since 0.1.0
 */
export * as Digest from "./Digest.ts"
/**
 * @since 0.1.0
 */
export * as DurableWriter from "./DurableWriter.ts"
/**
 * @since 0.1.0
 */
export * as Metrics from "./Metrics.ts"
/**
 * @since 0.1.0
 */
export * as Migrations from "./Migrations.ts"
/**
 * @since 0.1.0
 */
export * as Rows from "./Rows.ts"
/**
 * @since 0.1.0
 */
export * as Text from "./Text.ts"
