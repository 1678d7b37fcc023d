import * as z from 'zod'
import { type ClusterStatus } from './cluster.ts'
import { listOf, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'
import { Readiness } from './health.ts'
import { type JobStatus } from './job.ts'
import { slotIds, version } from './manifest.ts'

/** What the portal needs beside the resources that it shows: where to begin, where to go, and what all its numbers say. */

/** An entry of the portal's navigation: built in, or a module's. */
export const NavigationEntry = z
  .object({
    slotId: z.enum(slotIds),
    id: z.string().max(64).meta({ example: 'clusters' }),
    label: z.string().max(40).meta({ example: 'Clusters' }),
    icon: z.string().max(64).meta({ description: 'A Lucide icon name', example: 'server' }),
    route: z.string().max(256).meta({ example: '/clusters' }),
    order: z.int32().min(0).max(10_000).meta({ description: 'Lower is higher', example: 10 }),
    source: z.string().max(60).meta({ description: '`platform`, or `module:<id>`', example: 'platform' }),
  })
  .meta({ id: 'NavigationEntry' })
export type NavigationEntry = z.infer<typeof NavigationEntry>

export const getNavigation = endpoint({
  method: 'GET',
  path: '/api/v1/portal/navigation',
  access: 'user',
  tag: 'Portal',
  summary: 'The portal’s navigation, in order',
  description: 'Built-in entries that the caller may use, and those of running modules.',
  responses: { 200: { description: 'The entries', schema: listOf(NavigationEntry, 2000) } },
  uses: ['table:read'],
})

/** What a browser must know before anybody has signed in. Nothing in it is secret. */
export const PortalConfiguration = z
  .object({
    setupComplete: z.boolean(),
    platformName: z.string().max(100).optional().meta({ example: 'Acme Platform' }),
    timezone: z.string().max(64).optional().meta({ description: 'IANA identifier', example: 'Europe/Berlin' }),
    publicUrl: z.string().max(500).optional().meta({ example: 'https://platform.example.com' }),
    version,
  })
  .meta({ id: 'PortalConfiguration' })
export type PortalConfiguration = z.infer<typeof PortalConfiguration>

export const getPortalConfiguration = endpoint({
  method: 'GET',
  path: '/api/v1/portal/configuration',
  access: 'public',
  tag: 'Portal',
  summary: 'What the portal needs before anybody has signed in',
  description: 'An addition to what needs no token (D57). The names and addresses are there once setup is complete.',
  responses: { 200: { description: 'The configuration', schema: PortalConfiguration } },
  uses: ['table:read'],
})

const count = z.int32().min(0).meta({ example: 3 })

/** Clusters by the status that the last beat or sweep has persisted. */
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
    unhealthy: count.meta({ description: 'Installed ones that failed, or whose last probe found them Unhealthy' }),
    updatesAvailable: count.meta({ description: 'Installed ones of which the catalog has a newer release' }),
  })
  .meta({ id: 'ModuleCounts' })

const StoredUpdateCheck = z
  .object({
    currentVersion: version,
    latestVersion: version,
    updateAvailable: z.boolean(),
    checkedAt: timestamp.optional().meta({ description: 'Absent where nobody has looked yet' }),
    previousVersion: version.optional().meta({ description: 'What a rollback goes back to' }),
  })
  .meta({ id: 'StoredUpdateCheck' })

/** All numbers that the portal shows outside of its lists. What the caller may not read is absent. */
export const PortalSummary = z
  .object({
    clusters: z
      .object({ total: count, byStatus: ClusterCounts })
      .optional()
      .meta({ description: 'With clusters:read' }),
    jobs: z.object({ total: count, byStatus: JobCounts }).optional().meta({ description: 'With jobs:read' }),
    modules: ModuleCounts.optional().meta({ description: 'With modules:read' }),
    update: StoredUpdateCheck.optional().meta({
      description: 'With platform:admin. What the last look at the releases has found; nobody looks for this answer',
    }),
    unreadCount: count.meta({ description: 'Unread notifications of the caller' }),
    health: z.object({ aggregate: Readiness.shape.aggregate }),
    navigationTag: z.string().max(64).meta({
      description: 'Changes when the caller’s navigation does: the `ETag` of GET /portal/navigation begins with it',
      example: '5f0c2b7a9d3e4816',
    }),
  })
  .meta({ id: 'PortalSummary' })
export type PortalSummary = z.infer<typeof PortalSummary>

export const getPortalSummary = endpoint({
  method: 'GET',
  path: '/api/v1/portal/summary',
  access: 'user',
  tag: 'Portal',
  summary: 'Every number of the portal in one answer',
  description:
    'Made to be polled: it reads counters, never lists, and carries an `ETag`, so that an answer without news is 304. Members that the caller may not read are absent. Clusters are counted by the status that the last beat or sweep has persisted; the list, which judges each row at the moment of the call, may be ahead by one sweep.',
  responses: { 200: { description: 'The numbers', schema: PortalSummary } },
  uses: ['table:read'],
})
