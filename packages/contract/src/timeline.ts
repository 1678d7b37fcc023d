import * as z from 'zod'
import { AuditActor } from './audit.ts'
import { id, pageOf, paging, pathId, timestamp } from './common.ts'
import { createRoute, json } from './endpoint.ts'

export const timelineKinds = ['status', 'job', 'audit', 'event'] as const

export const TimelineEntry = z
  .object({
    id: id('evt'),
    at: timestamp,
    startedAt: timestamp.optional(),
    endedAt: timestamp.optional(),
    kind: z.enum(timelineKinds),
    title: z.string().max(200),
    detail: z.string().max(2000).optional(),
    resource: z.string().max(200).optional().meta({ description: 'Subject of the entry, if not the cluster' }),
    actor: AuditActor.optional(),
    extra: z.literal(true).optional().meta({ description: 'Audit entry written by a caller, not by the platform' }),
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
      startedAt: '2026-11-21T09:30:01.000Z',
      endedAt: '2026-11-21T09:30:04.000Z',
      actor: { kind: 'user', id: 'user_01jd8w5k3zr9x2m4c7t6v0b1qa' },
    },
  })
export type TimelineEntry = z.infer<typeof TimelineEntry>

export const getClusterTimeline = createRoute({
  method: 'get',
  path: '/api/v1/clusters/{id}/timeline',
  access: 'clusters:read',
  tags: ['Clusters'],
  summary: 'Timeline of a cluster, newest first',
  description:
    'Changes of status, jobs, audit entries and other events: the newest 10,000 of the last 90 days. A job has one entry, at the time of its creation, with its current status. The entry disappears when the retention of the job ends.',
  request: { params: z.object({ id: pathId('clus') }), query: z.strictObject(paging) },
  responses: { 200: { description: 'A page of the timeline', content: json(pageOf(TimelineEntry)) } },
  errors: ['cluster_not_found'],
  capabilities: ['table:read'],
})
