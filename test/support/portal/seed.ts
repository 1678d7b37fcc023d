import { expectStatus } from '../../conformance/support/answer.ts'
import { waitForBatch, jobFor, submitBatch, waitForJobs } from '../../conformance/support/batch.ts'
import { waitForJobEnd } from '../../conformance/support/modules.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import type { Relay } from '../../conformance/support/relay.ts'
import { waitFor } from '../wait-for.ts'

/** Keeps clusters Healthy although the relays of the tests send no regular heartbeats. */
export const slowHeartbeat = { PLAT_HEARTBEAT_INTERVAL_SECONDS: '600' }

export interface OrganisationIds {
  clusters: { healthy: string; degraded: string; offline: string; pending: string }
  jobs: { completed: string; failed: string; running: string; queued: string; cancelled: string }
  batchId: string
  openBatchId: string
}

export interface SeedIds extends OrganisationIds {
  moduleId: string
}

const settings = {
  '/api/v1/users/me/tokens': { name: 'nightly report' },
  '/api/v1/users/me/saved-filters': { name: 'Offline ones', context: 'clusters', filter: { status: 'Offline' } },
  '/api/v1/webhooks': {
    url: 'https://hooks.example.com/platform',
    events: ['platform.job.failed', 'platform.cluster.status_changed'],
    enabled: false,
  },
  '/api/v1/platform/organisations': { name: 'Acme' },
  '/api/v1/sites': { name: 'Frankfurt' },
  '/api/v1/platform/identity/providers': {
    type: 'CloudDirectory',
    tenantId: '00000000-0000-4000-8000-000000000000',
    clientId: 'platform',
    clientSecret: 'client secret',
    displayName: 'Acme directory',
    enabled: false,
  },
}

export async function seed(api: Platform): Promise<SeedIds> {
  const installation = expectStatus(await (await api.admin).post('/api/v1/modules/hello/install', {}), 202)
  const ids = await seedOrganisation(api)
  for (const [path, body] of Object.entries(settings)) expectStatus(await (await api.admin).post(path, body), 201)
  await waitForJobEnd(api, installation)
  return { ...ids, moduleId: 'hello' }
}

export async function seedOrganisation(api: Platform): Promise<OrganisationIds> {
  const [berlin, munich, cologne, pending] = await seedClusters(api)
  const batch = { jobs: [berlin, munich].map(({ clusterId }) => jobFor(clusterId, 'uptime')) }
  const { batchId } = await submitBatch(api, batch)
  for (const relay of [berlin, munich]) {
    const [jobId = ''] = await waitForJobs(relay, [])
    await runJob(relay, jobId, ' 09:14:02 up 41 days, load average: 0.08\n', relay === berlin ? 0 : 127)
  }
  await waitForBatch(api, batchId)
  const jobs = await seedJobs(api, berlin)
  const { batchId: openBatchId } = await submitBatch(api, batch)
  await Promise.all(['Operator', 'Viewer', 'Auditor'].map((role) => api.newUser(role)))
  const admin = await api.admin
  await waitFor('notifications', async () => (await admin.get('/api/v1/notifications')).body.totalCount >= 2)
  const clusters = { healthy: berlin.clusterId, degraded: munich.clusterId, offline: cologne.clusterId, pending }
  return { clusters, jobs, batchId, openBatchId }
}

async function seedClusters(api: Platform): Promise<[Relay, Relay, Relay, string]> {
  const enroll = async (name: string, ...nodes: string[]) =>
    api.enroll((await api.newCluster({ name })).enrollmentToken, nodes)
  const berlin = await enroll('berlin-1', 'bln-a', 'bln-b', 'bln-c')
  const munich = await enroll('munich-1', 'muc-a', 'muc-b')
  const cologne = await enroll('cologne-1', 'cgn-a')
  const { id: pending } = await api.newCluster({ name: 'hamburg-1', type: 'CloudLocal' })
  await reportNodes(api, berlin, 0)
  await reportNodes(api, munich, 1)
  await reportNodes(api, cologne, 1)
  return [berlin, munich, cologne, pending]
}

export async function reportNodes(api: Platform, relay: Relay, offline: number): Promise<void> {
  const nodes = relay.nodes.map(({ id }, index) => ({ id, status: index < offline ? 'Offline' : 'Online' }))
  expectStatus(await relay.heartbeat({ nodes }), 200)
  const isGone = offline === relay.nodes.length
  if (isGone) expectStatus(await relay.goodbye(), 204)
  const expected = offline === 0 ? 'Healthy' : isGone ? 'Offline' : 'Degraded'
  await waitFor(`status ${expected}`, async () => (await api.cluster(relay.clusterId)).status === expected)
}

async function runJob(relay: Relay, jobId: string, output: string, exitCode: number): Promise<void> {
  const { leaseId } = await relay.claim(jobId)
  const report = { leaseId, seq: 0, data: output, nodeId: relay.nodes[0]?.id }
  expectStatus(await relay.output(jobId, report), 200)
  expectStatus(await relay.complete(jobId, leaseId, exitCode), 200)
}

export async function submitAndRun(api: Platform, relay: Relay, script: string, output: string, exitCode = 0) {
  const jobId = await api.submit(relay.clusterId, { script })
  await api.waitForOffer(relay, jobId)
  await runJob(relay, jobId, output, exitCode)
  return jobId
}

async function seedJobs(api: Platform, relay: Relay): Promise<OrganisationIds['jobs']> {
  const completedId = await submitAndRun(api, relay, '#!/bin/sh\ndf -h /\n', '/dev/vda1   40G   11G   27G  29% /\n')
  const failedId = await submitAndRun(api, relay, 'systemctl restart nginx', 'Unit nginx.service not found.\n', 5)
  const { jobId: running, leaseId } = await api.startJob(relay, { script: 'apt-get -y upgrade' })
  expectStatus(await relay.output(running, { leaseId, seq: 0, data: 'Reading package lists...\n' }), 200)
  const heartbeat = () => relay.heartbeat({ running: [running], freeSlots: 0 })
  // The platform may have stopped.
  setInterval(() => void heartbeat().catch(() => undefined), 180_000).unref()
  const queuedId = await api.submit(relay.clusterId, { script: 'reboot' })
  const cancelledId = await api.submit(relay.clusterId, { script: 'uname -a' })
  expectStatus(await (await api.admin).post(`/api/v1/jobs/${cancelledId}/cancel`), 202)
  return { completed: completedId, failed: failedId, running, queued: queuedId, cancelled: cancelledId }
}
