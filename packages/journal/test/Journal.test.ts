import { journalSuite } from "@strata/journal/testing"
import * as Tiers from "./tiers.ts"

journalSuite("memory", Tiers.memory)
journalSuite("SQLite", Tiers.sqlite)
