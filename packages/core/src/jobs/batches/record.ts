import type { Batch } from '@platform/contract/batch'
import type { BatchCounts } from '@platform/contract/event'
import * as z from 'zod'
import { iso } from '../../clock.ts'
import * as keys from '../../db/keys.ts'
import { get, getConsistent, type Item, queryAll } from '../../db/table.ts'
import { parseRemovedIds } from '../../clusters/removed.ts'
import { isId } from '../../id.ts'
import { type JobEnd, type JobRecord, parseJob } from '../record.ts'
import { submitterFields, submitterView } from '../../submitter.ts'

const BatchRecord = z.object({
  id: z.string(),
  organisationId: z.string(),
  submittedCount: z.number(),
  maxConcurrency: z.number().optional(),
  maxErrors: z.number().optional(),
  retryOf: z.string().optional(),
  createdAtMs: z.number(),
  name: z.string().optional(),
  title: z.string().default('Script'),
  reason: z.string().optional(),
  ...submitterFields,
  /** The index of each chunk's first job; absent once all jobs are stored. */
  starts: z.array(z.number()).optional(),
  /** Jobs with a lower index are created. All of these are stored, except perhaps those from `unstoredFrom` on. */
  expanded: z.number(),
  /** The jobs from this index up to `expanded` are listed by their clusters, but may not be stored yet. */
  unstoredFrom: z.number().optional(),
  /** Jobs with a lower index are released, if the batch limits concurrency. */
  released: z.number().default(0),
  /** Number of jobs that ended while throttled and do not yet count as released. */
  heldEnded: z.number().default(0),
  /**
   * Number of running jobs. This and the next three numbers come from the projected transitions; all other jobs count as
   * queued.
   */
  running: z.number().default(0),
  completed: z.number().default(0),
  failed: z.number().default(0),
  cancelled: z.number().default(0),
  cancelRequestedAtMs: z.number().optional(),
  /** Set when the batch's message was dead-lettered; the jobs not yet created then fail. */
  deadLetteredAtMs: z.number().optional(),
  finishedAtMs: z.number().optional(),
})
export type BatchRecord = z.infer<typeof BatchRecord>

/** Jobs with a lower index are stored; some of the others may be. */
export const storedCount = ({ expanded, unstoredFrom = expanded }: BatchRecord): number => unstoredFrom

export const parseBatch = (item: Item): BatchRecord => BatchRecord.parse(item)

export async function findBatch(organisationId: string, batchId: string): Promise<BatchRecord | undefined> {
  const item = isId('batch', batchId) ? await get(keys.batch(organisationId, batchId)) : undefined
  return item && parseBatch(item)
}

/** Also returns the ids of removed clusters, whose jobs callers must hide. */
export async function findBatchAndRemoved(organisationId: string, batchId: string) {
  if (!isId('batch', batchId)) return undefined
  const itemKeys = [keys.batch(organisationId, batchId), keys.removedClusters(organisationId)]
  const [item, removedItem] = await getConsistent(itemKeys)
  return item && { batch: parseBatch(item), removedIds: parseRemovedIds(removedItem) }
}

/** Returns the items of the stored jobs of a batch, newest first. */
export const readJobItemsOf = (
  organisationId: string,
  batchId: string,
  options: { mayBeStale?: boolean } = {},
): Promise<Item[]> => queryAll({ ...keys.jobsOfBatch(organisationId, batchId), isNewestFirst: true, ...options })

/** Returns the stored jobs of a batch, newest first. */
export const readJobsOf = async (organisationId: string, batchId: string): Promise<JobRecord[]> =>
  (await readJobItemsOf(organisationId, batchId)).map(parseJob)

export const countEnded = ({ completed, failed, cancelled }: Pick<BatchRecord, 'completed' | 'failed' | 'cancelled'>) =>
  completed + failed + cancelled

/** A job's start may be projected after its end, so `running` may be negative for a moment. */
export function countsOf(batch: BatchRecord): BatchCounts {
  const { submittedCount, completed, failed, cancelled } = batch
  const runningCount = Math.max(0, batch.running)
  const queuedCount = Math.max(0, submittedCount - runningCount - countEnded(batch))
  return { queued: queuedCount, running: runningCount, completed, failed, cancelled }
}

export function stopReasonOf({ cancelRequestedAtMs, failed, maxErrors }: BatchRecord): JobEnd | undefined {
  if (cancelRequestedAtMs !== undefined) return { status: 'Cancelled', statusReason: 'cancelled_by_user' }
  if (failed > (maxErrors ?? failed)) return { status: 'Cancelled', statusReason: 'batch_error_limit' }
  return undefined
}

const statusOf = ({ finishedAtMs, cancelRequestedAtMs }: BatchRecord): Batch['status'] => {
  if (finishedAtMs !== undefined) return 'Finished'
  return cancelRequestedAtMs === undefined ? 'Running' : 'Cancelling'
}

export const batchTitle = ({ name, title }: Pick<BatchRecord, 'name' | 'title'>): string => name ?? title

export const batchView = (record: BatchRecord): Batch => ({
  id: record.id,
  status: statusOf(record),
  submittedCount: record.submittedCount,
  counts: countsOf(record),
  ...(record.maxConcurrency !== undefined && { maxConcurrency: record.maxConcurrency }),
  ...(record.maxErrors !== undefined && { maxErrors: record.maxErrors }),
  ...(record.retryOf !== undefined && { retryOf: record.retryOf }),
  title: batchTitle(record),
  ...(record.name !== undefined && { name: record.name }),
  ...(record.reason !== undefined && { reason: record.reason }),
  createdBy: submitterView(record),
  createdAt: iso(record.createdAtMs),
  ...(record.cancelRequestedAtMs !== undefined && { cancelRequestedAt: iso(record.cancelRequestedAtMs) }),
  ...(record.finishedAtMs !== undefined && { finishedAt: iso(record.finishedAtMs) }),
})
