/** Notes by title, and an index of their tags that follows them: an app's own content, and its own index. */
import { CatchUp, Changelog, ContentReader, DirtyQueue, DurableWriter, Follower } from "@strata/strata"
import { FollowerScheduler, type IndexWriter, Path } from "@strata/strata"
import { Context, Effect, Layer, Option } from "effect"

const scope = Path.Scope.make("notes")

/** What the app keeps: here a map; a table, a bucket or a directory would do as well. */
export class Notes extends Context.Service<Notes, Map<string, string>>()("Notes") {
  static readonly layer = Layer.sync(Notes, () => new Map())
}

/** The derived data: which notes carry a tag. Lives outside of the database, so it is told everything at least once. */
class Tags {
  private readonly byNote = new Map<string, ReadonlyArray<string>>()

  readonly writer: IndexWriter.Idempotent<string> = {
    mode: "idempotent",
    write: ({ removals, upserts }) =>
      Effect.sync(() => {
        for (const { path, value } of upserts) this.byNote.set(path, value.match(/#\w+/g) ?? [])
        for (const { path } of removals) this.byNote.delete(path)
      })
  }

  readonly notes = (tag: string) =>
    [...this.byNote].flatMap(([note, tags]) => (tags.includes(tag) ? [note] : [])).toSorted()
}

export class App extends Context.Service<App>()("App", {
  make: Effect.gen(function* () {
    const notes = yield* Notes
    const changelog = yield* Changelog.Changelog
    const writer = yield* DurableWriter.DurableWriter
    const tags = new Tags()
    const follower = yield* Follower.make({
      name: "tags",
      version: "1",
      scope,
      queue: yield* DirtyQueue.DirtyQueue,
      reader: ContentReader.fromLookup(({ path }) => Effect.sync(() => Option.fromUndefinedOr(notes.get(path)))),
      writer: tags.writer
    })
    yield* FollowerScheduler.FollowerScheduler.use((scheduler) => scheduler.run(follower))
    return {
      save: Effect.fn("App.save")(function* (title: string, text: string) {
        notes.set(title, text)
        yield* writer.write(changelog.record([{ op: "put", scope, path: Path.Path.make(title) }]))
      }),
      remove: Effect.fn("App.remove")(function* (title: string) {
        notes.delete(title)
        yield* writer.write(changelog.record([{ op: "delete", scope, path: Path.Path.make(title) }]))
      }),
      /** The notes with a tag, once everything that was saved before is in the index. */
      tagged: (tag: string) => Effect.map(CatchUp.awaitCaughtUp(follower), () => tags.notes(tag))
    }
  })
}) {
  static readonly layer = Layer.effect(App, App.make)
}
