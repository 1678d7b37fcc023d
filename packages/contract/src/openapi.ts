import { createDocument, type ZodOpenApiOverride, type ZodOpenApiPathsObject } from 'zod-openapi'
import { routes } from './index.ts'
import { InvokeScriptPayload } from './job.ts'
import { operationOf } from './openapi/operation.ts'
import { description, tags } from './openapi/prose.ts'

const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description:
      'An access token of `POST /api/v1/auth/login`, valid for 15 minutes, signed with EdDSA and checked as RFC8725 asks; or an API token.',
  },
  relayToken: {
    type: 'http',
    scheme: 'Relay',
    description:
      'A JWT that the relay signs with its own Ed25519 key, for one request: it lives for 60 seconds at most, works once and carries the hash of the body. Checked as RFC8725 asks.',
  },
} as const

function paths(): ZodOpenApiPathsObject {
  const items: ZodOpenApiPathsObject = {}
  for (const route of routes) {
    const { path, method } = route.endpoint
    items[path] = { ...items[path], [method.toLowerCase()]: operationOf(route) }
  }
  return items
}

/** Says what zod leaves out: the width of integers; and leaves out what says nothing: that property names are text. */
const refine: ZodOpenApiOverride = ({ jsonSchema }) => {
  if (jsonSchema.type === 'integer') jsonSchema.format = (jsonSchema.maximum ?? Infinity) > 2 ** 31 ? 'int64' : 'int32'
  delete jsonSchema.propertyNames
}

/** The whole contract as an OpenAPI 3.1 document, built from the schemas that also validate requests. */
export const openApiDocument = () =>
  createDocument(
    {
      openapi: '3.1.1',
      info: {
        title: 'Platform Management Service',
        version: '1.0.0',
        description,
        license: { name: 'All rights reserved', identifier: 'LicenseRef-All-Rights-Reserved' },
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
      paths: paths(),
      components: { securitySchemes, schemas: { InvokeScriptPayload } },
    },
    { override: refine },
  )
