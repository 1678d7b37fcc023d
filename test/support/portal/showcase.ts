import { expectStatus } from '../../conformance/support/answer.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import type { PlatformProcess } from '../platform.ts'
import { storeOf } from './fleet.ts'
import { reportNodes, seed, type SeedIds, submitAndRun } from './seed.ts'

const fleet: [name: string, site: string, nodes: number, offline: number][] = [
  ['ham-prod-1', 'Hamburg', 6, 0],
  ['ham-prod-2', 'Hamburg', 6, 0],
  ['muc-prod-2', 'Munich', 4, 1],
  ['ams-prod-1', 'Amsterdam', 8, 0],
  ['ams-edge-1', 'Amsterdam', 2, 0],
  ['zrh-prod-1', 'Zurich', 4, 0],
  ['zrh-archive', 'Zurich', 2, 2],
  ['lab-kiel', 'Kiel', 2, 0],
]

export async function showcase(platform: PlatformProcess, api: Platform): Promise<SeedIds> {
  const admin = await api.admin
  await writeHistory(platform, api)
  const ids = await seed(api)
  const siteIds = new Map<string, string>()
  for (const name of new Set(fleet.map(([, site]) => site))) {
    siteIds.set(name, expectStatus(await admin.post('/api/v1/sites', { name }), 201).id)
  }
  for (const [name, site, nodes, offline] of fleet) {
    const { enrollmentToken } = await api.newCluster({ name, siteId: siteIds.get(site) })
    const nodeNames = Array.from({ length: nodes }, (_, index) => `${name}-n${index + 1}`)
    const relay = await api.enroll(enrollmentToken, nodeNames)
    await reportNodes(api, relay, offline)
    if (offline === 0) await submitAndRun(api, relay, 'uptime', ' 14:02:11 up 41 days, load average: 0.08\n')
  }
  return ids
}

const hourMs = 3_600_000
const bucketMs = hourMs / 4
const buckets = 192

/** Writes the chart history of the last two days straight into the store, in the format of the projection. */
async function writeHistory(platform: PlatformProcess, api: Platform): Promise<void> {
  const { environment, organisationId } = await storeOf(platform, api)
  const [{ writeItems }, keys] = await Promise.all([
    import('../../bench/support/stored-data.ts'),
    import('@platform/core/db/keys'),
  ])
  const nowMs = Math.floor(Date.now() / bucketMs) * bucketMs
  const items = Array.from({ length: buckets }, (_, index) => {
    const atMs = nowMs - (buckets - index) * bucketMs
    const load = Math.cos(((atMs / hourMs - 12) / 24) * 2 * Math.PI) + 1
    const completedCount = Math.round(4 + 7 * load + ((index * 7) % 5))
    const failedCount = index % 11 === 0 ? 3 : index % 4 === 0 ? 1 : 0
    const [Offline, Degraded] = [index > 156 && index < 164 ? 3 : 1, index % 17 < 4 ? 2 : 1]
    const expiresAtSeconds = Math.ceil(atMs / 1000) + 31 * 86_400
    const statuses = { Healthy: 11 - Offline - Degraded, Degraded, Offline, Pending: 1 }
    return [
      {
        ...keys.jobHistory(organisationId, atMs),
        submitted: completedCount + failedCount,
        completed: completedCount,
        failed: failedCount,
        cancelled: 0,
        ttl: expiresAtSeconds,
      },
      { ...keys.clusterHistory(organisationId, atMs), ...statuses, revision: 0, ttl: expiresAtSeconds },
    ]
  })
  await writeItems(environment, items.flat())
}
