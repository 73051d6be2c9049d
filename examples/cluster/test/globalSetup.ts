export { globalSetup as setup } from "../../../packages/durable/src/testing/postgres.ts"
