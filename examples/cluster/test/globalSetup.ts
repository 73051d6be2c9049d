export { globalSetup as setup } from "@strata/durable/testing/postgres"
