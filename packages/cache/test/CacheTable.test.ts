import { cacheTableSuite } from "../src/testing.ts"
import * as Local from "./support/local.ts"

cacheTableSuite("memory", { layer: Local.memory })
cacheTableSuite("sqlite", { layer: Local.sqlite() })
