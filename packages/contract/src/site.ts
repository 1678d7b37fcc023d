import * as z from 'zod'
import { id, line, listOf, pathId, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'

/** The most sites that an organisation may have. */
export const siteLimit = 1000

/** A place that clusters stand in (D18). */
export const Site = z
  .object({ id: id('site'), name: z.string().max(64).meta({ example: 'Berlin' }), createdAt: timestamp })
  .meta({ id: 'Site' })
export const SiteCreation = z.object({ name: line(1, 64).meta({ example: 'Berlin' }) }).meta({ id: 'SiteCreation' })

export type Site = z.infer<typeof Site>

export const listSites = endpoint({
  method: 'GET',
  path: '/api/v1/sites',
  access: 'clusters:read',
  tag: 'Sites',
  summary: 'The sites of the organisation, newest first',
  responses: { 200: { description: 'Sites', schema: listOf(Site, siteLimit) } },
  uses: ['table:read'],
})

export const createSite = endpoint({
  method: 'POST',
  path: '/api/v1/sites',
  access: 'clusters:write',
  tag: 'Sites',
  summary: 'Create a site',
  request: { body: SiteCreation },
  responses: { 201: { description: 'The site', schema: Site } },
  fails: ['site_name_taken', 'limit_reached'],
  uses: ['table:write', 'queue:events'],
})

export const deleteSite = endpoint({
  method: 'DELETE',
  path: '/api/v1/sites/{id}',
  access: 'clusters:write',
  tag: 'Sites',
  summary: 'Remove a site that no cluster belongs to',
  request: { params: z.object({ id: pathId('site') }) },
  responses: { 204: { description: 'Removed' } },
  fails: ['site_not_found', 'site_in_use'],
  uses: ['table:read', 'table:write', 'queue:events'],
})
