import type { OpenAPIHono } from '@hono/zod-openapi'

/**
 * Corrections of the document that `@hono/zod-openapi` 1 generates. Schemas avoid three other defects of its generator,
 * `@asteasolutions/zod-to-openapi` 9: it prints the flags of a pattern, makes a component with `.nullable()` nullable
 * everywhere (issue 258; use `z.union`), and loses the reference to a component in a wrapper with metadata (issue 376).
 */

type Schema = Record<string, unknown>

/** Adds formats and bounds of integers; `z.int32()` is even printed as a number (zod-to-openapi, issue 398). */
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

/**
 * Adds `additionalProperties: false` to the objects of responses; the generator does not distinguish them from
 * requests.
 */
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

/** The names of all components that a part of the document references, directly or indirectly. */
function componentsOf(part: unknown, schemas: Record<string, unknown>, found = new Set<string>()): Set<string> {
  for (const [, name = ''] of JSON.stringify(part).matchAll(/#\/components\/schemas\/(\w+)/g)) {
    if (!found.has(name)) componentsOf(schemas[name], schemas, found.add(name))
  }
  return found
}

/** The corrected document. */
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
