import * as z from 'zod'
import type { ClusterStatus } from './cluster.ts'
import { listOf, timestamp } from './common.ts'
import { createRoute, json } from './endpoint.ts'
import { Readiness } from './health.ts'
import type { JobStatus } from './job.ts'
import { slotIds, version } from './manifest.ts'

/** An entry of the portal's navigation, from the platform or a module. */
export const NavigationEntry = z
  .object({
    slotId: z.enum(slotIds),
    id: z.string().max(64).meta({ example: 'clusters' }),
    label: z.string().max(40).meta({ example: 'Clusters' }),
    icon: z.string().max(64).meta({ description: 'A Lucide icon name', example: 'server' }),
    route: z.string().max(256).meta({ example: '/clusters' }),
    order: z.int32().min(0).max(10_000).meta({ description: 'Entries with lower values come first', example: 10 }),
    source: z.string().max(60).meta({ description: '`platform`, or `module:<id>`', example: 'platform' }),
  })
  .meta({ id: 'NavigationEntry' })
export type NavigationEntry = z.infer<typeof NavigationEntry>

export const getNavigation = createRoute({
  method: 'get',
  path: '/api/v1/portal/navigation',
  access: 'user',
  tags: ['Portal'],
  summary: 'The portal’s navigation, in order',
  description: 'Built-in entries that the caller has permission for, and entries of running modules.',
  responses: { 200: { description: 'The entries', content: json(listOf(NavigationEntry, 2000)) } },
  capabilities: ['table:read'],
})

/** Portal configuration that is readable before sign-in. It contains no secrets. */
export const PortalConfiguration = z
  .object({
    setupComplete: z.boolean(),
    platformName: z.string().max(100).optional().meta({ example: 'Acme Platform' }),
    timezone: z.string().max(64).optional().meta({ description: 'IANA identifier', example: 'Europe/Berlin' }),
    publicUrl: z.string().max(500).optional().meta({ example: 'https://platform.example.com' }),
    isDemo: z
      .boolean()
      .optional()
      .meta({ description: 'true on a platform of `npm start -- --demo`, otherwise absent', example: true }),
    version,
  })
  .meta({ id: 'PortalConfiguration' })
export type PortalConfiguration = z.infer<typeof PortalConfiguration>

export const getPortalConfiguration = createRoute({
  method: 'get',
  path: '/api/v1/portal/configuration',
  access: 'public',
  tags: ['Portal'],
  summary: 'Configuration of the portal before sign-in',
  description: 'Names and addresses are present once setup is complete.',
  responses: { 200: { description: 'The configuration', content: json(PortalConfiguration) } },
  capabilities: ['table:read'],
})

const count = z.int32().min(0).meta({ example: 3 })

/** Clusters by stored status, which the last heartbeat or sweep set. */
export const ClusterCounts = z
  .object({ Healthy: count, Degraded: count, Pending: count, Offline: count } satisfies Record<ClusterStatus, object>)
  .meta({ id: 'ClusterCounts' })
export type ClusterCounts = z.infer<typeof ClusterCounts>

const JobCounts = z
  .object({ Queued: count, Running: count, Completed: count, Failed: count, Cancelled: count } satisfies Record<
    JobStatus,
    object
  >)
  .meta({ id: 'JobCounts' })

const ModuleCounts = z
  .object({
    installed: count,
    unhealthy: count.meta({ description: 'Installed modules that failed or whose last health check was Unhealthy' }),
    updatesAvailable: count.meta({ description: 'Installed modules with a newer release in the catalog' }),
  })
  .meta({ id: 'ModuleCounts', description: 'Present for callers with modules:read' })

const StoredUpdateCheck = z
  .object({
    currentVersion: version,
    latestVersion: version,
    updateAvailable: z.boolean(),
    checkedAt: timestamp.optional().meta({ description: 'Time of the last check; absent before the first' }),
    previousVersion: version.optional().meta({ description: 'Version that a rollback restores' }),
  })
  .meta({
    id: 'StoredUpdateCheck',
    description: 'Present for callers with platform:admin. The result of the last check; this request starts none',
  })

/** Totals for the dashboard and the navigation. Totals that the caller may not read are absent. */
export const PortalSummary = z
  .object({
    clusters: z
      .object({ total: count, byStatus: ClusterCounts })
      .optional()
      .meta({ description: 'Present for callers with clusters:read' }),
    jobs: z
      .object({ total: count, byStatus: JobCounts })
      .optional()
      .meta({ description: 'Present for callers with jobs:read' }),
    modules: ModuleCounts.optional(),
    update: StoredUpdateCheck.optional(),
    unreadCount: count.meta({ description: 'Unread notifications of the caller' }),
    health: z.object({ aggregate: Readiness.shape.aggregate }),
    navigationTag: z.string().max(64).meta({
      description: 'Changes with the caller’s navigation; the `ETag` of GET /portal/navigation begins with it',
      example: '5f0c2b7a9d3e4816',
    }),
  })
  .meta({ id: 'PortalSummary' })
export type PortalSummary = z.infer<typeof PortalSummary>

export const getPortalSummary = createRoute({
  method: 'get',
  path: '/api/v1/portal/summary',
  access: 'user',
  tags: ['Portal'],
  summary: 'All totals of the portal in one response',
  description:
    'Suitable for polling: reads counters instead of lists and returns an `ETag`, so that an unchanged response returns 304. Members that the caller has no permission for are absent. Clusters are counted by the status that the last heartbeat or sweep stored; the list computes the current status and can be one sweep ahead.',
  responses: { 200: { description: 'The totals', content: json(PortalSummary) } },
  capabilities: ['table:read'],
})
