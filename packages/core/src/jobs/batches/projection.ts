import { type BatchRecord, countsOf, countEnded, parseBatch } from './record.ts'
import { applyBatchLimits } from './advance.ts'
import type { Projection } from '../../outbox/run-projections.ts'
import { system } from '../../caller.ts'
import { now } from '../../clock.ts'
import { unchangedCondition } from '../../db/expression.ts'
import * as keys from '../../db/keys.ts'
import { getMany, patch, type WriteItem } from '../../db/table.ts'
import { derivedId } from '../../id.ts'
import { log } from '../../log.ts'
import type { JobTransition, OutboxRecord } from '../../outbox/record.ts'
import { outboxWrite } from '../../outbox/commit.ts'

/** Counts the jobs of batches by status, and finishes a batch when all its jobs have ended. */
export const batchProjection: Projection = { name: 'batches', writes, afterCommit }

const counters = { Running: 'running', Completed: 'completed', Failed: 'failed', Cancelled: 'cancelled' } as const
type Counter = (typeof counters)[keyof typeof counters]
type Counts = Record<Counter | 'heldEnded', number>

const counterOf = (status: JobTransition['from']): Counter | undefined =>
  status === undefined || status === 'Queued' ? undefined : counters[status]

/** Ignores removals, so that removed jobs remain counted. */
function countsByBatch(records: readonly OutboxRecord[]): Map<string, Counts> {
  const batches = new Map<string, Counts>()
  for (const { batchId, from, to, isThrottled } of records.flatMap(({ transitions }) => transitions)) {
    const [before, after] = [counterOf(from), counterOf(to)]
    if (batchId === undefined || to === undefined || (before ?? after) === undefined) continue
    const counts = batches.get(batchId) ?? { running: 0, completed: 0, failed: 0, cancelled: 0, heldEnded: 0 }
    if (before !== undefined) counts[before]--
    if (after !== undefined) counts[after]++
    if (isThrottled) counts.heldEnded++
    batches.set(batchId, counts)
  }
  return batches
}

const batchesOf = async (organisationId: string, batchIds: readonly string[]): Promise<BatchRecord[]> => {
  const items = await getMany(batchIds.map((id) => keys.batch(organisationId, id)))
  return items.filter((item) => item !== undefined).map(parseBatch)
}

async function writes(organisationId: string, records: readonly OutboxRecord[]): Promise<readonly WriteItem[]> {
  const countChanges = countsByBatch(records)
  const batches = await batchesOf(organisationId, [...countChanges.keys()])
  return batches.flatMap((batch) => {
    const counts = countChanges.get(batch.id)
    return counts === undefined ? [] : countWrites(batch, counts)
  })
}

/** The condition ensures that exactly one projection counts the last job and emits the event. */
function countWrites(batch: BatchRecord, counts: Counts): WriteItem[] {
  const { organisationId, id, submittedCount, running, completed, failed, cancelled } = batch
  const result = {
    ...batch,
    running: running + counts.running,
    completed: completed + counts.completed,
    failed: failed + counts.failed,
    cancelled: cancelled + counts.cancelled,
  }
  // A job's start may be projected after the batch is finished; the event must not repeat.
  const isFinished = batch.finishedAtMs === undefined && countEnded(result) === submittedCount
  const add = Object.fromEntries(Object.entries(counts).filter(([, delta]) => delta !== 0))
  const change = { add, ...(isFinished && { set: { finishedAtMs: now() }, remove: ['duepk', 'duesk', 'gsi3pk'] }) }
  const condition = {
    completed: unchangedCondition(completed || undefined),
    failed: unchangedCondition(failed || undefined),
    cancelled: unchangedCondition(cancelled || undefined),
  }
  if (Object.keys(add).length === 0 && !isFinished) return []
  return [patch(keys.batch(organisationId, id), change, condition), ...(isFinished ? [finishedWrite(result)] : [])]
}

const finishedWrite = (batch: BatchRecord): WriteItem =>
  outboxWrite(system(batch.organisationId), {
    id: derivedId('evt', now(), batch.id, 'finished'),
    events: [
      {
        name: 'batch.finished',
        subject: batch.id,
        data: {
          batchId: batch.id,
          ...(batch.name !== undefined && { name: batch.name }),
          counts: countsOf(batch),
          createdBy: batch.createdBy,
        },
      },
    ],
  })

/** Applies the limits of batches of which at least one job has ended. The sweep repeats a run that was lost. */
async function afterCommit(organisationId: string, records: readonly OutboxRecord[]): Promise<void> {
  const batchIds = [...countsByBatch(records)].filter(([, counts]) => countEnded(counts) > 0).map(([id]) => id)
  const batches = await batchesOf(organisationId, batchIds)
  await Promise.all(batches.filter(isLimited).map(applyLimitsSafely))
}

const isLimited = ({ maxConcurrency, maxErrors }: BatchRecord): boolean =>
  maxConcurrency !== undefined || maxErrors !== undefined

async function applyLimitsSafely(batch: BatchRecord): Promise<void> {
  try {
    await applyBatchLimits(batch)
  } catch (error) {
    log('warn', 'Failed to apply batch limits; the sweep retries', { batchId: batch.id, error: String(error) })
  }
}
