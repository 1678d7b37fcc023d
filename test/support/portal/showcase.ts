import { awsEnvironment } from '@platform/local/emulators/http/environment'
import { readRuntimeFile } from '@platform/local/runtime-file'
import { answered } from '../../conformance/support/answer.ts'
import { finishedBatch, jobFor, submitBatch, told } from '../../conformance/support/batch.ts'
import { over } from '../../conformance/support/modules.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import type { Relay } from '../../conformance/support/relay.ts'
import { until } from '../../conformance/support/until.ts'
import type { PlatformProcess } from '../platform.ts'
import type { Places } from './seed.ts'

/** A platform as somebody's would look on some afternoon: for pictures. */

/** What stands where: the site, the nodes, and how many of them are away. `none`: no relay has come yet. */
const fleet = {
  'fra-prod-1': { site: 'Frankfurt', nodes: 6 },
  'fra-prod-2': { site: 'Frankfurt', nodes: 6 },
  'fra-staging': { site: 'Frankfurt', nodes: 3 },
  'muc-prod-1': { site: 'Munich', nodes: 4 },
  'muc-prod-2': { site: 'Munich', nodes: 4, away: 1 },
  'ams-prod-1': { site: 'Amsterdam', nodes: 8 },
  'ams-edge-1': { site: 'Amsterdam', nodes: 2 },
  'zrh-prod-1': { site: 'Zurich', nodes: 4 },
  'zrh-archive': { site: 'Zurich', nodes: 2, away: 2 },
  'lab-kiel': { nodes: 2, type: 'CloudLocal' },
  'lab-graz': { nodes: 1, type: 'CloudLocal' },
  'ams-edge-2': { site: 'Amsterdam', nodes: 0 },
} as const satisfies Record<string, { site?: string; nodes: number; away?: number; type?: string }>

type Name = keyof typeof fleet

const names = Object.keys(fleet) as Name[]

export async function showcase(platform: PlatformProcess, api: Platform): Promise<Places> {
  const admin = await api.admin
  const installing = answered(await admin.post('/api/v1/modules/hello/install', {}), 202)
  await writeHistory(platform, api)
  const { relays, ids } = await makeFleet(api)
  const steady = names.map((name) => relays.get(name)).filter((relay) => relay !== undefined)
  const patch = { jobs: steady.slice(0, 8).map(({ clusterId }) => jobFor(clusterId, patchScript)) }
  const { batchId } = await submitBatch(api, patch)
  for (const [index, relay] of steady.slice(0, 8).entries()) {
    for (const jobId of await told(relay, [])) await end(relay, jobId, patchOutput, index === 6 ? 100 : 0)
  }
  await finishedBatch(api, batchId)
  const jobs = await makeJobs(api, steady)
  const { batchId: openBatchId } = await submitBatch(api, { jobs: patch.jobs.slice(0, 3) })
  await makeSettings(api)
  await over(api, installing)
  await until('there is news', async () => (await admin.get('/api/v1/notifications')).body.totalCount > 3)
  const clusters = {
    healthy: ids['fra-prod-1'],
    degraded: ids['muc-prod-2'],
    offline: ids['zrh-archive'],
    pending: ids['ams-edge-2'],
  }
  return { clusters, jobs, batchId, openBatchId, moduleId: 'hello' }
}

async function makeFleet(api: Platform) {
  const admin = await api.admin
  const sites = new Map<string, string>()
  for (const name of ['Frankfurt', 'Munich', 'Amsterdam', 'Zurich']) {
    sites.set(name, answered(await admin.post('/api/v1/sites', { name }), 201).id)
  }
  const relays = new Map<Name, Relay>()
  const made: [Name, string][] = []
  for (const name of names.toReversed()) {
    const { nodes, ...rest }: { nodes: number; site?: string; away?: number; type?: string } = fleet[name]
    const siteId = sites.get(rest.site ?? '')
    const cluster = await api.newCluster({ name, type: rest.type ?? 'Hypervisor', ...(siteId && { siteId }) })
    made.push([name, cluster.id])
    if (nodes === 0) continue
    const relay = await api.enroll(
      cluster.enrollmentToken,
      Array.from({ length: nodes }, (_, index) => `${name}-n${index + 1}`),
    )
    await settle(api, relay, rest.away ?? 0)
    // A beat would bring the others back.
    if (rest.away === undefined) relays.set(name, relay)
  }
  return { relays, ids: Object.fromEntries(made) as Record<Name, string> }
}

async function settle(api: Platform, relay: Relay, away: number): Promise<void> {
  const nodes = relay.nodes.map(({ id }, index) => ({ id, status: index < away ? 'Offline' : 'Online' }))
  answered(await relay.beat({ nodes }), 200)
  if (away === relay.nodes.length) answered(await relay.goodbye(), 204)
  const expected = away === 0 ? 'Healthy' : away === relay.nodes.length ? 'Offline' : 'Degraded'
  await until('the cluster stands as it should', async () => (await api.cluster(relay.clusterId)).status === expected)
}

/** A job as a relay does it, with the same output of each node. */
async function end(relay: Relay, jobId: string, output: (node: string) => string, exitCode: number): Promise<void> {
  const { leaseId } = await relay.claim(jobId)
  for (const [seq, { id, name }] of relay.nodes.entries()) {
    const report = { leaseId, seq, data: output(name), nodeId: id }
    answered(await relay.output(jobId, report), 200)
  }
  answered(await relay.complete(jobId, leaseId, exitCode), 200)
}

