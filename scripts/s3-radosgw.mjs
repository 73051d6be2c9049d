// A real S3 server for the tests of the shared tier: Ceph's gateway over one monitor and one object store in memory, with
// signatures that are checked and conditions that are decided in one step. All of it is on the loopback, on free ports,
// in a temporary folder, and is ended by process id. Debian has it in `radosgw`, `ceph-mon` and `ceph-osd`.
//
//   node --conditions=@strata/source --no-warnings scripts/s3-radosgw.mjs [COMMAND ARG …]
//
// Runs the command with STRATA_TEST_S3_URL, which names an empty bucket, and ends with its exit code. Without a command it
// prints what to export, and stays until it is interrupted.
import * as S3Cache from "@strata/cache/S3Cache"
import * as S3 from "@strata/cache/testing/s3"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { spawn, spawnSync } from "node:child_process"
import { randomBytes, randomUUID } from "node:crypto"
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"

const command = process.argv.slice(2)
const startedAt = performance.now()
const folder = await mkdtemp(join(tmpdir(), "strata-radosgw-"))
const conf = join(folder, "ceph.conf")
const children = []

const freePort = () =>
  new Promise((resolve, reject) => {
    const server = createServer().on("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })

/** Who takes part, with what each may do. */
const users = [
  ["mon.", ["mon", "allow *"]],
  ["client.admin", ["mon", "allow *"], ["osd", "allow *"]],
  ["osd.0", ["mon", "allow profile osd"], ["osd", "allow *"]],
  ["client.rgw", ["mon", "allow rwx"], ["osd", "allow rwx"]]
]

/** Runs a program to its end, and gives what it printed. */
const run = (program, ...args) => {
  const { error, status, stderr, stdout } = spawnSync(program, ["-c", conf, ...args], {
    encoding: "utf8",
    timeout: 60_000
  })
  if (error !== undefined) throw new Error(`${program}: ${error.message}`)
  if (status !== 0) throw new Error(`${program} ${args[0]} ended with ${status}: ${stderr.trim()}`)
  return stdout
}

/** Starts a program that stays. */
const serve = (program, ...args) => {
  const child = spawn(program, ["-f", "-c", conf, ...args], { stdio: "ignore" })
  child.on("error", ({ message }) => console.error(`${program}: ${message}`))
  child.on("exit", (status) => {
    if (!isEnding) console.error(`${program} ended with ${status}`)
  })
  children.push(child)
}

const isAnswering = (url) =>
  fetch(url).then(
    (response) => response.ok,
    () => false
  )

let isEnding = false

const end = async () => {
  isEnding = true
  for (const child of children.toReversed()) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) continue
    const exited = new Promise((resolve) => child.once("exit", resolve))
    child.kill("SIGKILL")
    await exited
  }
  await rm(folder, { recursive: true, force: true })
}

const start = async () => {
  const [v2, v1, gateway] = [await freePort(), await freePort(), await freePort()]
  const [fsid, osd] = [randomUUID(), randomUUID()]
  for (const name of ["mon", "osd"]) await mkdir(join(folder, name))
  await writeFile(
    conf,
    `[global]
fsid = ${fsid}
mon_host = [v2:127.0.0.1:${v2},v1:127.0.0.1:${v1}]
public_addr = 127.0.0.1
keyring = ${folder}/keyring
log_file = ${folder}/log.$name
err_to_stderr = false
run_dir = ${folder}
admin_socket = ${folder}/$name.asok
mon_data = ${folder}/mon
mon_allow_pool_size_one = true
mon_warn_on_insecure_global_id_reclaim_allowed = false
mon_max_pg_per_osd = 1000
mon_cluster_log_file = ${folder}/log.cluster
osd_data = ${folder}/osd
osd_objectstore = memstore
memstore_device_bytes = 4294967296
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
osd_max_object_name_len = 256
rgw_data = ${folder}
`
  )
  for (const [name, ...caps] of users) {
    const create = name === "mon." ? ["--create-keyring"] : []
    run(
      "ceph-authtool",
      join(folder, "keyring"),
      ...create,
      "--gen-key",
      "-n",
      name,
      ...caps.flatMap((cap) => ["--cap", ...cap])
    )
  }
  run(
    "monmaptool",
    "--create",
    "--fsid",
    fsid,
    "--addv",
    "a",
    `[v2:127.0.0.1:${v2},v1:127.0.0.1:${v1}]`,
    join(folder, "monmap")
  )
  run("ceph-mon", "--mkfs", "-i", "a", "--monmap", join(folder, "monmap"), "--keyring", join(folder, "keyring"))
  serve("ceph-mon", "-i", "a")
  run("ceph", "--connect-timeout", "30", "osd", "new", osd)
  run("ceph-osd", "--mkfs", "-i", "0", "--osd-uuid", osd)
  serve("ceph-osd", "-i", "0")
  serve("radosgw", "-n", "client.rgw", "--rgw-frontends", `beast endpoint=127.0.0.1:${gateway}`)
  const endpoint = `http://127.0.0.1:${gateway}`
  for (let i = 0; !(await isAnswering(endpoint)); i++) {
    if (i === 600) throw new Error("the gateway does not answer")
    await sleep(100)
  }
  const [id, secret] = [randomBytes(10).toString("hex"), randomBytes(20).toString("hex")]
  run(
    "radosgw-admin",
    "user",
    "create",
    "--uid",
    "strata",
    "--display-name",
    "strata",
    "--access-key",
    id,
    "--secret-key",
    secret
  )
  const url = `s3://${id}:${secret}@strata?region=us-east-1&endpoint=${endpoint}`
  const options = await Effect.runPromise(S3Cache.fromUrl(Redacted.make(url)))
  await Effect.runPromise(S3.createBucket(options))
  return url
}

/** The exit code of the command, or of having been interrupted. */
const work = (url) =>
  new Promise((resolve, reject) => {
    const [program, ...args] = command
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => resolve(130))
    if (program === undefined) return console.log(`export STRATA_TEST_S3_URL='${url}'`)
    const child = spawn(program, args, { stdio: "inherit", env: { ...process.env, STRATA_TEST_S3_URL: url } })
    child.on("error", reject)
    child.on("exit", (status) => resolve(status ?? 1))
  })

try {
  const url = await start()
  console.error(`the gateway answers after ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
  process.exitCode = await work(url)
} catch (error) {
  for (const name of ["mon.a", "osd.0", "client.rgw"]) {
    const log = await readFile(join(folder, `log.${name}`), "utf8").catch(() => "")
    console.error(log.split("\n").slice(-10).join("\n"))
  }
  throw error
} finally {
  await end()
}
