import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as SchemaGetter from "effect/SchemaGetter"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaTransformation from "effect/SchemaTransformation"

/**
 * The JSON codec of a Schema in which everything `Redacted`, at whatever depth, is written as a marker. Effect's own
 * codec writes what is inside. What comes back is a `Redacted` without content, which refuses to give its value.
 */
export const make = <A>(schema: Schema.Codec<A, unknown>, marker: string): Schema.Codec<A, Schema.Json> =>
  Schema.toCodecJson(
    hasRedacted(schema.ast, new Set()) ? Schema.make<Schema.Codec<A, unknown>>(rewriter(marker)(schema.ast)) : schema
  )

// ---------------------------------------------------------------------------------------------------------------------
// finding
// ---------------------------------------------------------------------------------------------------------------------

const isRedacted = (ast: SchemaAST.AST): boolean => {
  const representation = SchemaAST.isDeclaration(ast) ? ast.annotations?.representation : undefined
  return Predicate.hasProperty(representation, "id") && representation.id === "effect/schema/Redacted"
}

const hasRedacted = (ast: SchemaAST.AST, seen: Set<SchemaAST.AST>): boolean => {
  if (seen.has(ast)) return false
  seen.add(ast)
  return isRedacted(ast) || children(ast).some((child) => hasRedacted(child, seen))
}

const children = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> => [
  ...members(ast),
  ...(ast.encoding ?? []).map((link) => link.to)
]

const members = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> => {
  switch (ast._tag) {
    case "Declaration":
      return ast.typeParameters
    case "Arrays":
      return [...ast.elements, ...ast.rest]
    case "Objects":
      return [...ast.propertySignatures, ...ast.indexSignatures].map(({ type }) => type)
    case "Union":
      return ast.types
    case "Suspend":
      return [ast.thunk()]
    default:
      return []
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// replacing
// ---------------------------------------------------------------------------------------------------------------------

type Rewrite = (ast: SchemaAST.AST) => SchemaAST.AST

/** A recursive Schema comes back to its own node: each is rewritten once. */
const rewriter = (marker: string): Rewrite => {
  const known = new WeakMap<SchemaAST.AST, SchemaAST.AST>()
  const rewrite: Rewrite = (ast) => {
    const found = known.get(ast)
    if (found !== undefined) return found
    const rewritten = isRedacted(ast) ? withoutContent(ast, marker) : withMembers(ast, rewrite)
    known.set(ast, rewritten)
    return rewritten
  }
  return rewrite
}

/** Written as the marker, and read, whatever the marker stands for, as a `Redacted` that has lost its content. */
const withoutContent = (ast: SchemaAST.AST, marker: string): SchemaAST.AST =>
  new SchemaAST.Declaration(
    [],
    () => (input, self, options) =>
      Redacted.isRedacted(input)
        ? Effect.succeed(input)
        : Effect.fail(new SchemaIssue.InvalidType(self, input, options)),
    { expected: "Redacted" },
    undefined,
    [
      new SchemaAST.Link(
        SchemaAST.unknown,
        new SchemaTransformation.Transformation(
          SchemaGetter.transform(lost),
          SchemaGetter.transform(() => marker)
        )
      )
    ],
    ast.context
  )

const lost = (): Redacted.Redacted<unknown> => {
  const redacted = Redacted.make<unknown>(undefined)
  Redacted.wipeUnsafe(redacted)
  return redacted
}

const withMembers = (ast: SchemaAST.AST, rewrite: Rewrite): SchemaAST.AST => {
  const { annotations, checks, context } = ast
  const encoding = rewriteEncoding(ast.encoding, rewrite)
  switch (ast._tag) {
    case "Declaration": {
      const { encodingChecks, encodingRun, run, typeParameters } = ast
      const rewritten = typeParameters.map(rewrite)
      return new SchemaAST.Declaration(
        rewritten,
        run,
        annotations,
        checks,
        encoding,
        context,
        encodingChecks,
        encodingRun
      )
    }
    case "Arrays": {
      const { elements, encodingChecks, isMutable, rest } = ast
      return new SchemaAST.Arrays(
        isMutable,
        elements.map(rewrite),
        rest.map(rewrite),
        annotations,
        checks,
        encoding,
        context,
        encodingChecks
      )
    }
    case "Objects": {
      const properties = ast.propertySignatures.map(
        ({ name, type }) => new SchemaAST.PropertySignature(name, rewrite(type))
      )
      const indexes = ast.indexSignatures.map(
        ({ parameter, type }) => new SchemaAST.IndexSignature(parameter, rewrite(type))
      )
      return new SchemaAST.Objects(properties, indexes, annotations, checks, encoding, context, ast.encodingChecks)
    }
    case "Union": {
      const { encodingChecks, options, types } = ast
      return new SchemaAST.Union(types.map(rewrite), options, annotations, checks, encoding, context, encodingChecks)
    }
    case "Suspend":
      return new SchemaAST.Suspend(() => rewrite(ast.thunk()), annotations, checks, encoding, context)
    default:
      return encoding === ast.encoding ? ast : withEncoding(ast, encoding)
  }
}

const rewriteEncoding = (
  encoding: SchemaAST.Encoding | undefined,
  rewrite: Rewrite
): SchemaAST.Encoding | undefined => {
  if (encoding === undefined) return undefined
  const [first, ...rest] = encoding
  const link = ({ to, transformation }: SchemaAST.Link) => new SchemaAST.Link(rewrite(to), transformation)
  return [link(first), ...rest.map(link)]
}

/** Nodes without members are of many classes, and differ in nothing but their class and annotations. */
const withEncoding = <A extends SchemaAST.AST>(ast: A, encoding: SchemaAST.Encoding | undefined): A =>
  Object.assign(Object.create(Object.getPrototypeOf(ast)), ast, { encoding })
