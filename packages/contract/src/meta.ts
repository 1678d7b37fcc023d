import * as z from 'zod'
import { createRoute, json } from './endpoint.ts'
import { manifestSchemaPath } from './manifest.ts'
import { KeySet } from './relay.ts'

export const getOpenApi = createRoute({
  method: 'get',
  path: '/api/v1/openapi.json',
  access: 'public',
  tags: ['Platform'],
  summary: 'This contract as OpenAPI 3.1',
  responses: { 200: { description: 'The document', content: json(z.record(z.string(), z.unknown())) } },
})

export const getDocs = createRoute({
  method: 'get',
  path: '/docs',
  access: 'public',
  tags: ['Platform'],
  summary: 'The API reference as a page',
  responses: { 200: { description: 'The page', content: { 'text/html; charset=utf-8': {} } } },
})

export const getKeys = createRoute({
  method: 'get',
  path: '/.well-known/jwks.json',
  access: 'public',
  tags: ['Platform'],
  summary: 'Public keys that verify access tokens',
  responses: { 200: { description: 'The keys', content: json(KeySet) } },
  capabilities: ['table:read'],
})

export const getRelayProgram = createRoute({
  method: 'get',
  path: '/relay/relay.mjs',
  access: 'public',
  tags: ['Platform'],
  summary: 'The relay program, one file',
  responses: { 200: { description: 'JavaScript', content: { 'text/javascript; charset=utf-8': {} } } },
  capabilities: ['asset:relay'],
})

export const getManifestSchema = createRoute({
  method: 'get',
  path: manifestSchemaPath,
  access: 'public',
  tags: ['Modules'],
  summary: 'JSON Schema of module.json, version 1',
  responses: { 200: { description: 'JSON Schema 2020-12', content: json(z.record(z.string(), z.unknown())) } },
})
