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

const maximumTokenLifetimeDays = 3650

const lifetimeDays = z.int32().min(1).max(maximumTokenLifetimeDays).nullable()

/** Settings of an organisation. A change applies to API tokens that are created from then on. */
export const OrganisationSettings = z
  .object({
    maxTokenLifetimeDays: lifetimeDays.meta({
      description: 'The longest lifetime of a new API token; null for no limit',
      example: 365,
    }),
    defaultTokenLifetimeDays: lifetimeDays.meta({
      description:
        'The lifetime of an API token without `expiresAt`; null if it never expires. At most the maximum applies',
      example: 90,
    }),
  })
  .meta({ id: 'OrganisationSettings' })

/** A change of organisation settings. Settings that are not given stay as they are. */
export const OrganisationSettingsUpdate = OrganisationSettings.partial()
  .strict()
  .meta({ id: 'OrganisationSettingsUpdate' })

export type OrganisationSettings = z.infer<typeof OrganisationSettings>
export type OrganisationSettingsUpdate = z.infer<typeof OrganisationSettingsUpdate>

const settings = { path: '/api/v1/organisation/settings', tags: ['Organisations'] } as const

export const getOrganisationSettings = createRoute({
  ...settings,
  method: 'get',
  access: 'user',
  summary: 'The settings of the caller’s organisation',
  responses: { 200: { description: 'The settings', content: json(OrganisationSettings) } },
  capabilities: ['table:read'],
})

export const updateOrganisationSettings = createRoute({
  ...settings,
  method: 'patch',
  access: 'users:admin',
  summary: 'Change the settings of the caller’s organisation',
  request: { body: jsonBody(OrganisationSettingsUpdate) },
  responses: { 200: { description: 'The new settings', content: json(OrganisationSettings) } },
  errors: ['conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})
