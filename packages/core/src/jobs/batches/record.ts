import { type Batch } from '@platform/contract/batch'
import { type BatchCounts } from '@platform/contract/event'
import * as z from 'zod'
import { iso } from '../../clock.ts'
import * as keys from '../../db/keys.ts'
import { get, type Item } from '../../db/table.ts'
import { isId } from '../../id.ts'
import { type JobEnd } from '../record.ts'

/** How a batch is stored: its row, and beside it the jobs that do not stand in the table yet (`chunks.ts`). */
const BatchRecord = z.object({
  id: z.string(),
  organisationId: z.string(),
  submittedCount: z.number(),
  maxConcurrency: z.number().optional(),
  maxErrors: z.number().optional(),
  retryOf: z.string().optional(),
  createdAtMs: z.number(),
  createdBy: z.string(),
  /** The index of the first job of each chunk. There while the batch is open: not all of its jobs stand in the table. */
  starts: z.array(z.number()).optional(),
  /** The jobs below this index stand in the table. */
  expanded: z.number(),
  /** The jobs below this index were let go, where the batch lets only so many of them go at once. */
  released: z.number().default(0),
  /** Jobs that ended while they were held back, and whose turn has not come yet. */
  heldEnded: z.number().default(0),
  /** What the books have counted. A job that nobody counts is Queued. */
  running: z.number().default(0),
  completed: z.number().default(0),
  failed: z.number().default(0),
  cancelled: z.number().default(0),
  cancelRequestedAtMs: z.number().optional(),
  /** Since its message was dead-lettered, its further jobs fail. */
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

/** How many jobs of a batch have ended. */
export const endedJobs = ({ completed, failed, cancelled }: Pick<BatchRecord, 'completed' | 'failed' | 'cancelled'>) =>
  completed + failed + cancelled

/** Jobs by where they stand. A job's start may be counted after its end: nothing is negative meanwhile. */
export function countsOf(batch: BatchRecord): BatchCounts {
  const { submittedCount, completed, failed, cancelled } = batch
  const running = Math.max(0, batch.running)
  const queued = Math.max(0, submittedCount - running - endedJobs(batch))
  return { queued, running, completed, failed, cancelled }
}

/** How the jobs of a batch that have not begun shall end; undefined while they shall run. */
export function stopReasonOf({ cancelRequestedAtMs, failed, maxErrors }: BatchRecord): JobEnd | undefined {
  if (cancelRequestedAtMs !== undefined) return { status: 'Cancelled', statusReason: 'cancelled_by_user' }
  if (failed > (maxErrors ?? failed)) return { status: 'Cancelled', statusReason: 'batch_error_limit' }
  return undefined
}

const statusOf = ({ finishedAtMs, cancelRequestedAtMs }: BatchRecord): Batch['status'] => {
  if (finishedAtMs !== undefined) return 'Finished'
  return cancelRequestedAtMs === undefined ? 'Running' : 'Cancelling'
}

/** The wire form. */
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
