import * as z from 'zod'
import { id, line, pageOf, paging, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'

/** A tenant (D13). Setup makes the one platform organisation; its name is unique on the platform. */
export const Organisation = z
  .object({
    id: id('org'),
    name: z.string().max(100).meta({ example: 'Acme' }),
    isPlatform: z.boolean().meta({ description: 'Whether it is the one that setup created', example: false }),
    createdAt: timestamp,
  })
  .meta({ id: 'Organisation' })

export const OrganisationCreation = z
  .object({ name: line(1, 100).meta({ description: 'Unique on the platform', example: 'Acme' }) })
  .meta({ id: 'OrganisationCreation' })

export type Organisation = z.infer<typeof Organisation>
export type OrganisationCreation = z.infer<typeof OrganisationCreation>

export const listOrganisations = endpoint({
  method: 'GET',
  path: '/api/v1/platform/organisations',
  access: 'platform:admin',
  tag: 'Organisations',
  summary: 'The organisations of the platform, newest first',
  request: { query: z.object(paging) },
  responses: { 200: { description: 'A page of organisations', schema: pageOf(Organisation) } },
  uses: ['table:read'],
})

export const createOrganisation = endpoint({
  method: 'POST',
  path: '/api/v1/platform/organisations',
  access: 'platform:admin',
  tag: 'Organisations',
  summary: 'Create an organisation',
  description: 'It has no users yet: create its first OrgAdmin with `organisationId` at POST /api/v1/users.',
  request: { body: OrganisationCreation },
  responses: { 201: { description: 'The organisation', schema: Organisation } },
  fails: ['organisation_name_taken', 'conflict'],
  uses: ['table:read', 'table:write', 'queue:events'],
})
