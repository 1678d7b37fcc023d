import { awsEnvironment } from '@platform/local/emulators/http/environment'
import { readRuntimeFile } from '@platform/local/runtime-file'
import { expectStatus } from '../../conformance/support/answer.ts'
import { jobFor, submitBatch } from '../../conformance/support/batch.ts'
import { over } from '../../conformance/support/modules.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import type { Relay } from '../../conformance/support/relay.ts'
import type { PlatformProcess } from '../platform.ts'
import {
  reportNodes,
  runBatch,
  runJob,
  seedJobs,
  type SeedIds,
  seedSettings,
  submitAndRun,
  waitForNotifications,
} from './seed.ts'

/** The clusters of the screenshots: name, site, nodes and how many of them are offline. */
const fleet: [name: string, site: string, nodes: number, offline: number][] = [
  ['fra-prod-1', 'Frankfurt', 6, 0],
  ['fra-prod-2', 'Frankfurt', 6, 0],
  ['fra-staging', 'Frankfurt', 3, 0],
  ['muc-prod-1', 'Munich', 4, 0],
  ['muc-prod-2', 'Munich', 4, 1],
  ['ams-prod-1', 'Amsterdam', 8, 0],
  ['ams-edge-1', 'Amsterdam', 2, 0],
  ['zrh-prod-1', 'Zurich', 4, 0],
  ['zrh-archive', 'Zurich', 2, 2],
  ['lab-kiel', '', 2, 0],
  ['lab-graz', '', 1, 0],
  ['ams-edge-2', 'Amsterdam', 0, 0],
]

/** Fills a platform with data for the screenshots of the documentation. */
export async function showcase(platform: PlatformProcess, api: Platform): Promise<SeedIds> {
  const admin = await api.admin
  const installing = expectStatus(await admin.post('/api/v1/modules/hello/install', {}), 202)
  await writeHistory(platform, api)
  const { relays, ids } = await createFleet(api)
  const [first, , third, ...others] = relays
  if (!first || !third) throw new Error('The fleet is too small.')
  const patched = relays.slice(0, 8)
  const patch = patched.map(({ clusterId }) => jobFor(clusterId, patchScript))
  const batchId = await runBatch(api, { jobs: patch }, patched, (relay, jobId) =>
    runJob(relay, jobId, () => patchOutput, relay === patched[6] ? 100 : 0),
  )
  for (const relay of others.slice(0, 4)) await submitAndRun(api, relay, 'uptime', () => uptimeOutput)
  const jobs = await seedJobs(api, first)
  const completed = await submitAndRun(api, third, diskScript, diskOutput)
  const { batchId: openBatchId } = await submitBatch(api, { jobs: patch.slice(0, 3) })
  await seedSettings(api, 'Globex')
  for (const [username, role] of Object.entries({ grace: 'Operator', linus: 'Viewer', margaret: 'Auditor' })) {
    const password = 'correct horse battery'
    const body = { username, email: `${username}@example.com`, password, roles: [role] }
    expectStatus(await admin.post('/api/v1/users', body), 201)
  }
  await over(api, installing)
  await waitForNotifications(api, 4)
  const [healthy = '', degraded = '', offline = '', pending = ''] = [
    'fra-prod-1',
    'muc-prod-2',
    'zrh-archive',
    'ams-edge-2',
  ].map((name) => ids.get(name))
  const clusters = { healthy, degraded, offline, pending }
  return { clusters, jobs: { ...jobs, completed }, batchId, openBatchId, moduleId: 'hello' }
}

/** Returns the relays of the Healthy clusters, in the order of the fleet; a heartbeat would revive the others. */
async function createFleet(api: Platform) {
  const admin = await api.admin
  const sites = new Map<string, string>()
  for (const name of ['Frankfurt', 'Munich', 'Amsterdam', 'Zurich']) {
    sites.set(name, expectStatus(await admin.post('/api/v1/sites', { name }), 201).id)
  }
  const relays: Relay[] = []
  const ids = new Map<string, string>()
  for (const [name, site, nodes, offline] of fleet.toReversed()) {
    const type = site === '' ? 'CloudLocal' : 'Hypervisor'
    const cluster = await api.newCluster({ name, type, siteId: sites.get(site) })
    ids.set(name, cluster.id)
    if (nodes === 0) continue
    const nodeNames = Array.from({ length: nodes }, (_, index) => `${name}-n${index + 1}`)
    const relay = await api.enroll(cluster.enrollmentToken, nodeNames)
    await reportNodes(api, relay, offline)
    if (offline === 0) relays.unshift(relay)
  }
  return { relays, ids }
}

const patchScript = '#!/bin/sh\nset -eu\napt-get -q update\napt-get -qy upgrade\n'
const patchOutput = 'Reading package lists...\n4 upgraded, 0 newly installed, 0 to remove.\n'
const uptimeOutput = ' 14:02:11 up 41 days, load average: 0.08\n'

const diskScript = `#!/bin/sh
# Show disk usage, journal size and failed units
df -h / /var
journalctl --disk-usage
systemctl --failed --no-legend | wc -l
`
const diskOutput = (node: string) => {
  const usedGb = 10 + 4 * Number(node.at(-1))
  return `Filesystem      Size  Used Avail Use% Mounted on
/dev/vda1        40G   ${usedGb}G   ${40 - usedGb}G  ${Math.round((usedGb / 40) * 100)}% /
/dev/vdb1       200G   ${61 + usedGb}G  ${139 - usedGb}G  ${Math.round(((61 + usedGb) / 200) * 100)}% /var
Archived and active journals take up ${396 + usedGb}.0M in the file system.
0
`
}

const hourMs = 3_600_000
const bucketMs = hourMs / 4
const buckets = 96

/** Writes the chart history of the last day straight into the store, in the format of the projection. */
async function writeHistory(platform: PlatformProcess, api: Platform): Promise<void> {
  const { organisationId } = expectStatus(await (await api.admin).get('/api/v1/auth/me'), 200)
  const environment = awsEnvironment({ ...(await readRuntimeFile(platform.dataDir)), sqsUrl: '' })
  const [{ writeItems }, keys] = await Promise.all([
    import('../../bench/paging/write.ts'),
    import('@platform/core/db/keys'),
  ])
  const nowMs = Math.floor(Date.now() / bucketMs) * bucketMs
  const items = Array.from({ length: buckets }, (_, index) => {
    const atMs = nowMs - (buckets - index) * bucketMs
    // Busy by day, quiet at night, with a maintenance window.
    const load = Math.cos(((atMs / hourMs - 12) / 24) * 2 * Math.PI) + 1
    const completed = Math.round(4 + 7 * load + ((index * 7) % 5))
    const failed = index % 11 === 0 ? 3 : index % 4 === 0 ? 1 : 0
    const [Offline, Degraded] = [index > 60 && index < 68 ? 3 : 1, index % 17 < 4 ? 2 : 1]
    const ttl = Math.ceil(atMs / 1000) + 31 * 86_400
    const statuses = { Healthy: 11 - Offline - Degraded, Degraded, Offline, Pending: 1 }
    return [
      { ...keys.jobHistory(organisationId, atMs), submitted: completed + failed, completed, failed, cancelled: 0, ttl },
      { ...keys.clusterHistory(organisationId, atMs), ...statuses, revision: 0, ttl },
    ]
  })
  await writeItems(environment, items.flat())
}
