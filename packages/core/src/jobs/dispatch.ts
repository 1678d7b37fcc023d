import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { create, get, patch } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { failpoint } from '../lib/failpoint.ts'
import { isTerminal, parseJob } from './record.ts'
import { enqueueProjections, type JobReference } from '../aws/queues.ts'
import { wakeRelay } from '../aws/wake-relay.ts'

/** Idempotent, because the message may arrive twice. */
export async function dispatch({ organisationId, jobId }: JobReference): Promise<void> {
  const item = await get(keys.job(organisationId, jobId))
  if (item === undefined) return
  const job = parseJob(item)
  if (isTerminal(job)) return
  if (job.status === 'Queued' && job.dispatchedAtMs === undefined && !job.isThrottled) {
    await transact([
      patch(
        keys.job(organisationId, jobId),
        { set: { dispatchedAtMs: now(), ...keys.due(jobId, job.expiresAtMs) } },
        { status: { is: 'Queued' }, dispatchedAtMs: { absent: true } },
      ),
      patch(keys.cluster(organisationId, job.clusterId), { add: { waitingJobs: 1 } }),
      create(keys.inbox(job.clusterId, jobId), {}),
    ])
  }
  await failpoint('dispatch.written')
  await Promise.all([wakeRelay(job.clusterId), enqueueProjections(organisationId)])
}
