import { Scope } from "@strata/dirty-queue/Path"

/** The reserved scope of the changelog in which the local step cache records what came into it. */
export const cacheScope = Scope.make("~cache")
