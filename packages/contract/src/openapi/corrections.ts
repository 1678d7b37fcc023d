import type { OpenAPIHono } from '@hono/zod-openapi'

type Schema = Record<string, unknown>

// zod-to-openapi omits formats and bounds of integers and prints `z.int32()` as a number (issue 398).
function correctInteger(schema: Schema): Schema {
  const types = [schema['type']].flat()
  const isInt32 = types.includes('number')
  if (schema['format'] !== undefined || !(isInt32 || types.includes('integer'))) return schema
  const [minimum, maximum] = isInt32 ? [-(2 ** 31), 2 ** 31 - 1] : [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]
  const integers = types.map((type) => (type === 'number' ? 'integer' : type))
  const type = integers.length === 1 ? integers[0] : integers
  const format = Number(schema['maximum'] ?? maximum) < 2 ** 31 ? 'int32' : 'int64'
  return { minimum, maximum, ...schema, type, format }
}

// The generator does not add `additionalProperties: false`, because it does not distinguish responses from requests.
const closeObject = (schema: Schema): Schema =>
  schema['properties'] === undefined ? schema : { additionalProperties: false, ...schema }

const literals = new Set(['example', 'default', 'enum'])

/** Place of a value in the document. `shared` has the names of components that both requests and responses use. */
interface Position {
  shared: ReadonlySet<string>
  isResponse: boolean
  /** Whether the object maps names to schemas, and is not a schema itself. */
  isMap?: boolean
}

const nameOf = ($ref: string): string => $ref.slice($ref.lastIndexOf('/') + 1)

function correctValue(value: unknown, position: Position): unknown {
  const { shared, isResponse, isMap = false } = position
  if (Array.isArray(value)) return value.map((item) => correctValue(item, { shared, isResponse }))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, member]) => [name, correctMember(name, member, position)])
  const schema = Object.fromEntries(members)
  if (isMap) return schema
  return isResponse ? closeObject(correctInteger(schema)) : correctInteger(schema)
}

function correctMember(name: string, member: unknown, { shared, isResponse, isMap = false }: Position): unknown {
  if (literals.has(name) && !isMap) return member
  if (name === '$ref' && typeof member === 'string') {
    return isResponse && shared.has(nameOf(member)) ? `${member}Output` : member
  }
  return correctValue(member, { shared, isResponse: isResponse || name === 'responses', isMap: name === 'properties' })
}

// Returns the names of all components that a part of the document references, directly or indirectly.
function componentsOf(part: unknown, schemas: Record<string, unknown>, foundNames = new Set<string>()): Set<string> {
  for (const [, name = ''] of JSON.stringify(part).matchAll(/#\/components\/schemas\/(\w+)/g)) {
    if (!foundNames.has(name)) componentsOf(schemas[name], schemas, foundNames.add(name))
  }
  return foundNames
}

/**
 * Corrects the document of `@hono/zod-openapi` 1. A component that both requests and responses use gets a closed copy
 * for responses, `<name>Output`. Schemas avoid three other defects of `@asteasolutions/zod-to-openapi` 9: it prints the
 * flags of a pattern, makes a component with `.nullable()` nullable everywhere (issue 258; use `z.union`), and loses the
 * reference to a component in a wrapper with metadata (issue 376).
 */
export function correct({ paths = {}, components = {}, ...document }: ReturnType<OpenAPIHono['getOpenAPI31Document']>) {
  const schemas = components.schemas ?? {}
  const operations = Object.values(paths).flatMap((path) => [path.get, path.post, path.put, path.patch, path.delete])
  const requestComponents = componentsOf(
    operations.map((operation) => operation?.requestBody),
    schemas,
  )
  const responseComponents = componentsOf(
    operations.map((operation) => operation?.responses),
    schemas,
  )
  const sharedNames = new Set([...requestComponents].filter((name) => responseComponents.has(name)))
  const correctedSchemas = Object.entries(schemas).flatMap(([name, schema]) => [
    [name, correctValue(schema, { shared: sharedNames, isResponse: !requestComponents.has(name) })],
    ...(sharedNames.has(name)
      ? [[`${name}Output`, correctValue(schema, { shared: sharedNames, isResponse: true })]]
      : []),
  ])
  return {
    ...document,
    paths: correctValue(paths, { shared: sharedNames, isResponse: false }),
    components: { ...components, schemas: Object.fromEntries(correctedSchemas) },
  }
}
