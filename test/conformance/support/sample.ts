import { type OpenApi, resolve, type Schema } from './document.ts'

const texts: Record<string, string> = {
  uri: 'https://platform.example.com',
  email: 'conformance@example.com',
  'date-time': '2026-01-01T00:00:00.000Z',
}

export const sampleOf = (document: OpenApi, schema: Schema): object =>
  Object.fromEntries(
    Object.entries<Schema>(resolve(document, schema)['properties'] ?? {}).map(([name, property]) => [
      name,
      valueOf(document, property),
    ]),
  )

function valueOf(document: OpenApi, schema: Schema): unknown {
  const { example, enum: named, anyOf, type: types, items, format, minLength } = resolve(document, schema)
  const explicitExample = example ?? named?.[0]
  if (explicitExample !== undefined) return explicitExample
  if (anyOf) return valueOf(document, anyOf[0])
  const [type] = [types].flat()
  if (type === 'array') return [valueOf(document, items)]
  if (type === 'object') return sampleOf(document, schema)
  if (type === 'string') return texts[format] ?? 'x'.repeat(minLength ?? 43)
  return type === 'boolean' ? true : 1
}
