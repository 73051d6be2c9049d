/**
 * @since 0.1.0
 */

/**
 * The version of the program, which is that of its package.
 *
 * @since 0.1.0
 * @category constants
 */
export const version = "0.1.0"
