import * as z from 'zod'
import { id, line, pageOf, paging, pathId, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { webhookLimit } from './webhook.ts'

const quota = (maximum: number, countedNoun: string, example: number | null) =>
  z
    .int32()
    .min(0)
    .max(maximum)
    .nullable()
    .meta({ description: `Maximum number of ${countedNoun}; null for the default of the platform`, example })

/** Quotas of an organisation. A quota that is null uses the default of the platform (`PLAT_QUOTA_…`). */
export const OrganisationQuotas = z
  .object({
    clusters: quota(100_000, 'clusters', 500),
    users: quota(100_000, 'users', null),
    webhooks: quota(webhookLimit, 'webhooks', null),
    activeJobs: quota(10_000_000, 'queued and running jobs', null),
  })
  .meta({ id: 'OrganisationQuotas' })

/** A tenant of the platform. */
export const Organisation = z
  .object({
    id: id('org'),
    name: z.string().max(100).meta({ example: 'Acme' }),
    isPlatform: z.boolean().meta({ description: 'Whether setup created this organisation', example: false }),
    createdAt: timestamp,
    quotas: OrganisationQuotas,
  })
  .meta({ id: 'Organisation' })

export const OrganisationCreation = z
  .strictObject({ name: line(1, 100).meta({ description: 'Unique on the platform', example: 'Acme' }) })
  .meta({ id: 'OrganisationCreation' })

/** A change of an organisation. Omitted quotas do not change. */
export const OrganisationUpdate = z
  .strictObject({ quotas: OrganisationQuotas.partial().strict().optional() })
  .meta({ id: 'OrganisationUpdate' })

const usage = z.object({
  used: z.int().min(0).meta({ example: 12 }),
  limit: z.int().min(0).meta({ description: 'May be lower than `used` if the quota was lowered', example: 500 }),
})

/** How much of each quota an organisation uses. */
export const OrganisationUsage = z
  .object({
    clusters: usage,
    users: usage,
    webhooks: usage,
    activeJobs: usage.meta({ description: 'Queued and running jobs. The end of a job counts within seconds' }),
  })
  .meta({ id: 'OrganisationUsage' })

export type Organisation = z.infer<typeof Organisation>
export type OrganisationQuotas = z.infer<typeof OrganisationQuotas>
export type OrganisationUpdate = z.infer<typeof OrganisationUpdate>
export type OrganisationUsage = z.infer<typeof OrganisationUsage>
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

export const updateOrganisation = createRoute({
  method: 'patch',
  path: '/api/v1/platform/organisations/{id}',
  access: 'platform:admin',
  tags: ['Organisations'],
  summary: 'Change the quotas of an organisation',
  description:
    'A lowered quota removes nothing: it refuses new resources until fewer exist. Both the audit trail of the organisation and that of the caller record the change.',
  request: { params: z.object({ id: pathId('org') }), body: jsonBody(OrganisationUpdate) },
  responses: { 200: { description: 'The organisation', content: json(Organisation) } },
  errors: ['organisation_not_found', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})

export const getOrganisationUsage = createRoute({
  method: 'get',
  path: '/api/v1/organisation/usage',
  access: 'user',
  tags: ['Organisations'],
  summary: 'How much of its quotas the caller’s organisation uses',
  description: 'Requests beyond a quota return 409 `limit_reached` with `limit` and `used`.',
  responses: { 200: { description: 'The usage', content: json(OrganisationUsage) } },
  capabilities: ['table:read'],
})

const maximumTokenLifetimeDays = 3650

const lifetimeDays = z.int32().min(1).max(maximumTokenLifetimeDays).nullable()

/** Settings of an organisation. A change of token lifetimes applies to API tokens that are created from then on. */
export const OrganisationSettings = z
  .object({
    maxTokenLifetimeDays: lifetimeDays.meta({
      description: 'The longest lifetime of a new API token; null for no limit',
      example: 365,
    }),
    defaultTokenLifetimeDays: lifetimeDays.meta({
      description:
        'The lifetime of an API token without `expiresAt`; null if it never expires. Never longer than the maximum',
      example: 90,
    }),
    jobRetentionDays: z.int32().min(1).max(3650).meta({
      description:
        'Number of days after its end when a job is removed with its output; also applies to jobs that have already ended. Batches and their counts are kept',
      example: 90,
    }),
  })
  .meta({ id: 'OrganisationSettings' })

/** A change of organisation settings. Omitted settings do not change. */
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
