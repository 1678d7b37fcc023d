import { type Batch } from '@platform/contract/batch'
import { type BatchCounts } from '@platform/contract/event'
import * as z from 'zod'
import { iso } from '../../clock.ts'
import * as keys from '../../db/keys.ts'
import { get, type Item } from '../../db/table.ts'
import { isId } from '../../id.ts'
import { type JobEnd } from '../record.ts'

/** The stored form of a batch: its record. Jobs that are not stored individually yet: `chunks.ts`. */
const BatchRecord = z.object({
  id: z.string(),
  organisationId: z.string(),
  submittedCount: z.number(),
  maxConcurrency: z.number().optional(),
  maxErrors: z.number().optional(),
  retryOf: z.string().optional(),
  createdAtMs: z.number(),
  createdBy: z.string(),
  /** The first job index of each chunk, while the batch is open: not all of its jobs are stored. */
  starts: z.array(z.number()).optional(),
  /** Jobs below this index are stored. */
  expanded: z.number(),
  /** Jobs below this index are released, if the batch limits concurrency. */
  released: z.number().default(0),
  /** Jobs that ended while throttled, at indexes not released yet. */
  heldEnded: z.number().default(0),
  /** Projected counts. Uncounted jobs are Queued. */
  running: z.number().default(0),
  completed: z.number().default(0),
  failed: z.number().default(0),
  cancelled: z.number().default(0),
  cancelRequestedAtMs: z.number().optional(),
  /** Set when its message was dead-lettered: its remaining jobs fail. */
  deadLetteredAtMs: z.number().optional(),
  finishedAtMs: z.number().optional(),
})
export type BatchRecord = z.infer<typeof BatchRecord>

export const parseBatch = (item: Item): BatchRecord => BatchRecord.parse(item)

/** A batch of an organisation. One call. */
export async function findBatch(organisationId: string, batchId: string): Promise<BatchRecord | undefined> {
  const item = isId('batch', batchId) ? await get(keys.batch(organisationId, batchId)) : undefined
  return item && parseBatch(item)
}

/** The number of ended jobs. */
export const endedJobs = ({ completed, failed, cancelled }: Pick<BatchRecord, 'completed' | 'failed' | 'cancelled'>) =>
  completed + failed + cancelled

/** Jobs by status. A start may be projected after an end, so no count is negative. */
export function countsOf(batch: BatchRecord): BatchCounts {
  const { submittedCount, completed, failed, cancelled } = batch
  const running = Math.max(0, batch.running)
  const queued = Math.max(0, submittedCount - running - endedJobs(batch))
  return { queued, running, completed, failed, cancelled }
}

/** The end of jobs that are not started; undefined while the batch runs. */
export function stopReasonOf({ cancelRequestedAtMs, failed, maxErrors }: BatchRecord): JobEnd | undefined {
  if (cancelRequestedAtMs !== undefined) return { status: 'Cancelled', statusReason: 'cancelled_by_user' }
  if (failed > (maxErrors ?? failed)) return { status: 'Cancelled', statusReason: 'batch_error_limit' }
  return undefined
}

const statusOf = ({ finishedAtMs, cancelRequestedAtMs }: BatchRecord): Batch['status'] => {
  if (finishedAtMs !== undefined) return 'Finished'
  return cancelRequestedAtMs === undefined ? 'Running' : 'Cancelling'
}

/** The API representation of a batch. */
export const batchView = (row: BatchRecord): Batch => ({
  id: row.id,
  status: statusOf(row),
  submittedCount: row.submittedCount,
  counts: countsOf(row),
  ...(row.maxConcurrency !== undefined && { maxConcurrency: row.maxConcurrency }),
  ...(row.maxErrors !== undefined && { maxErrors: row.maxErrors }),
  ...(row.retryOf !== undefined && { retryOf: row.retryOf }),
  createdBy: row.createdBy,
  createdAt: iso(row.createdAtMs),
  ...(row.cancelRequestedAtMs !== undefined && { cancelRequestedAt: iso(row.cancelRequestedAtMs) }),
  ...(row.finishedAtMs !== undefined && { finishedAt: iso(row.finishedAtMs) }),
})
