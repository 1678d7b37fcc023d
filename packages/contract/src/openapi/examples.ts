import { type ApiDocument, jsonOf, resolveSchema, type Schema, typeOf } from '../docs/document.ts'

/** Placeholder for a string without an example. Its schema or an entry of `texts` must have one. */
export const missingExample = '(example missing)'

/** Media type or operation → example of a body that is not JSON, or that no schema describes. */
const bodies: Readonly<Record<string, unknown>> = {
  'application/octet-stream': 'Linux\n',
  'application/x-ndjson': '{"id":"aud_01jd8w5k3zr9x2m4c7t6v0b1qa","seq":1,"action":"cluster.register"}\n',
  'text/csv; charset=utf-8':
    'id,seq,at,action\naud_01jd8w5k3zr9x2m4c7t6v0b1qa,1,2026-11-21T09:30:00.000Z,cluster.register\n',
  'text/html; charset=utf-8': '<!doctype html>\n',
  'text/javascript; charset=utf-8': '#!/usr/bin/env node\n',
  getOpenApi: { openapi: '3.1.1', info: { title: 'Platform Management Service', version: '1.0.0' } },
  getManifestSchema: { $id: 'urn:platform:schemas:module:v1', type: 'object' },
  getEventCatalog: {
    items: [
      {
        type: 'platform.webhook.tested',
        description: 'A test of a webhook. It is sent only to that webhook, regardless of its subscriptions.',
        schema: { type: 'object', properties: { webhookId: { type: 'string' } }, required: ['webhookId'] },
      },
    ],
  },
}

/** Adds an example to each request body, response body and webhook body that has none. */
export function addExamples(document: ApiDocument): void {
  for (const operation of Object.values(document.paths).flatMap((methods) => Object.values(methods))) {
    const { operationId = '', requestBody, responses = {} } = operation ?? {}
    const contents = [
      requestBody?.content,
      ...Object.values(responses).map((one) => ('$ref' in one ? {} : one.content)),
    ]
    for (const [type, media] of contents.flatMap((content) => Object.entries(content ?? {}))) {
      if (media === undefined || media.examples !== undefined) continue
      media.example = bodies[operationId] ?? bodies[type] ?? exampleOf(document, media.schema ?? {})
    }
  }
  for (const { post } of Object.values(document.webhooks ?? {})) {
    const media = jsonOf(post.requestBody?.content)
    if (media) media.example = exampleOfEvent(document, media.schema?.allOf ?? [])
  }
}

function exampleOfEvent(document: ApiDocument, schemas: readonly Schema[]): object {
  const event = Object.assign({}, ...schemas.map((schema) => exampleOf(document, schema)))
  const { moduleId, ...others }: Record<string, unknown> = event.data
  // The subject is the id of a resource of the event.
  const subject = moduleId ?? Object.values(others).find((value) => /^[a-z]+_01/.test(String(value)))
  return { ...event, ...(subject !== undefined && { subject }) }
}

// Optional members without an example would clutter the example.
const isShown = (document: ApiDocument, schema: Schema, isRequired: boolean): boolean =>
  isRequired || givenExample(resolveSchema(document, schema)) !== undefined

const givenExample = ({ example, examples = [] }: Schema): unknown => example ?? examples[0]

function exampleObject(document: ApiDocument, { properties = {}, required = [] }: Schema): Record<string, unknown> {
  const shownEntries = Object.entries(properties).flatMap(([name, property]) =>
    property && isShown(document, property, required.includes(name)) ? [[name, exampleOf(document, property)]] : [],
  )
  return Object.fromEntries(shownEntries)
}

/** Builds an example value from the examples, defaults and enums of a schema and its members. */
function exampleOf(document: ApiDocument, schema: Schema): unknown {
  const resolvedSchema = resolveSchema(document, schema)
  const { const: constant, default: fallback, enum: values, anyOf, items } = resolvedSchema
  const givenValue = givenExample(resolvedSchema) ?? constant ?? fallback ?? values?.[0]
  if (givenValue !== undefined) return givenValue
  const [firstSchema] = anyOf ?? []
  if (firstSchema) return exampleOf(document, firstSchema)
  const type = typeOf(resolvedSchema)
  if (type === 'array') return items ? [exampleOf(document, items)] : []
  if (type === 'object') return exampleObject(document, resolvedSchema)
  if (type === 'boolean') return true
  if (type === 'string') return missingExample
  return Math.max(0, resolvedSchema.minimum ?? 0)
}
