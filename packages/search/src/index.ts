/**
 * @since 0.1.0
 */
export * as Extractor from "./Extractor.ts"
/**
 * @since 0.1.0
 */
export * as FileTree from "./FileTree.ts"
/**
 * @since 0.1.0
 */
export * as Query from "./Query.ts"