const patchScript = '#!/bin/sh\nset -eu\napt-get -q update\napt-get -qy upgrade\n'
const patchOutput = () => 'Reading package lists...\n4 upgraded, 0 newly installed, 0 to remove.\n'

const diskScript = `#!/bin/sh
# How full is it, and what has grown?
df -h / /var
journalctl --disk-usage
systemctl --failed --no-legend | wc -l
`
/** Each node has another number at its end. */
const diskOutput = (node: string) => {
  const usedGb = 10 + 4 * Number(node.at(-1))
  return `Filesystem      Size  Used Avail Use% Mounted on
/dev/vda1        40G   ${usedGb}G   ${40 - usedGb}G  ${Math.round((usedGb / 40) * 100)}% /
/dev/vdb1       200G   ${61 + usedGb}G  ${139 - usedGb}G  ${Math.round(((61 + usedGb) / 200) * 100)}% /var
Archived and active journals take up ${396 + usedGb}.0M in the file system.
0
`
}

async function makeJobs(api: Platform, relays: readonly Relay[]): Promise<Places['jobs']> {
  const [first, second, third, ...others] = relays
  if (!first || !second || !third) throw new Error('The fleet is too small.')
  const done = async (relay: Relay, script: string, output: (node: string) => string, exitCode: number) => {
    const jobId = await api.submit(relay.clusterId, { script })
    await api.told(relay, jobId)
    await end(relay, jobId, output, exitCode)
    return jobId
  }
  for (const relay of others.slice(0, 4))
    await done(relay, 'uptime', () => ' 14:02:11 up 41 days, load average: 0.08\n', 0)
  const failed = await done(second, 'systemctl restart nginx', () => 'Unit nginx.service not found.\n', 5)
  const completed = await done(third, diskScript, diskOutput, 0)
  const { jobId: running, leaseId } = await api.running(first, { script: patchScript })
  answered(await first.output(running, { leaseId, seq: 0, data: 'Reading package lists...\n' }), 200)
  const queued = await api.submit(first.clusterId, { script: 'reboot' })
  const cancelled = await api.submit(second.clusterId, { script: 'fstrim --all' })
  answered(await (await api.admin).post(`/api/v1/jobs/${cancelled}/cancel`), 202)
  return { completed, failed, running, queued, cancelled }
}

async function makeSettings(api: Platform): Promise<void> {
  const admin = await api.admin
  const events = ['platform.job.failed', 'platform.cluster.status_changed']
  const made: [path: string, body: object][] = [
    ['/api/v1/users/me/tokens', { name: 'nightly report' }],
    ['/api/v1/users/me/saved-filters', { name: 'Offline ones', context: 'clusters', filter: { status: 'Offline' } }],
    ['/api/v1/webhooks', { url: 'https://hooks.example.com/platform', events, enabled: false }],
    ['/api/v1/platform/organisations', { name: 'Globex' }],
    ...['grace', 'linus', 'margaret'].map((username, index): [string, object] => [
      '/api/v1/users',
      {
        username,
        email: `${username}@example.com`,
        password: 'correct horse battery',
        roles: [['Operator', 'Viewer', 'Auditor'][index]],
      },
    ]),
  ]
  for (const [path, body] of made) answered(await admin.post(path, body), 201)
}

const hourMs = 3_600_000
const slotMs = hourMs / 4
const daySlots = 96

/** What the charts show of the day before: straight into the store, as the platform would have written it. */
async function writeHistory(platform: PlatformProcess, api: Platform): Promise<void> {
  const { organisationId } = answered(await (await api.admin).get('/api/v1/auth/me'), 200)
  const environment = awsEnvironment({ ...(await readRuntimeFile(platform.dataDir)), sqsUrl: '' })
  const [{ writeItems }, keys] = await Promise.all([
    import('../../../bench/paging/write.ts'),
    import('@platform/core/db/keys'),
  ])
  const nowMs = Math.floor(Date.now() / slotMs) * slotMs
  const items = Array.from({ length: daySlots }, (_, index) => {
    const slot = nowMs - (daySlots - index) * slotMs
    // Busy by day, quiet by night, with a maintenance window; the same each time.
    const wave = Math.cos(((slot / hourMs - 12) / 24) * 2 * Math.PI) + 1
    const completed = Math.round(4 + 7 * wave + ((index * 7) % 5))
    const failed = index % 11 === 0 ? 3 : index % 4 === 0 ? 1 : 0
    const [away, ill] = [index > 60 && index < 68 ? 3 : 1, index % 17 < 4 ? 2 : 1]
    const ttl = Math.ceil(slot / 1000) + 31 * 86_400
    return [
      { ...keys.jobHistory(organisationId, slot), submitted: completed + failed, completed, failed, cancelled: 0, ttl },
      {
        ...keys.clusterHistory(organisationId, slot),
        Healthy: 11 - away - ill,
        Degraded: ill,
        Offline: away,
        Pending: 1,
        revision: 0,
        ttl,
      },
    ]
  })
  await writeItems(environment, items.flat())
}
