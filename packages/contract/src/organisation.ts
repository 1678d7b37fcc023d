import * as z from 'zod'
import { id, line, pageOf, paging, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'

/** A tenant of the platform. */
export const Organisation = z
  .object({
    id: id('org'),
    name: z.string().max(100).meta({ example: 'Acme' }),
    isPlatform: z.boolean().meta({ description: 'Whether setup created this organisation', example: false }),
    createdAt: timestamp,
  })
  .meta({ id: 'Organisation' })

export const OrganisationCreation = z
  .strictObject({ name: line(1, 100).meta({ description: 'Unique on the platform', example: 'Acme' }) })
  .meta({ id: 'OrganisationCreation' })

export type Organisation = z.infer<typeof Organisation>
export type OrganisationCreation = z.infer<typeof OrganisationCreation>

export const listOrganisations = createRoute({
  method: 'get',
  path: '/api/v1/platform/organisations',
  access: 'platform:admin',
  tags: ['Organisations'],
  summary: 'The organisations of the platform, newest first',
  request: { query: z.strictObject(paging) },
  responses: { 200: { description: 'A page of organisations', content: json(pageOf(Organisation)) } },
  capabilities: ['table:read'],
})

export const createOrganisation = createRoute({
  method: 'post',
  path: '/api/v1/platform/organisations',
  access: 'platform:admin',
  tags: ['Organisations'],
  summary: 'Create an organisation',
  description: 'The organisation has no users: create its first OrgAdmin with `organisationId` at POST /api/v1/users.',
  request: { body: jsonBody(OrganisationCreation) },
  responses: { 201: { description: 'The organisation', content: json(Organisation) } },
  errors: ['organisation_name_taken', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})
