import { randomUUID } from 'node:crypto'
import { type Answer, answered, show } from '../../conformance/support/answer.ts'
import type { Client } from '../../conformance/support/client.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import { newRelayKey, Relay } from '../../conformance/support/relay.ts'
import { hostileModules } from './hostile-modules.ts'
import { lines } from './hostile-parts.ts'
import type { Places } from './seed.ts'
import type { PlatformProcess } from '../platform.ts'

/** Where hostile texts are to be seen: `places` is one of each kind. */
export interface HostileSeed {
  clusters: string[]
  jobs: string[]
  /** The installation of the module `broken`. */
  failedJob: string
  places: Places
}

/** Puts hostile texts wherever a platform keeps a text of its users, its relays, their scripts and its modules. */
export async function hostileSeed(platform: PlatformProcess, api: Platform): Promise<HostileSeed> {
  const admin = await api.admin
  const installed = hostileModules(platform, api)
  for (const make of [sites, tokens, filters, organisations, providers, webhooks, entries])
    await everywhere(admin, make)
  const made = await taken(lines.map((text) => admin.post('/api/v1/clusters', { name: text, type: 'Hypervisor' })))
  const clusters: string[] = made.map(({ id }) => id)
  const jobs: string[] = []
  for (const [index, { id, enrollmentToken }] of made.entries()) {
    const text = lines[index] ?? ''
    jobs.push(await hostileJob(api, await hostileRelay(api, enrollmentToken, text), id, text))
  }
  const batch = clusters.map((clusterId, index) => ({
    clusterId,
    type: 'InvokeScript',
    payload: { script: lines[index] },
  }))
  const { batchId } = answered(await admin.post('/api/v1/jobs/batch', { jobs: batch }), 202)
  const failedJob = await installed
  return { clusters, jobs, failedJob, places: placesOf(clusters, jobs, batchId) }
}

function placesOf(clusters: readonly string[], jobs: readonly string[], batchId: string): Places {
  const [healthy = '', degraded = healthy, offline = healthy, pending = healthy] = clusters
  const [completed = '', failed = completed, running = completed, queued = completed, cancelled = completed] = jobs
  return {
    clusters: { healthy, degraded, offline, pending },
    jobs: { completed, failed, running, queued, cancelled },
    batchId,
    openBatchId: batchId,
    moduleId: 'hostile',
  }
}

type Make = (admin: Client, text: string) => Promise<Answer>

const sites: Make = (admin, name) => admin.post('/api/v1/sites', { name })
const tokens: Make = (admin, name) => admin.post('/api/v1/users/me/tokens', { name })
const organisations: Make = (admin, name) => admin.post('/api/v1/platform/organisations', { name })
const filters: Make = (admin, text) =>
  admin.post('/api/v1/users/me/saved-filters', {
    name: text,
    context: 'clusters',
    filter: { status: text, search: text },
  })
const webhooks: Make = (admin, text) =>
  admin.post('/api/v1/webhooks', {
    url: `https://hooks.example.com/${text}`,
    events: ['platform.job.failed'],
    enabled: false,
  })
const entries: Make = (admin, text) =>
  admin.post('/api/v1/platform/audit', { action: text, resource: text, detail: text })
const providers: Make = (admin, text) =>
  admin.post('/api/v1/platform/identity/providers', {
    type: 'CloudDirectory',
    tenantId: randomUUID(),
    clientId: text,
    clientSecret: text,
    displayName: text,
    // The page for signing in offers it.
    enabled: true,
  })

/** Most texts have to get in: what is refused at the door shows nothing about the portal. */
async function everywhere(admin: Client, make: Make): Promise<void> {
  const answers: Answer[] = []
  for (const text of lines) answers.push(await make(admin, text))
  const refused = answers.filter(({ status }) => status >= 300)
  const [first] = refused
  if (first && refused.length > lines.length / 2) throw new Error(`Too few texts get in: ${show(first)}`)
}

const taken = async (asked: Promise<Answer>[]): Promise<any[]> =>
  (await Promise.all(asked)).map((answer) => answered(answer, 201))

async function hostileRelay(api: Platform, enrollmentToken: string, text: string): Promise<Relay> {
  const key = newRelayKey()
  const said = {
    displayName: text,
    hostname: text,
    platform: text,
    relayVersion: text,
    nodes: [{ name: text }, { name: 'other' }],
  }
  const body = { enrollmentToken, publicKey: key.publicKey, ...said }
  return new Relay(api.anonymous, key, answered(await api.anonymous.post('/api/v1/relay/enroll', body), 201))
}

/** A job whose script, output and error are hostile. It fails, so that there is a notification. */
async function hostileJob(api: Platform, relay: Relay, clusterId: string, text: string): Promise<string> {
  const jobId = await api.submit(clusterId, { script: `#!${text}\n${text}` })
  await api.told(relay, jobId)
  const { leaseId } = await relay.claim(jobId)
  const data = `${text}\n\u001B]8;;javascript:alert(__xss=20)\u0007${text}\u001B]8;;\u0007\u001B[31m${text}\n`
  answered(await relay.output(jobId, { leaseId, seq: 0, data }), 200)
  answered(await relay.complete(jobId, leaseId, 1), 200)
  return jobId
}
