import * as z from 'zod'
import { endpoint } from './endpoint.ts'
import { manifestSchemaPath } from './manifest.ts'
import { KeySet } from './relay.ts'

/** What describes the platform itself: the contract, its reference page, its public keys, the relay program. */

export const getOpenApi = endpoint({
  method: 'GET',
  path: '/api/v1/openapi.json',
  access: 'public',
  tag: 'Platform',
  summary: 'This contract as OpenAPI 3.1',
  responses: { 200: { description: 'The document', schema: z.record(z.string(), z.unknown()) } },
})

export const getDocs = endpoint({
  method: 'GET',
  path: '/docs',
  access: 'public',
  tag: 'Platform',
  summary: 'The API reference as a page',
  responses: { 200: { description: 'The page', contentType: 'text/html; charset=utf-8' } },
})

export const getKeys = endpoint({
  method: 'GET',
  path: '/.well-known/jwks.json',
  access: 'public',
  tag: 'Platform',
  summary: 'Public keys that verify access tokens',
  responses: { 200: { description: 'The keys', schema: KeySet } },
  uses: ['table:read'],
})

export const getRelayProgram = endpoint({
  method: 'GET',
  path: '/relay/relay.mjs',
  access: 'public',
  tag: 'Platform',
  summary: 'The relay program, one file',
  responses: { 200: { description: 'JavaScript', contentType: 'text/javascript; charset=utf-8' } },
  uses: ['asset:relay'],
})

export const getManifestSchema = endpoint({
  method: 'GET',
  path: manifestSchemaPath,
  access: 'public',
  tag: 'Modules',
  summary: 'JSON Schema of module.json, version 1',
  responses: { 200: { description: 'JSON Schema 2020-12', schema: z.record(z.string(), z.unknown()) } },
})
