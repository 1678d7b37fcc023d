import { randomUUID } from 'node:crypto'
import { type Answer, expectStatus, show } from '../../conformance/support/answer.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import { newRelayKey, Relay } from '../../conformance/support/relay.ts'
import { hostileModules } from './hostile-modules.ts'
import { storedPayloads as texts } from './payloads.ts'
import type { SeedIds } from './seed.ts'
import type { PlatformProcess } from '../platform.ts'

/** Ids of resources with payloads; `ids` has one of each kind. */
export interface HostileSeed {
  clusters: string[]
  jobs: string[]
  /** The failed installation of the module `broken`. */
  failedJob: string
  ids: SeedIds
}

/** Stores payloads in every text of users, relays, scripts and modules. */
export async function hostileSeed(platform: PlatformProcess, api: Platform): Promise<HostileSeed> {
  const admin = await api.admin
  const installed = hostileModules(platform, api)
  for (const [path, body] of Object.entries(resources)) await createEach(api, path, body)
  const clusters: string[] = []
  const jobs: string[] = []
  for (const text of texts) {
    const { id, enrollmentToken } = await api.newCluster({ name: text })
    clusters.push(id)
    jobs.push(await failedJob(api, await hostileRelay(api, enrollmentToken, text), text))
  }
  const batch = clusters.map((clusterId, index) => ({
    clusterId,
    type: 'InvokeScript',
    payload: { script: texts[index] },
  }))
  const { batchId } = expectStatus(await admin.post('/api/v1/jobs/batch', { jobs: batch }), 202)
  const [cluster = '', otherCluster = cluster] = clusters
  const [job = '', otherJob = job] = jobs
  return {
    clusters,
    jobs,
    failedJob: await installed,
    ids: {
      clusters: { healthy: cluster, degraded: otherCluster, offline: cluster, pending: otherCluster },
      jobs: { completed: job, failed: otherJob, running: job, queued: otherJob, cancelled: job },
      batchId,
      openBatchId: batchId,
      moduleId: 'hostile',
    },
  }
}

/** Bodies with a payload, by the path that creates the resource. */
const resources: Record<string, (text: string) => object> = {
  '/api/v1/sites': (name) => ({ name }),
  '/api/v1/users/me/tokens': (name) => ({ name }),
  '/api/v1/users/me/saved-filters': (text) => ({
    name: text,
    context: 'clusters',
    filter: { status: text, search: text },
  }),
  '/api/v1/platform/organisations': (name) => ({ name }),
  '/api/v1/platform/identity/providers': (text) => ({
    type: 'CloudDirectory',
    tenantId: randomUUID(),
    clientId: text,
    clientSecret: text,
    displayName: text,
    enabled: true,
  }),
  '/api/v1/webhooks': (text) => ({
    url: `https://hooks.example.com/${text}`,
    events: ['platform.job.failed'],
    enabled: false,
  }),
  '/api/v1/platform/audit': (text) => ({ action: text, resource: text, detail: text }),
}

/** Throws if the API rejects most payloads: the portal would not be tested. */
async function createEach(api: Platform, path: string, body: (text: string) => object): Promise<void> {
  const admin = await api.admin
  const responses: Answer[] = []
  for (const text of texts) responses.push(await admin.post(path, body(text)))
  const rejected = responses.filter(({ status }) => status >= 300)
  const [first] = rejected
  if (first && rejected.length > texts.length / 2) throw new Error(`Too many payloads were rejected: ${show(first)}`)
}

async function hostileRelay(api: Platform, enrollmentToken: string, text: string): Promise<Relay> {
  const key = newRelayKey()
  const texts = { displayName: text, hostname: text, platform: text, relayVersion: text }
  const body = { enrollmentToken, publicKey: key.publicKey, ...texts, nodes: [{ name: text }, { name: 'other' }] }
  return new Relay(api.anonymous, key, expectStatus(await api.anonymous.post('/api/v1/relay/enroll', body), 201))
}

/** A job with payloads in script and output. It fails, so that it causes a notification. */
async function failedJob(api: Platform, relay: Relay, text: string): Promise<string> {
  const { jobId, leaseId } = await api.running(relay, { script: `#!${text}\n${text}` })
  const data = `${text}\n\u001B]8;;javascript:alert(__xss=20)\u0007${text}\u001B]8;;\u0007\u001B[31m${text}\n`
  expectStatus(await relay.output(jobId, { leaseId, seq: 0, data }), 200)
  expectStatus(await relay.complete(jobId, leaseId, 1), 200)
  return jobId
}
