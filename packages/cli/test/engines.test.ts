import { assert, describe, it } from "@effect/vitest"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../..", import.meta.url))

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
  readonly engines?: { readonly node?: string }
  /** Of a workspace: where it is. */
  readonly resolved?: string
  readonly link?: boolean
  /** Reached through optional dependencies only. */
  readonly optional?: boolean
}

const lock: { readonly packages: Readonly<Record<string, Manifest>> } = JSON.parse(
  readFileSync(join(root, "package-lock.json"), "utf8")
)

/** The place of a dependency in the lock file, looked for from a package upwards as Node does. */
const locate = (from: string, name: string): string | undefined => {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/")))) {
    const place = folder === "" ? `node_modules/${name}` : `${folder}/node_modules/${name}`
    const found = lock.packages[place]
    if (found !== undefined) return found.link === true ? found.resolved : place
    if (folder === "") return undefined
  }
}

/** All that is installed with the packages of this repository, development dependencies apart. */
const installed = (): ReadonlySet<string> => {
  const seen = new Set<string>()
  const visit = (place: string): void => {
    if (seen.has(place)) return
    seen.add(place)
    const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = lock.packages[place]!
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
      const isOptional = optionalDependencies?.[name] ?? peerDependenciesMeta?.[name]?.optional
      const found = locate(place, name)
      if (found !== undefined) visit(found)
      else assert.isDefined(isOptional, `${name}, of which ${place} depends, is not in the lock file`)
    }
  }
  for (const name of readdirSync(join(root, "packages"))) {
    if (lock.packages[`packages/${name}`] !== undefined) visit(`packages/${name}`)
  }
  return seen
}

type Version = readonly [major: number, minor: number, patch: number]

const parse = (text: string): Version => {
  const parts = text.split(".").map((part) => (part === "x" || part === "*" ? 0 : Number(part)))
  assert.isTrue(parts.length <= 3 && parts.every(Number.isInteger), `the version ${text} is not understood`)
  return [parts[0]!, parts[1] ?? 0, parts[2] ?? 0]
}

const compare = (a: Version, b: Version): number => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]

/** Whether a range of versions, as far as packages write such, has a version. */
const allows = (range: string, version: Version): boolean =>
  range.split("||").some((alternative) =>
    [...alternative.matchAll(/(>=|<=|>|<|\^|~|=)?\s*v?([\d.x*]+)/g)].every(([, operator, text]) => {
      if (text === "*") return true
      const bound = parse(text!)
      const order = compare(version, bound)
      switch (operator) {
        case ">=":
          return order >= 0
        case ">":
          return order > 0
        case "<=":
          return order <= 0
        case "<":
          return order < 0
        case "~":
          return order >= 0 && version[0] === bound[0] && version[1] === bound[1]
        case "^":
          return order >= 0 && version[0] === bound[0]
        default:
          return text!.split(".").every((part, i) => part === "x" || part === "*" || Number(part) === version[i])
      }
    })
  )

describe("engines", () => {
  it("understands ranges", () => {
    const range = "^20.19.0 || ^22.12.0 || >=24 <25.1"
    const inside = ["20.19.0", "22.19.0", "24.0.0", "25.0.9"]
    const outside = ["20.18.9", "21.0.0", "23.0.0", "25.1.0"]
    assert.deepStrictEqual(
      inside.filter((version) => allows(range, parse(version))),
      inside
    )
    assert.deepStrictEqual(
      outside.filter((version) => allows(range, parse(version))),
      []
    )
    assert.isTrue(
      allows(">= 18.0.0", parse("22.19.0")) && allows("22.x", parse("22.19.0")) && allows("*", parse("1.0.0"))
    )
    assert.isFalse(allows(">= 24.0.0", parse("22.19.0")))
  })

  it("lets every package that is installed with ours run on the oldest Node that ours promise", () => {
    const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
    const oldest = parse(engines.node.replace(/^>=/, ""))
    const places = installed()
    assert.isTrue(places.has("packages/cli") && places.size > 20)
    // An optional one that refuses is left out by npm, and nothing is lost: binaries for a machine of another kind.
    const needed = [...places].filter((place) => lock.packages[place]!.optional !== true)
    const refusing = needed.filter((place) => !allows(lock.packages[place]!.engines?.node ?? "*", oldest))
    assert.deepStrictEqual(refusing, [])
  })

  it("is promised by every package", () => {
    const promised = readdirSync(join(root, "packages"))
      .map((name) => join(root, "packages", name, "package.json"))
      .filter(existsSync)
      .map((file) => JSON.parse(readFileSync(file, "utf8")).engines?.node)
    assert.deepStrictEqual([...new Set(promised)], [">=22.19"])
  })
})
