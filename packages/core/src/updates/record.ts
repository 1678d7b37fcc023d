import * as z from 'zod'
import { type Item } from '../db/table.ts'
import { jsonString } from '../lib/json.ts'
import { type OperationRecord } from '../operations/record.ts'

/** How updates are stored (D50, D51). */

/** A release that serves or has served; without a digest one that was deployed, not applied. */
const InstalledRelease = z.object({
  version: z.string(),
  repository: z.string().optional(),
  digest: z.string().optional(),
})
export type InstalledRelease = z.infer<typeof InstalledRelease>

/** Which release was applied last, what served before, and the job that changes it just now: the lock of updates. */
export const UpdateState = z.object({
  current: jsonString(InstalledRelease).optional(),
  previous: jsonString(InstalledRelease).optional(),
  jobId: z.string().optional(),
  /** Goes up with every change. */
  revision: z.number().default(0),
})
export type UpdateState = z.infer<typeof UpdateState>

export const parseUpdateState = (item: Item | undefined): UpdateState => UpdateState.parse(item ?? {})

/** The steps of an update in order; of a rollback the same (D51). */
export const updateSteps = ['preflight', 'stage', 'smoke', 'shift-10', 'shift-50', 'shift-100', 'commit'] as const
export const rollbackSteps = ['preflight', 'stage', 'smoke', 'shift-100', 'commit'] as const

/** What an update is done with. `release` is to serve, `before` is what to go back to. */
const UpdatePlan = z.object({
  action: z.enum(['apply', 'rollback']),
  release: InstalledRelease,
  before: InstalledRelease,
})
export type UpdatePlan = z.infer<typeof UpdatePlan>

/** The plan of a `PlatformUpdate` or `PlatformRollback`. */
export const updatePlan = ({ plan }: OperationRecord): UpdatePlan => UpdatePlan.parse(plan)
