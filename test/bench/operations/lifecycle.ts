import { handler as auth } from '../../../functions/auth.ts'
import { handler as clusters } from '../../../functions/clusters.ts'
import { handler as health } from '../../../functions/health.ts'
import { handler as jobs } from '../../../functions/jobs.ts'
import { handler as dispatch } from '../../../functions/queue/jobs.ts'
import { handler as relays } from '../../../functions/relay.ts'
import { jsonRequest } from '../../support/request.ts'
import { batchLifecycle, bookAll } from './batches.ts'
import type { Perform, Work } from './perform.ts'
import { tenancy } from './tenancy.ts'
import { beat, signed } from '../support/relay.ts'
import { administrator, bearer, enrollment, getting, registration, type Tenant } from '../support/tenant.ts'

/** Everything that happens between a sign-in and the result of a job, one after another. */
export async function lifecycle(tenant: Tenant, perform: Perform, work: Work): Promise<void> {
  await perform('GET /health/live', health, { target: '/health/live' })
  await perform('GET /health/ready', health, { target: '/health/ready' })
  const { json: tokens } = await perform('POST /auth/login', auth, jsonRequest('/api/v1/auth/login', administrator))
  const { refreshToken } = tokens
  const { json: refreshed } = await perform(
    'POST /auth/refresh',
    auth,
    jsonRequest('/api/v1/auth/refresh', { refreshToken }),
  )
  await perform('GET /auth/me', auth, getting('/api/v1/auth/me', tenant.accessToken))

  await tenancy(tenant, perform)
  const { clusterId, relay } = await clusterLifecycle(tenant.accessToken, perform)
  await bookAll(tenant.organisationId)
  await jobLifecycle({ ...tenant, clusterId, relay }, perform, work)
  await work('queue: enter 3 records of a job into the books', () => bookAll(tenant.organisationId))
  await perform(
    'GET /clusters/{id}/timeline',
    clusters,
    getting(`/api/v1/clusters/${clusterId}/timeline`, tenant.accessToken),
  )
  await batchLifecycle({ ...tenant, clusterId }, perform, work)
  await perform('POST /relay/goodbye', relays, await signed(relay, '/api/v1/relay/goodbye', { reason: 'done' }))
  const removal = { ...getting(`/api/v1/clusters/${clusterId}`, tenant.accessToken), method: 'DELETE' }
  await perform('DELETE /clusters/{id}', clusters, removal)
  await perform('POST /auth/logout', auth, jsonRequest('/api/v1/auth/logout', {}, bearer(refreshed.accessToken)))
}

async function clusterLifecycle(accessToken: string, perform: Perform) {
  const { json: cluster } = await perform('POST /clusters', clusters, registration(accessToken))
  const path = `/api/v1/clusters/${cluster.id}`
  const { sent, relayOf } = enrollment(cluster.enrollmentToken)
  const relay = relayOf(await perform('POST /relay/enroll', relays, sent))
  await perform('GET /clusters/{id}', clusters, getting(path, accessToken))
  await perform('GET /clusters', clusters, getting('/api/v1/clusters', accessToken))
  const renaming = { ...jsonRequest(path, { name: `${cluster.name}-b` }, bearer(accessToken)), method: 'PATCH' }
  await perform('PATCH /clusters/{id}', clusters, renaming)
  // The first beat after an enrollment files the cluster in the index of what is due; the second is like most.
  await perform('', relays, await beat(relay))
  await perform('POST /relay/heartbeat, nothing to do', relays, await beat(relay))
  return { clusterId: String(cluster.id), relay }
}

type Runner = Tenant & Awaited<ReturnType<typeof clusterLifecycle>>

async function jobLifecycle(runner: Runner, perform: Perform, work: Work): Promise<void> {
  const { organisationId, accessToken, clusterId, relay } = runner
  const submission = { clusterId, type: 'InvokeScript', payload: { script: 'uname' } }
  const { json: job } = await perform('POST /jobs', jobs, jsonRequest('/api/v1/jobs', submission, bearer(accessToken)))
  await perform('GET /jobs/{id}, queued', jobs, getting(`/api/v1/jobs/${job.id}`, accessToken))
  const reference = JSON.stringify({ organisationId, jobId: job.id })
  await work('queue: dispatch a job', () => dispatch({ Records: [{ messageId: 'bench', body: reference }] }))
  await perform('POST /relay/heartbeat, a job waits', relays, await beat(relay))

  const path = `/api/v1/relay/jobs/${job.id}`
  const { json: claim } = await perform('POST /relay/jobs/{id}/claim', relays, await signed(relay, `${path}/claim`, {}))
  const { leaseId } = claim
  const [nodeId] = relay.nodeIds
  const output = { leaseId, seq: 0, nodeId, stream: 'stdout', data: 'Linux\n' }
  await perform('POST /relay/jobs/{id}/output', relays, await signed(relay, `${path}/output`, output))
  await perform('GET /jobs/{id}/output', jobs, getting(`/api/v1/jobs/${job.id}/output`, accessToken))
  const completion = { leaseId, outcome: 'exited', exitCode: 0, nodes: [{ nodeId, exitCode: 0 }] }
  await perform('POST /relay/jobs/{id}/complete', relays, await signed(relay, `${path}/complete`, completion))
  await perform('GET /jobs/{id}, completed', jobs, getting(`/api/v1/jobs/${job.id}`, accessToken))
}
