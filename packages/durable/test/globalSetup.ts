export { globalSetup as setup } from "../src/testing/postgres.ts"
