import * as z from 'zod'
import { id, line, listOf, pathId, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'

/** Maximum number of sites of an organisation. */
export const siteLimit = 1000

/** A named location of clusters. */
export const Site = z
  .object({ id: id('site'), name: z.string().max(64).meta({ example: 'Berlin' }), createdAt: timestamp })
  .meta({ id: 'Site' })
export const SiteCreation = z
  .strictObject({ name: line(1, 64).meta({ example: 'Berlin' }) })
  .meta({ id: 'SiteCreation' })

export type Site = z.infer<typeof Site>

export const listSites = createRoute({
  method: 'get',
  path: '/api/v1/sites',
  access: 'clusters:read',
  tags: ['Sites'],
  summary: 'The sites of the organisation, newest first',
  responses: { 200: { description: 'Sites', content: json(listOf(Site, siteLimit)) } },
  capabilities: ['table:read'],
})

export const createSite = createRoute({
  method: 'post',
  path: '/api/v1/sites',
  access: 'clusters:write',
  tags: ['Sites'],
  summary: 'Create a site',
  request: { body: jsonBody(SiteCreation) },
  responses: { 201: { description: 'The site', content: json(Site) } },
  errors: ['site_name_taken', 'limit_reached'],
  capabilities: ['table:write', 'queue:events'],
})

export const deleteSite = createRoute({
  method: 'delete',
  path: '/api/v1/sites/{id}',
  access: 'clusters:write',
  tags: ['Sites'],
  summary: 'Remove a site without clusters',
  request: { params: z.object({ id: pathId('site') }) },
  responses: { 204: { description: 'Removed' } },
  errors: ['site_not_found', 'site_in_use'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})
