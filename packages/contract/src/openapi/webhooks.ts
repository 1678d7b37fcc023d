import { type ApiDocument, nameOf, type Schema } from '../docs/document.ts'
import { CloudEvent } from '../event.ts'
import { eventCatalog, openSchemaOf } from '../event-catalog.ts'

interface JsonSchema {
  $defs?: Record<string, unknown>
  [keyword: string]: unknown
}

const $ref = '#/components/schemas/CloudEvent'

/** Headers of a delivery, as Standard Webhooks defines them. */
export const deliveryHeaders = [
  {
    name: 'webhook-id',
    in: 'header',
    required: true,
    description: 'Identifier of the event, the same for every attempt. Ignore a delivery whose id was received before',
    schema: { type: 'string', maxLength: 40, example: 'evt_01jd8w5k3zr9x2m4c7t6v0b1qa' },
  },
  {
    name: 'webhook-timestamp',
    in: 'header',
    required: true,
    description: 'Time of the attempt in seconds since 1970. Reject a time that is more than five minutes away',
    schema: { type: 'string', maxLength: 20, example: '1795253400' },
  },
  {
    name: 'webhook-signature',
    in: 'header',
    required: true,
    description:
      'One or more signatures, separated by spaces: `v1,` and the Base64 of the HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>`. The key is the Base64 after `whsec_` in the secret of the webhook. Accept the delivery if one signature matches',
    schema: { type: 'string', maxLength: 1000, example: 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=' },
  },
] as const

const responses = {
  '2XX': { description: 'Received. Respond within ten seconds; the body is ignored' },
  410: { description: 'The receiver wants no more events: the webhook is disabled' },
  default: { description: 'Not received: the platform makes up to eight attempts in about a day' },
}

/** Adds a webhook for each event of the catalog. */
export function addWebhooks(document: ApiDocument): void {
  document.components.schemas[nameOf($ref)] = withoutDefinitions(openSchemaOf(CloudEvent))
  document.webhooks = Object.fromEntries(
    eventCatalog().items.map(({ type, description, schema }) => {
      const data = withoutDefinitions(schema)
      const members: Schema = {
        type: 'object',
        properties: {
          type: { const: type, description: 'Type of the event' },
          data: { description: 'Data of the event', ...data },
        },
        required: ['type', 'data'],
      }
      const content = { 'application/json': { schema: { allOf: [{ $ref }, members] } } }
      const operation = {
        operationId: operationIdOf(type),
        tags: ['Webhooks'],
        summary: type,
        description,
        security: [],
        parameters: deliveryHeaders.map(({ name }) => ({ $ref: `#/components/parameters/${name}` })),
        requestBody: { required: true, content },
        responses,
      }
      return [type, { post: operation }]
    }),
  )
}

/** Removes `$schema` and replaces references to `$defs`, because both apply to a whole document. */
function withoutDefinitions({ $defs = {}, ...schema }: JsonSchema): Schema {
  const inline = (name: string, value: unknown): unknown =>
    name !== '' && isReference(value) ? $defs[nameOf(value.$ref)] : value
  const text = JSON.stringify({ root: { ...schema, $schema: undefined } }, inline)
  return JSON.parse(text).root
}

const isReference = (value: unknown): value is { $ref: string } =>
  typeof value === 'object' && value !== null && '$ref' in value

/** `platform.cluster.status_changed` → `onClusterStatusChanged`. */
const operationIdOf = (type: string): string =>
  type.replace('platform', 'on').replaceAll(/[._]([a-z])/g, (_, letter: string) => letter.toUpperCase())
