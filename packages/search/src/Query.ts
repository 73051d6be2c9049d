/**
 * What a user may type into a search box, as data.
 *
 * {@link parse} reads any string: it answers a {@link Query} or refuses with one
 * clear line. {@link toFts5} turns a query into a full-text expression in which
 * everything the user typed stands inside string literals, so no input reaches
 * FTS5 as syntax.
 *
 * - `red fox`: both words, anywhere in a passage
 * - `"red fox"`: the words in this order, next to each other
 * - `fo*`: words that start with `fo`
 * - `-fox`, `-"red fox"`, `NOT fox`: not in the passage
 * - `fox OR wolf den`: one of the words beside an `OR`, and `den`
 * - `fox AND wolf`: as `fox wolf`
 *
 * Everything else is text. `OR`, `AND` and `NOT` in capitals are operators only
 * between two terms and words elsewhere, a quote without its partner is a space,
 * and a term is searched as the words in it: `foo_bar`, `col:val` and `a.b(c)`
 * as phrases.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A word or a phrase.
 *
 * @since 0.1.0
 * @category models
 */
export interface Term {
  /** As typed, without quotes and operators; has at least one letter or digit. */
  readonly text: string
  /** Whether the last word stands for all words that start with it. */
  readonly prefix: boolean
}

/**
 * A passage matches when it has one term of every group in `all` and no term of
 * `none`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Query {
  /** At least one group, each of at least one term. */
  readonly all: ReadonlyArray<ReadonlyArray<Term>>
  readonly none: ReadonlyArray<Term>
}

/**
 * The longest query that is read, in UTF-16 code units.
 *
 * @since 0.1.0
 * @category models
 */
export const maxLength = 1_000

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Why a query is refused: there is nothing in it; it has no letter or digit, so
 * the index has no word for it; it is too long (both numbers in UTF-16 code
 * units); it says only what not to find.
 *
 * @since 0.1.0
 * @category errors
 */
export const QueryReason = Schema.TaggedUnion({
  Empty: {},
  NotSearchable: {},
  TooLong: { length: Schema.Finite, limit: Schema.Finite },
  OnlyExclusions: {}
})

/**
 * @since 0.1.0
 * @category errors
 */
export type QueryReason = typeof QueryReason.Type

/**
 * A query that cannot be searched. The message is one line for its author.
 *
 * @since 0.1.0
 * @category errors
 */
export class QueryError extends Schema.TaggedError<QueryError>("@strata/search/QueryError")("QueryError", {
  reason: QueryReason
}) {
  override get message(): string {
    return QueryReason.match(this.reason, {
      Empty: () => "the query is empty",
      NotSearchable: () => "the query has no letter or digit to search for",
      TooLong: ({ length, limit }) => `the query has ${length} characters, the limit is ${limit}`,
      OnlyExclusions: () => "the query says only what not to find: add a word to find"
    })
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Reads what a user typed. Control characters count as spaces.
 *
 * @since 0.1.0
 * @category constructors
 */
export const parse = (input: string): Result.Result<Query, QueryError> => {
  const text = input.replace(/\p{Cc}/gu, " ").trim()
  if (text === "") return refuse({ _tag: "Empty" })
  if (text.length > maxLength) return refuse({ _tag: "TooLong", length: text.length, limit: maxLength })
  const query = group(resolveOperators(tokenize(text)))
  if (query.all.length > 0) return Result.succeed(query)
  return refuse(query.none.length > 0 ? { _tag: "OnlyExclusions" } : { _tag: "NotSearchable" })
}

// ---------------------------------------------------------------------------------------------------------------------
// encoding
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The query as the right side of `MATCH`, for a table whose tokenizer is
 * `unicode61` with its default categories, possibly under `porter`.
 *
 * @since 0.1.0
 * @category encoding
 */
export const toFts5 = (query: Query): string => {
  const all = query.all.map((terms) => (terms.length === 1 ? literal(terms[0]!) : either(terms))).join(" AND ")
  return query.none.length === 0 ? all : `(${all}) NOT ${either(query.none)}`
}

const either = (terms: ReadonlyArray<Term>): string => `(${terms.map(literal).join(" OR ")})`

const literal = (term: Term): string => `"${term.text.replaceAll('"', '""')}"${term.prefix ? "*" : ""}`

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const refuse = (reason: QueryReason) => Result.fail(new QueryError({ reason }))

type Operator = "OR" | "AND" | "NOT"

type Token =
  | { readonly _tag: "Operator"; readonly operator: Operator }
  | { readonly _tag: "Term"; readonly term: Term; readonly excluded: boolean }

/** A phrase, or a run of anything but space and quotes; a quote without a partner is in neither. */
const lexeme = /(-?)"([^"]*)"(\*?)|([^\s"]+)/g

/** What `unicode61` takes for a part of a word. */
const searchable = /[\p{L}\p{N}\p{Co}]/u

const tokenize = (text: string): ReadonlyArray<Token> => {
  const tokens: Array<Token> = []
  for (const [, minus, phrase, star, word] of text.matchAll(lexeme)) {
    if (word === "OR" || word === "AND" || word === "NOT") tokens.push({ _tag: "Operator", operator: word })
    else if (word !== undefined) tokens.push(wordToken(word))
    else tokens.push(termToken(phrase ?? "", star === "*", minus === "-"))
  }
  return tokens.filter((token) => token._tag === "Operator" || searchable.test(token.term.text))
}

/** Only one dash excludes: `--flag` is the name of an option. */
const wordToken = (word: string): Token => {
  const excluded = /^-[^-]/.test(word)
  const prefix = /[\p{L}\p{N}\p{Co}]\*+$/u.test(word)
  return termToken(word.slice(excluded ? 1 : 0).replace(/\*+$/, ""), prefix, excluded)
}

const termToken = (text: string, prefix: boolean, excluded: boolean): Token => ({
  _tag: "Term",
  term: { text, prefix },
  excluded
})

interface Clause {
  readonly term: Term
  readonly excluded: boolean
  /** Whether it is an alternative to the clause before it. */
  readonly or: boolean
}

const resolveOperators = (tokens: ReadonlyArray<Token>): ReadonlyArray<Clause> => {
  const clauses: Array<Clause> = []
  let pending: Operator | undefined
  tokens.forEach((token, index) => {
    if (token._tag === "Operator") {
      if (joins(token.operator, tokens[index - 1], tokens[index + 1])) pending = token.operator
      else clauses.push({ term: { text: token.operator, prefix: false }, excluded: false, or: false })
    } else {
      clauses.push({ term: token.term, excluded: token.excluded || pending === "NOT", or: pending === "OR" })
      pending = undefined
    }
  })
  return clauses
}

const joins = (operator: Operator, left: Token | undefined, right: Token | undefined): boolean =>
  left?._tag === "Term" && right?._tag === "Term" && (operator !== "OR" || (!left.excluded && !right.excluded))

const group = (clauses: ReadonlyArray<Clause>): Query => {
  const all: Array<Array<Term>> = []
  const none: Array<Term> = []
  for (const { term, excluded, or } of clauses) {
    if (excluded) none.push(term)
    else if (or && all.length > 0) all.at(-1)!.push(term)
    else all.push([term])
  }
  return { all, none }
}
