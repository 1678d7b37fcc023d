import { handler as jobs } from '../../../functions/jobs.ts'
import { handler as tend } from '../../../functions/queue/batches.ts'
import { handler as book } from '../../../functions/queue/events.ts'
import { submission } from '../batch/submissions.ts'
import { bearer, getting, type Tenant } from '../support/tenant.ts'
import { jsonRequest } from '../../support/request.ts'
import type { Perform, Work } from './perform.ts'

/** A small batch from its submission until it is cancelled. */
export async function batchLifecycle(
  { organisationId, accessToken, clusterId }: Tenant & { clusterId: string },
  perform: Perform,
  work: Work,
): Promise<void> {
  const request = submission(accessToken, [clusterId, clusterId], () => 'uname')
  const { json: batch } = await perform('POST /jobs/batch, 2 jobs', jobs, request)
  const firstJob = getting(`/api/v1/jobs/${batch.jobIds[0]}`, accessToken)
  await perform('GET /jobs/{id}, of a batch before it is expanded', jobs, firstJob)
  const reference = JSON.stringify({ organisationId, batchId: batch.batchId })
  await work('queue: expand a batch of 2 jobs', () => tend({ Records: [{ messageId: 'bench', body: reference }] }))
  await work('queue: enter 2 records of a batch into the books', () => bookAll(organisationId))
  await perform('GET /jobs/{id}, of a batch', jobs, firstJob)
  const path = `/api/v1/jobs/batch/${batch.batchId}`
  await perform('GET /jobs/batch/{id}', jobs, getting(path, accessToken))
  await perform('GET /jobs/batch', jobs, getting('/api/v1/jobs/batch', accessToken))
  await perform('GET /jobs', jobs, getting('/api/v1/jobs', accessToken))
  await perform('POST /jobs/batch/{id}/cancel', jobs, jsonRequest(`${path}/cancel`, {}, bearer(accessToken)))
  await work('queue: cancel 2 jobs of a batch', () => tend({ Records: [{ messageId: 'bench', body: reference }] }))
  await bookAll(organisationId)
}

/** Enters whatever an organisation's outbox holds into the books. */
export const bookAll = (organisationId: string) =>
  book({ Records: [{ messageId: 'bench', body: JSON.stringify({ organisationId }) }] })
