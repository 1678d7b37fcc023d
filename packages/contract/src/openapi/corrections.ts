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
const close = (schema: Schema): Schema =>
  schema['properties'] === undefined ? schema : { additionalProperties: false, ...schema }

const values = new Set(['example', 'default', 'enum'])

function corrected(value: unknown, isResponse: boolean, isMap = false): unknown {
  if (Array.isArray(value)) return value.map((each) => corrected(each, isResponse))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, member]) => [
    name,
    values.has(name) && !isMap ? member : corrected(member, isResponse || name === 'responses', name === 'properties'),
  ])
  const schema = Object.fromEntries(members)
  if (isMap) return schema
  return isResponse ? close(correctInteger(schema)) : correctInteger(schema)
}

// Names of all components that a part of the document references, directly or indirectly.
function componentsOf(part: unknown, schemas: Record<string, unknown>, found = new Set<string>()): Set<string> {
  for (const [, name = ''] of JSON.stringify(part).matchAll(/#\/components\/schemas\/(\w+)/g)) {
    if (!found.has(name)) componentsOf(schemas[name], schemas, found.add(name))
  }
  return found
}

/**
 * Corrects the document of `@hono/zod-openapi` 1. Schemas avoid three other defects of `@asteasolutions/zod-to-openapi`
 * 9: it prints the flags of a pattern, makes a component with `.nullable()` nullable everywhere (issue 258; use
 * `z.union`), and loses the reference to a component in a wrapper with metadata (issue 376).
 */
export function correct({ paths = {}, components = {}, ...document }: ReturnType<OpenAPIHono['getOpenAPI31Document']>) {
  const schemas = components.schemas ?? {}
  const operations = Object.values(paths).flatMap(({ post, put, patch }) => [post, put, patch])
  const requested = componentsOf(
    operations.map((operation) => operation?.requestBody),
    schemas,
  )
  const correctedSchemas = Object.entries(schemas).map(([name, schema]) => [
    name,
    corrected(schema, !requested.has(name)),
  ])
  return {
    ...document,
    paths: corrected(paths, false),
    components: { ...components, schemas: Object.fromEntries(correctedSchemas) },
  }
}
