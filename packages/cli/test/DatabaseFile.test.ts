import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as DatabaseFile from "../src/DatabaseFile.ts"
import * as Platform from "../src/Platform.ts"

/** Runs `effect` as if `folder` were the working directory. */
const inFolder =
  (folder: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.updateService(effect, Path.Path, (path) =>
      Path.Path.of({ ...path, resolve: (...segments) => path.resolve(folder, ...segments) })
    )

const files = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const root = yield* Effect.flatMap(fs.makeTempDirectoryScoped(), fs.realPath)
  yield* fs.makeDirectory(`${root}/project/a/b`, { recursive: true })
  return { fs, root, project: `${root}/project` }
})

describe("DatabaseFile", () => {
  it.effect("is found in the working directory and in the nearest folder above it", () =>
    Effect.gen(function* () {
      const { fs, project } = yield* files
      const created = yield* DatabaseFile.existingOrNew(Option.none()).pipe(inFolder(project))
      assert.strictEqual(created, `${project}/.strata/strata.db`)
      yield* fs.writeFileString(created, "")
      for (const folder of [project, `${project}/a`, `${project}/a/b`]) {
        assert.strictEqual(yield* DatabaseFile.existing(Option.none()).pipe(inFolder(folder)), created)
        assert.strictEqual(yield* DatabaseFile.existingOrNew(Option.none()).pipe(inFolder(folder)), created)
      }
      yield* fs.makeDirectory(`${project}/a/.strata`)
      yield* fs.writeFileString(`${project}/a/.strata/strata.db`, "")
      const nearest = yield* DatabaseFile.existing(Option.none()).pipe(inFolder(`${project}/a/b`))
      assert.strictEqual(nearest, `${project}/a/.strata/strata.db`)
    }).pipe(Effect.provide(Platform.layer))
  )

  it.effect("keeps a folder that it creates out of git", () =>
    Effect.gen(function* () {
      const { fs, project } = yield* files
      yield* DatabaseFile.existingOrNew(Option.none()).pipe(inFolder(project))
      assert.strictEqual(yield* fs.readFileString(`${project}/.strata/.gitignore`), "*\n")
    }).pipe(Effect.provide(Platform.layer))
  )

  it.effect("is not found where there is none, and nothing is created", () =>
    Effect.gen(function* () {
      const { fs, project } = yield* files
      const error = yield* DatabaseFile.existing(Option.none()).pipe(inFolder(project), Effect.flip)
      assert.instanceOf(error, DatabaseFile.DatabaseFileError)
      assert.deepStrictEqual({ ...error.reason }, { _tag: "NotFound", from: project })
      assert.isFalse(yield* fs.exists(`${project}/.strata`))
    }).pipe(Effect.provide(Platform.layer))
  )

  it.effect("is the file that is given, with its folder", () =>
    Effect.gen(function* () {
      const { fs, project } = yield* files
      const given = Option.some("x/y/my.db")
      const error = yield* DatabaseFile.existing(given).pipe(inFolder(project), Effect.flip)
      assert.instanceOf(error, DatabaseFile.DatabaseFileError)
      assert.strictEqual(error.reason._tag, "Missing")
      assert.strictEqual(yield* DatabaseFile.existingOrNew(given).pipe(inFolder(project)), `${project}/x/y/my.db`)
      assert.isTrue(yield* fs.exists(`${project}/x/y`))
    }).pipe(Effect.provide(Platform.layer))
  )
})
