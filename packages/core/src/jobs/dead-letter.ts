import { advanceBatch } from './batches/advance.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { patch } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import type { BatchReference } from '../aws/queues.ts'

/** Only jobs that are not yet created fail; the others continue. */
export async function deadLetterBatch(reference: BatchReference): Promise<void> {
  const { organisationId, batchId } = reference
  const openCondition = { starts: { present: true }, deadLetteredAtMs: { absent: true } } as const
  await transact([patch(keys.batch(organisationId, batchId), { set: { deadLetteredAtMs: now() } }, openCondition)])
  await advanceBatch(reference)
}
