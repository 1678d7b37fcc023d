import { advanceBatch } from './batches/advance.ts'
import { system } from '../caller.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { get, patch } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { storeContention } from '../error.ts'
import { finishQueued } from './cancel.ts'
import { JobRecord } from './record.ts'
import { log } from '../log.ts'
import { type BatchReference, type JobReference } from '../aws/queues.ts'

const deadLettered = { status: 'Failed', statusReason: 'dead_lettered' } as const

/** Jobs that are dispatched or have ended stay unchanged. */
export async function deadLetterJob({ organisationId, jobId }: JobReference): Promise<void> {
  const item = await get(keys.job(organisationId, jobId))
  if (item === undefined) return
  const { success, data: job } = JobRecord.safeParse(item)
  if (!success) return log('error', 'Job record unreadable; left unchanged', { organisationId, jobId })
  if (job.status !== 'Queued' || job.dispatchedAtMs !== undefined || job.isThrottled) return
  if (!(await finishQueued(system(organisationId), [job], deadLettered))) throw storeContention()
}

/** Only jobs that are not yet stored fail; stored jobs continue. */
export async function deadLetterBatch(reference: BatchReference): Promise<void> {
  const { organisationId, batchId } = reference
  const isOpen = { starts: { present: true }, deadLetteredAtMs: { absent: true } } as const
  await transact([patch(keys.batch(organisationId, batchId), { set: { deadLetteredAtMs: now() } }, isOpen)])
  await advanceBatch(reference)
}
