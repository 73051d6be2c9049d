/**
 * @since 0.1.0
 */
export * as CachedExtractor from "./CachedExtractor.ts"
/**
 * @since 0.1.0
 */
export * as Extractor from "./Extractor.ts"
/**
 * @since 0.1.0
 */
export * as FileReader from "./FileReader.ts"
/**
 * @since 0.1.0
 */
export * as FileTree from "./FileTree.ts"
/**
 * @since 0.1.0
 */
export * as Query from "./Query.ts"
/**
 * @since 0.1.0
 */
export * as Roots from "./Roots.ts"
/**
 * @since 0.1.0
 */
export * as Scan from "./Scan.ts"
/**
 * @since 0.1.0
 */
export * as Search from "./Search.ts"
/**
 * @since 0.1.0
 */
export * as SearchIndex from "./SearchIndex.ts"
/**
 * @since 0.1.0
 */
export * as Verify from "./Verify.ts"
