export { globalSetup as setup } from "../../durable/src/testing/postgres.ts"
