/**
 * A setup file for vitest: whatever a test does, it fails when a fiber that is inside of a write uses the network.
 *
 * @since 0.1.0
 */
import { afterAll, afterEach } from "vitest"
import * as SocketGuard from "./SocketGuard.ts"

const check = (): void => {
  const [first] = SocketGuard.take()
  if (first !== undefined) throw first
}

/** See `@strata/durable/testing/postgres`: a test file may have a server of its own. */
const isPostgres = (port: number): boolean => {
  const url = process.env["STRATA_TEST_POSTGRES"]
  return url !== undefined && port === Number(new URL(url).port || 5432)
}

SocketGuard.install({ isDatabase: isPostgres })
afterEach(check)
// For what fibers do that outlive their test.
afterAll(check)
