import * as z from 'zod'
import { digits, timestamp } from './common.ts'
import { createRoute, json } from './endpoint.ts'
import { ClusterCounts } from './portal.ts'

/** Maximum range of the history, in hours. */
export const maxHistoryHours = 720
/** Maximum number of points in a response. */
export const maxHistoryPoints = 200

const count = z.int32().min(0).meta({ example: 3 })

const JobsOfPeriod = z.object({
  submitted: count.meta({ description: 'Jobs accepted during the interval' }),
  completed: count.meta({ description: 'Jobs that completed during the interval' }),
  failed: count.meta({ description: 'Jobs that failed during the interval' }),
  cancelled: count.meta({ description: 'Jobs that were cancelled during the interval' }),
})

const HistoryPoint = z
  .object({
    at: timestamp.meta({ description: 'Start of the interval' }),
    clusters: z.object({ byStatus: ClusterCounts }).optional().meta({
      description: 'Clusters by status at the end of the interval, or now for the current one. Absent if unknown',
    }),
    jobs: JobsOfPeriod.optional(),
  })
  .meta({ id: 'HistoryPoint' })
export type HistoryPoint = z.infer<typeof HistoryPoint>

export const History = z
  .object({
    stepMinutes: z.int32().min(15).max(1440).meta({ description: 'Length of the interval of each point', example: 15 }),
    points: z
      .array(HistoryPoint)
      .max(maxHistoryPoints)
      .meta({ description: 'Oldest first; the last interval has not ended yet' }),
    previous: z
      .object({
        clusters: z.object({ byStatus: ClusterCounts }).optional().meta({
          description: 'Clusters by status before the first point. Absent if unknown',
        }),
        jobs: JobsOfPeriod.optional().meta({
          description: 'Jobs of a range of the same length before the first point',
        }),
      })
      .meta({ description: 'For comparison with the points' }),
  })
  .meta({ id: 'History' })
export type History = z.infer<typeof History>

export const getHistory = createRoute({
  method: 'get',
  path: '/api/v1/portal/history',
  access: 'user',
  tags: ['Portal'],
  summary: 'Clusters by status, and jobs that were accepted or ended, over time',
  description:
    'Points contain `clusters` for callers with clusters:read and `jobs` for callers with jobs:read. Longer ranges have longer intervals: 15 minutes up to 50 hours, 4 hours for 30 days.',
  request: { query: z.strictObject({ hours: digits(maxHistoryHours, 24, 'How far to look back') }) },
  responses: { 200: { description: 'The points', content: json(History) } },
  capabilities: ['table:read'],
})
