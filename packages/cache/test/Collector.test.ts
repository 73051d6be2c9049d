import { collectorSuite } from "../src/testing/collectorSuite.ts"
import * as Local from "./support/local.ts"

collectorSuite("memory", { layer: Local.memory })
collectorSuite("sqlite", { layer: Local.sqlite() })
