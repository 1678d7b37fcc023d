import * as z from 'zod'
import { AuditActor } from './audit.ts'
import { id, pageOf, paging, pathId, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'

/** What happened to a cluster: its status, its jobs, and what people did to it. */

export const timelineKinds = ['status', 'job', 'audit', 'event'] as const

export const TimelineEntry = z
  .object({
    id: id('evt'),
    at: timestamp,
    kind: z.enum(timelineKinds),
    title: z.string().max(200),
    detail: z.string().max(2000).optional(),
    resource: z.string().max(200).optional().meta({ description: 'What it is about, where it is not the cluster' }),
    actor: AuditActor.optional(),
    extra: z
      .literal(true)
      .optional()
      .meta({ description: 'An audit entry that a caller has written, not the platform' }),
  })
  .meta({
    id: 'TimelineEntry',
    example: {
      id: 'evt_01jd8w5k3zr9x2m4c7t6v0b1qa',
      at: '2026-11-21T09:30:00.000Z',
      kind: 'job',
      title: 'Job failed',
      detail: 'exit_nonzero',
      resource: 'job_01jd8w5k3zr9x2m4c7t6v0b1qa',
      actor: { kind: 'relay', id: 'relay_01jd8w5k3zr9x2m4c7t6v0b1qa' },
    },
  })
export type TimelineEntry = z.infer<typeof TimelineEntry>

export const getClusterTimeline = endpoint({
  method: 'GET',
  path: '/api/v1/clusters/{id}/timeline',
  access: 'clusters:read',
  tag: 'Clusters',
  summary: 'What happened to a cluster, newest first',
  description: 'Changes of status, jobs, audit entries and other events: the newest 10,000 of the last 90 days.',
  request: { params: z.object({ id: pathId('clus') }), query: z.object(paging) },
  responses: { 200: { description: 'A page of the timeline', schema: pageOf(TimelineEntry) } },
  fails: ['cluster_not_found'],
  uses: ['table:read'],
})
