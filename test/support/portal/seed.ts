import { answered } from '../../conformance/support/answer.ts'
import { finishedBatch, jobFor, submitBatch, told } from '../../conformance/support/batch.ts'
import { over } from '../../conformance/support/modules.ts'
import type { Person } from '../../conformance/support/person.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import type { Relay } from '../../conformance/support/relay.ts'
import { until } from '../../conformance/support/until.ts'

/** Settings under which what the seed has made stays as it is: its relays do not beat, and nothing is late. */
export const lasting = { PLAT_HEARTBEAT_INTERVAL_SECONDS: '600' }

/** What an organisation holds that has been in use for a while, by what it is. */
export interface Seed {
  /** Healthy, Degraded, Offline and Pending. */
  clusters: { healthy: string; degraded: string; offline: string; pending: string }
  jobs: { completed: string; failed: string; running: string; queued: string; cancelled: string }
  /** One that is over and of which a job has failed, and one that goes on. */
  batchId: string
  openBatchId: string
  people: { operator: Person; viewer: Person; auditor: Person }
}

/** What the pages about single things can be opened for. */
export interface Places extends Omit<Seed, 'people'> {
  /** One that is installed and has a page. */
  moduleId: string
}

/** Fills a platform that has just been set up: something of all that there is. The module `hello` is installed. */
export async function seed(api: Platform): Promise<Places> {
  const admin = await api.admin
  const installing = answered(await admin.post('/api/v1/modules/hello/install', {}), 202)
  const seeded = await seedOrganisation(api)
  await seedSettings(api)
  await over(api, installing)
  return { ...seeded, moduleId: 'hello' }
}

/** Fills an organisation: clusters, jobs, people, and what there is to tell of them. */
export async function seedOrganisation(api: Platform): Promise<Seed> {
  const admin = await api.admin
  const [berlin, munich, cologne, pending] = await seedClusters(api)
  const both = { jobs: [berlin, munich].map(({ clusterId }) => jobFor(clusterId, 'uptime')) }
  const { batchId } = await submitBatch(api, both)
  for (const relay of [berlin, munich]) {
    const exitCode = relay === berlin ? 0 : 127
    for (const jobId of await told(relay, [])) {
      await run(relay, jobId, ' 09:14:02 up 41 days, load average: 0.08\n', exitCode)
    }
  }
  await finishedBatch(api, batchId)
  const jobs = await seedJobs(api, berlin)
  const { batchId: openBatchId } = await submitBatch(api, both)
  const [operator, viewer, auditor] = await Promise.all(
    ['Operator', 'Viewer', 'Auditor'].map((role) => api.newPerson(role)),
  )
  await until('there are notifications', async () => (await admin.get('/api/v1/notifications')).body.totalCount > 1)
  const clusters = { healthy: berlin.clusterId, degraded: munich.clusterId, offline: cologne.clusterId, pending }
  const people = { operator, viewer, auditor } as Seed['people']
  return { clusters, jobs, batchId, openBatchId, people }
}

async function seedClusters(api: Platform): Promise<[Relay, Relay, Relay, string]> {
  const enroll = async (name: string, ...nodes: string[]) => {
    const { enrollmentToken } = await api.newCluster({ name })
    return api.enroll(enrollmentToken, nodes)
  }
  const berlin = await enroll('berlin-1', 'bln-a', 'bln-b', 'bln-c')
  const munich = await enroll('munich-1', 'muc-a', 'muc-b')
  const cologne = await enroll('cologne-1', 'cgn-a')
  const { id: pending } = await api.newCluster({ name: 'hamburg-1', type: 'CloudLocal' })
  for (const relay of [berlin, cologne]) answered(await relay.beat(), 200)
  const nodes = munich.nodes.map(({ id }, index) => ({ id, status: index === 0 ? 'Offline' : 'Online' }))
  answered(await munich.beat({ nodes }), 200)
  answered(await cologne.goodbye(), 204)
  await until('munich-1 is Degraded', async () => (await api.cluster(munich.clusterId)).status === 'Degraded')
  return [berlin, munich, cologne, pending]
}

/** A job as a relay does it: claimed, told of, and ended with an exit code. */
async function run(relay: Relay, jobId: string, data: string, exitCode: number): Promise<void> {
  const { leaseId } = await relay.claim(jobId)
  answered(await relay.output(jobId, { leaseId, seq: 0, data }), 200)
  answered(await relay.complete(jobId, leaseId, exitCode), 200)
}

async function seedJobs(api: Platform, relay: Relay): Promise<Seed['jobs']> {
  const done = async (script: string, data: string, exitCode: number) => {
    const jobId = await api.submit(relay.clusterId, { script })
    await api.told(relay, jobId)
    await run(relay, jobId, data, exitCode)
    return jobId
  }
  const completed = await done('#!/bin/sh\ndf -h /\n', '/dev/vda1   40G   11G   27G  29% /\n', 0)
  const failed = await done('systemctl restart nginx', 'Unit nginx.service not found.\n', 5)
  const { jobId: running, leaseId } = await api.running(relay, { script: 'apt-get -y upgrade' })
  answered(await relay.output(running, { leaseId, seq: 0, data: 'Reading package lists...\n' }), 200)
  keepLease(relay, running)
  const queued = await api.submit(relay.clusterId, { script: 'reboot' })
  const cancelled = await api.submit(relay.clusterId, { script: 'uname -a' })
  answered(await (await api.admin).post(`/api/v1/jobs/${cancelled}/cancel`), 202)
  return { completed, failed, running, queued, cancelled }
}

/** As the relay does that runs it: without a beat a job is lost after ten minutes, and some tests take longer. */
function keepLease(relay: Relay, jobId: string): void {
  const beat = () => relay.beat({ running: [jobId], freeSlots: 0 })
  // The platform may have ended by then.
  setInterval(() => void beat().catch(() => undefined), 180_000).unref()
}

async function seedSettings(api: Platform): Promise<void> {
  const admin = await api.admin
  const made: [path: string, body: object][] = [
    ['/api/v1/sites', { name: 'Frankfurt' }],
    ['/api/v1/users/me/tokens', { name: 'nightly report' }],
    ['/api/v1/users/me/saved-filters', { name: 'Offline ones', context: 'clusters', filter: { status: 'Offline' } }],
    [
      '/api/v1/webhooks',
      { url: 'https://hooks.example.com/platform', events: ['platform.job.failed'], enabled: false },
    ],
    ['/api/v1/platform/organisations', { name: 'Acme' }],
    ['/api/v1/platform/identity/providers', provider],
  ]
  for (const [path, body] of made) answered(await admin.post(path, body), 201)
}

const provider = {
  type: 'CloudDirectory',
  tenantId: '00000000-0000-4000-8000-000000000000',
  clientId: 'platform',
  clientSecret: 'a secret that nobody shall see again',
  displayName: 'Acme directory',
  enabled: false,
}
