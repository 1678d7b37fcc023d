import { randomUUID } from 'node:crypto'
import { expectStatus, describeResponse } from '../../conformance/support/answer.ts'
import { jobFor, submitBatch } from '../../conformance/support/batch.ts'
import { findCatalogItem, waitForJobEnd } from '../../conformance/support/modules.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import { newRelayKey, Relay } from '../../conformance/support/relay.ts'
import { programOf } from '../author.ts'
import { isLong } from '../long.ts'
import { pushModuleImage, writtenManifest } from '../module-registry.ts'
import type { PlatformProcess } from '../platform.ts'
import { registryOf } from '../registry.ts'
import { waitFor } from '../wait-for.ts'

/** Texts that set `__xss` (see page-errors.ts) if a page executes them. Each one fits in a cluster name. */
const allTexts = [
  '<img src=x onerror=alert(__xss=2)>',
  '"></textarea><svg/onload=alert(__xss=0)>',
  '<script>alert(__xss=1)</script>',
  '<svg/onload=alert(__xss=3)>',
  '"><b autofocus tabindex=1 onfocus=alert(__xss=4),remove()>',
  `' autofocus onfocus='alert(__xss=5),remove()' x='`,
  'javascript:alert(__xss=6)',
  ' java\tscript:alert(__xss=7)//https://example.com',
  '<iframe srcdoc="<script>parent.__xss=8;alert(8)</script>">',
  '</textarea></title></style><script>alert(__xss=9)</script>',
  `--></script>'"/*<svg/onload=alert(__xss=10)>*/`,
  'data:text/html,<script>alert(__xss=11)</script>',
  '{{constructor.constructor("alert(__xss=12)")()}}${7*7}#{7*7}',
  '\uFF1Cscript\uFF1Ealert(__xss=13)\uFF1C/script\uFF1E\u202E\u2028<\u0130mg>',
  '&lt;img src=x onerror=alert(__xss=14)&gt;&#60;b&#62;',
  "';x:expression(alert(__xss=15));y:url(javascript:alert(1))",
]
export const payloads = isLong ? allTexts : allTexts.slice(0, 2)

export const storedPayloads = payloads.map((text) => text.trim().replaceAll(/[\t\u2028\u202E]/g, ''))

/** Creates a cluster with hostile texts and a failed job, which causes a notification. */
export async function hostileCluster(api: Platform, text: string): Promise<{ relay: Relay; jobId: string }> {
  const { enrollmentToken } = await api.newCluster({ name: text })
  const key = newRelayKey()
  const names = { displayName: text, hostname: text, platform: text, relayVersion: text }
  const body = { enrollmentToken, publicKey: key.publicKey, ...names, nodes: [{ name: text }, { name: 'other' }] }
  const relay = new Relay(api.anonymous, key, expectStatus(await api.anonymous.post('/api/v1/relay/enroll', body), 201))
  const { jobId, leaseId } = await api.startJob(relay, { script: `#!${text}\n${text}` })
  const data = `${text}\n\u001B]8;;javascript:alert(__xss=20)\u0007${text}\u001B]8;;\u0007\u001B[31m${text}\n`
  expectStatus(await relay.output(jobId, { leaseId, seq: 0, data }), 200)
  expectStatus(await relay.complete(jobId, leaseId, 1), 200)
  return { relay, jobId }
}

export const hostileParts = {
  lines: storedPayloads,
  slots: storedPayloads
    .filter((text) => text.length <= 40)
    .map((label, index) => ({
      slotId: index % 2 === 0 ? ('nav.primary' as const) : ('nav.settings' as const),
      id: `entry-${index}`,
      label,
      icon: 'bug',
      route: '/modules/hostile' as const,
      order: 100 + index,
    })),
  jobs: storedPayloads.map((description, index) => ({ id: `job-${index}`, description, intervalSeconds: 3600 })),
  checks: storedPayloads.map((description, index) => ({ name: `check-${index}`, description })),
}

export type HostileParts = typeof hostileParts

export async function hostileSeed(platform: PlatformProcess, api: Platform) {
  const installation = hostileModules(platform, api)
  for (const [path, body] of Object.entries(resources)) await createEach(api, path, body)
  const created: Awaited<ReturnType<typeof hostileCluster>>[] = []
  for (const text of storedPayloads) created.push(await hostileCluster(api, text))
  const clusters = created.map(({ relay }) => relay.clusterId)
  const jobs = created.map(({ jobId }) => jobId)
  const batch = clusters.map((clusterId, index) => jobFor(clusterId, storedPayloads[index]))
  const { batchId } = await submitBatch(api, { jobs: batch })
  const [healthy = '', degraded = healthy] = clusters
  const [completed = '', failed = completed] = jobs
  const ids = {
    clusters: { healthy, degraded, offline: healthy, pending: degraded },
    jobs: { completed, failed, running: completed, queued: failed, cancelled: completed },
    batchId,
    openBatchId: batchId,
    moduleId: 'hostile',
  }
  return { clusters, jobs, failedJob: await installation, ids }
}

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

/** Throws if the API rejects more than half of the payloads, because few of them would reach the portal. */
async function createEach(api: Platform, path: string, body: (text: string) => object): Promise<void> {
  const admin = await api.admin
  const rejectedResponses: Parameters<typeof describeResponse>[0][] = []
  for (const text of storedPayloads) {
    const response = await admin.post(path, body(text))
    if (response.status >= 300) rejectedResponses.push(response)
  }
  const [rejection] = rejectedResponses
  if (rejection && rejectedResponses.length > storedPayloads.length / 2)
    throw new Error(`Most payloads were rejected: ${describeResponse(rejection)}`)
}

async function hostileModules(platform: PlatformProcess, api: Platform): Promise<string> {
  const client = await registryOf(platform)
  const push = async (id: string, text: string, spec: object, command?: string) => {
    const metadata = { name: text, description: text, author: text, publisher: text, license: text }
    const image = `${client.registry}/modules/${id}:1.0.0`
    const { program, args } = await programOf(command)
    // The payloads are arguments, because a module process does not get the environment that selects them.
    const parts = command === undefined ? [] : [JSON.stringify(hostileParts)]
    await pushModuleImage(client, id, {
      manifest: writtenManifest(id, '1.0.0', { image, ...spec }, metadata),
      files: [{ path: '/app/main.mjs', content: program }],
      config: { Entrypoint: ['node', '/app/main.mjs', ...parts, ...args], WorkingDir: '/app' },
    })
  }
  const [text = ''] = storedPayloads
  const spec = {
    backgroundJobs: hostileParts.jobs,
    healthChecks: hostileParts.checks.map(({ name }) => ({ name, path: `/health/${name}`, tags: ['informational'] })),
  }
  await push('hostile', text, { ...spec, navSlots: hostileParts.slots }, 'hostile')
  await push('broken', text, spec, 'hostile broken fails')
  for (const [index, each] of storedPayloads.entries()) await push(`offer-${index}`, each, {})

  const admin = await api.admin
  expectStatus(await admin.post('/api/v1/modules/catalog/scan'), 202)
  const last = `offer-${storedPayloads.length - 1}`
  await waitFor('catalog entries', async () => (await findCatalogItem(admin, last)) && findCatalogItem(admin, 'broken'))
  const install = async (id: string, status: string): Promise<string> => {
    const job = await waitForJobEnd(api, expectStatus(await admin.post(`/api/v1/modules/${id}/install`, {}), 202))
    if (job.status !== status) throw new Error(`The installation of ${id} has ${job.status}: ${job.result?.output}`)
    return job.id
  }
  await install('hostile', 'Completed')
  return install('broken', 'Failed')
}
