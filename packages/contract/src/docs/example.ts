import { type ApiDocument, type Entry, jsonSchemaOf, parametersOf, resolved, type Schema, typeOf } from './document.ts'

const exampleTexts: Record<string, string> = {
  'date-time': '2026-11-21T09:30:00.000Z',
  email: 'admin@example.com',
  uri: 'https://platform.example.com',
}

function exampleText({ format, minLength = 0 }: Schema): string {
  return exampleTexts[format ?? ''] ?? '…'.padEnd(minLength, '…')
}

// Optional fields without an example in the contract would clutter the sample.
const isShown = (document: ApiDocument, schema: Schema, required: boolean): boolean =>
  required || resolved(document, schema).example !== undefined

function exampleObject(document: ApiDocument, { properties = {}, required = [] }: Schema): Record<string, unknown> {
  const shown = Object.entries(properties).flatMap(([name, property]) =>
    property && isShown(document, property, required.includes(name)) ? [[name, exampleOf(document, property)]] : [],
  )
  return Object.fromEntries(shown)
}

/** Builds an example value from the examples, defaults and enums of a schema and its members. */
export function exampleOf(document: ApiDocument, schema: Schema): unknown {
  const resolvedSchema = resolved(document, schema)
  const { example, default: fallback, enum: named, anyOf, items } = resolvedSchema
  const given = example ?? fallback ?? named?.[0]
  if (given !== undefined) return given
  const [first] = anyOf ?? []
  if (first) return exampleOf(document, first)
  const type = typeOf(resolvedSchema)
  if (type === 'array') return items ? [exampleOf(document, items)] : []
  if (type === 'object') return exampleObject(document, resolvedSchema)
  if (type === 'boolean') return true
  return type === 'string' ? exampleText(resolvedSchema) : Math.max(0, resolvedSchema.minimum ?? 0)
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

function authorization(document: ApiDocument, { security = [] }: Entry['operation']): string[] {
  const [name] = Object.keys(security[0] ?? {})
  if (name === undefined) return []
  const scheme = document.components.securitySchemes[name]?.scheme === 'bearer' ? 'Bearer' : 'Relay'
  return [`-H "Authorization: ${scheme} $TOKEN"`]
}

function url(document: ApiDocument, { path, operation }: Entry): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
    const parameter = parametersOf(document, operation).find(
      (candidate) => candidate.in === 'path' && candidate.name === name,
    )
    return parameter ? String(exampleOf(document, parameter.schema)) : whole
  })
  return `"$PLATFORM${filled}"`
}

/** The request of an operation as a curl command. */
export function curl(document: ApiDocument, entry: Entry): string {
  const schema = jsonSchemaOf(entry.operation.requestBody?.content)
  const body = schema && quoted(JSON.stringify(exampleOf(document, schema), null, 2))
  const words = [
    `curl ${entry.method === 'GET' ? '' : `-X ${entry.method} `}${url(document, entry)}`,
    ...authorization(document, entry.operation),
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`, `-d ${body}`]),
  ]
  return words.join(' \\\n  ')
}
