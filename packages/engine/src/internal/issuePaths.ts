import type * as Schema from "effect/Schema"
import type * as SchemaIssue from "effect/SchemaIssue"

/** Where a value is not of its Schema, as JSON pointers: what an issue says about a value can quote it. */
export const issuePaths = (error: Schema.SchemaError): ReadonlyArray<string> => [...new Set(leaves(error.issue, ""))]

const leaves = (issue: SchemaIssue.Issue, path: string): ReadonlyArray<string> => {
  switch (issue._tag) {
    case "Pointer":
      return leaves(issue.issue, path + issue.path.map(segment).join(""))
    case "Composite":
    case "AnyOf":
      return issue.issues.length === 0 ? [path] : issue.issues.flatMap((inner) => leaves(inner, path))
    case "Filter":
    case "Encoding":
      return leaves(issue.issue, path)
    default:
      return path === "" ? [] : [path]
  }
}

const segment = (key: PropertyKey): string => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`
