import * as z from 'zod'
import { digits, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'
import { ClusterCounts } from './portal.ts'

/** What was, in steps of time: what the portal draws charts of. */

/** The longest range, in hours: what is older is forgotten a day later. */
export const historyHours = 720
/** The most points of one answer. */
export const historyPoints = 200

const count = z.int32().min(0).meta({ example: 3 })

const HistoryPoint = z
  .object({
    at: timestamp.meta({ description: 'When the step begins' }),
    clusters: z
      .object({ byStatus: ClusterCounts })
      .optional()
      .meta({ description: 'As they stood at the end of the step, or stand now. Absent where that is not known' }),
    jobs: z
      .object({
        submitted: count.meta({ description: 'Jobs that were accepted during the step' }),
        completed: count.meta({ description: 'Jobs that ended so during the step; likewise the others' }),
        failed: count,
        cancelled: count,
      })
      .optional(),
  })
  .meta({ id: 'HistoryPoint' })
export type HistoryPoint = z.infer<typeof HistoryPoint>

export const History = z
  .object({
    stepMinutes: z.int32().min(15).max(1440).meta({ description: 'How much time a point stands for', example: 15 }),
    points: z
      .array(HistoryPoint)
      .max(historyPoints)
      .meta({ description: 'Oldest first; the last step is not over yet' }),
  })
  .meta({ id: 'History' })
export type History = z.infer<typeof History>

export const getHistory = endpoint({
  method: 'GET',
  path: '/api/v1/portal/history',
  access: 'user',
  tag: 'Portal',
  summary: 'Clusters by status and jobs that ended, over time',
  description:
    'Points hold `clusters` with clusters:read and `jobs` with jobs:read. The longer the range, the longer the steps: of 15 minutes up to 50 hours, of 4 hours for 30 days. Counted since the platform is of a release that counts.',
  request: { query: z.object({ hours: digits(historyHours, 24, 'How far to look back') }) },
  responses: { 200: { description: 'The points', schema: History } },
  uses: ['table:read'],
})
