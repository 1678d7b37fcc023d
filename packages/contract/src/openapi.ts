import { OpenAPIHono } from '@hono/zod-openapi'
import { ErrorBody } from './common.ts'
import { routes } from './index.ts'
import { BatchJob, InvokeScriptPayload } from './job.ts'
import type { ApiDocument } from './docs/document.ts'
import { correct } from './openapi/corrections.ts'
import { Describer } from './openapi/describe.ts'
import { addExamples } from './openapi/examples.ts'
import { idempotencyKey, operationOf } from './openapi/operation.ts'
import { description, tags } from './openapi/prose.ts'
import { errorResponses, headers } from './openapi/responses.ts'
import { addWebhooks, deliveryHeaders } from './openapi/webhooks.ts'

const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description:
      'An access token from `POST /api/v1/auth/login`, valid for 15 minutes, signed with EdDSA and verified as RFC8725 requires; or an API token.',
  },
  relayToken: {
    // Client generators support only the HTTP schemes basic and bearer, so this scheme is declared as an API key.
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description:
      '`Relay <token>`: a JWT that the relay signs with its own Ed25519 key for one request. It is valid for at most 60 seconds and contains the hash of the body. `POST /relay/heartbeat` and `POST /relay/goodbye` accept a token once; a repeated request about a job changes nothing. Verified as RFC8725 requires.',
  },
} as const

// An inline object would not compile, because the generator's type lacks `identifier`, which OpenAPI 3.1 added.
const license = { name: 'All rights reserved', identifier: 'LicenseRef-All-Rights-Reserved' }

/**
 * Returns the contract as an OpenAPI 3.1 document, built from the schemas that also validate requests. `exampleCommands`
 * contains one `plat` command for each operation that has a command.
 */
export function openApiDocument(exampleCommands: Readonly<Record<string, string>>): ApiDocument {
  const app = new OpenAPIHono()
  const registry = app.openAPIRegistry
  for (const [name, scheme] of Object.entries(securitySchemes)) {
    registry.registerComponent('securitySchemes', name, scheme)
  }
  for (const [name, header] of Object.entries(headers)) registry.registerComponent('headers', name, header)
  for (const [name, response] of errorResponses) registry.registerComponent('responses', name, response)
  for (const parameter of [idempotencyKey, ...deliveryHeaders])
    registry.registerComponent('parameters', parameter.name, parameter)
  // These schemas are registered here, because operations refer to them only by name.
  registry.register('Error', ErrorBody)
  registry.register('InvokeScriptPayload', InvokeScriptPayload)
  registry.register('BatchJob', BatchJob)
  for (const route of routes) registry.registerPath(operationOf(route, exampleCommands[route.operationId]))
  const correctedDocument = correct(
    app.getOpenAPI31Document({
      openapi: '3.1.1',
      info: {
        title: 'Platform Management Service',
        version: '1.0.0',
        description,
        license,
      },
      servers: [
        {
          url: '/',
          description: 'The platform that serves this document, local or in production',
          'x-internal': false,
        },
      ],
      tags,
      security: [{ bearer: [] }],
    }),
  )
  const document: ApiDocument = JSON.parse(JSON.stringify(correctedDocument))
  addWebhooks(document)
  new Describer().describeDocument(document)
  addExamples(document)
  return document
}
