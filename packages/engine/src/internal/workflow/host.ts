import { randomUUID } from "node:crypto"
import { readFileSync, readlinkSync } from "node:fs"
import { hostname } from "node:os"
import type { StoredOwner } from "../../RunStore.ts"

/*
 * Which process this is, so that a process that comes after it can tell that it has died without waiting for its lease.
 * A process id means something only on the machine, in the boot and in the namespace that it is of, and until it is given
 * to another process; Linux tells when a process has begun.
 */

/** Not Linux, or not allowed: what is known without has to do. */
const tryRead = (f: () => string): string | undefined => {
  try {
    return f().trim()
  } catch {
    return undefined
  }
}

const host = [
  hostname(),
  tryRead(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8")) ?? "",
  tryRead(() => readlinkSync("/proc/self/ns/pid")) ?? ""
].join(" ")

/** What Linux tells of a process: its state, and when it has begun. Source: proc_pid_stat(5). */
const statusOf = (pid: number): { readonly state: string; readonly begun: string } | undefined => {
  const stat = tryRead(() => readFileSync(`/proc/${pid}/stat`, "utf8"))
  // The second field is a name in parentheses, and can hold anything.
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ")
  return fields && { state: fields[0] ?? "", begun: fields[19] ?? "" }
}

/** Tells this process from one that had its id before. */
const instance = `${randomUUID()} ${statusOf(process.pid)?.begun ?? ""}`

export const self: Pick<StoredOwner, "host" | "pid" | "process"> = { host, pid: process.pid, process: instance }

/** Whether an owner's process is known to be gone. `false` where that cannot be told. */
export const isGone = (owner: StoredOwner): boolean => {
  if (owner.host !== host || owner.process === instance) return false
  if (owner.pid === process.pid) return true
  const status = statusOf(owner.pid)
  if (status === undefined) return !exists(owner.pid)
  // A zombie is dead, whoever has not heard of it yet.
  return status.state === "Z" || status.state === "X" || !owner.process.endsWith(` ${status.begun}`)
}

const exists = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "ESRCH")
  }
}
