import { randomUUID } from "node:crypto"
import { readFileSync, readlinkSync } from "node:fs"
import { hostname } from "node:os"
import type { StoredOwner } from "../../RunStore.ts"

/*
 * Which process this is, so that a process that comes after it can tell that it has died without waiting for its lease.
 * A process id means something only on the machine, in the boot and in the namespace that it is of.
 */

const read = (f: () => string): string => {
  try {
    return f().trim()
  } catch {
    // Not Linux, or not allowed: the name of the host has to do.
    return ""
  }
}

const host = [
  hostname(),
  read(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8")),
  read(() => readlinkSync("/proc/self/ns/pid"))
].join(" ")

/** Tells this process from one that had its id before. */
const instance = randomUUID()

export const self: Pick<StoredOwner, "host" | "pid" | "process"> = { host, pid: process.pid, process: instance }

/** Whether an owner's process is known to be gone. `false` where that cannot be told. */
export const isGone = (owner: StoredOwner): boolean => {
  if (owner.host !== host || owner.process === instance) return false
  if (owner.pid === process.pid) return true
  try {
    process.kill(owner.pid, 0)
    return false
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ESRCH"
  }
}
