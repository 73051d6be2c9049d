import { actionSuite } from "./suite.ts"
import * as Tiers from "./tiers.ts"

actionSuite("memory", Tiers.memory)
actionSuite("SQLite", Tiers.sqlite)
