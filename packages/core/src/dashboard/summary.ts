import { type JobStatus } from '@platform/contract/job'
import { type Permission } from '@platform/contract/permission'
import { type PortalSummary } from '@platform/contract/portal'
import { type Caller } from '../caller.ts'
import { isNewer } from '../modules/catalog/select.ts'
import { latestVersions } from '../modules/catalog/catalog.ts'
import { isWithin, now } from '../clock.ts'
import { countByStatus } from '../clusters/record.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item } from '../db/table.ts'
import { aggregateOf, moduleChecks } from '../platform/health.ts'
import { sha256 } from '../id.ts'
import { countJobs } from '../jobs/totals-projection.ts'
import { currentHealth, type InstalledModules, isInstalled, readModules } from '../modules/module.ts'
import { navigationOf } from './navigation.ts'
import { lastKnownUpdate, parseCheck } from '../updates/check-result.ts'
import { parseUpdateState } from '../updates/record.ts'
import { previousRelease } from '../updates/active-release.ts'
import { unreadCount } from '../notifications/unread.ts'

/** All numbers of the portal at once. Every open tab asks every few seconds: counters are read, lists are not. */

/**
 * What the caller may see. Three calls at once: one for five small items, one for the newest notification and one for the
 * modules, which all callers of half a second share. One more where the caller's notifications have changed.
 */
export async function portalSummary(caller: Caller): Promise<PortalSummary> {
  const [items, unread, installed] = await Promise.all([readCounters(caller), unreadCount(caller), currentModules()])
  const has = (permission: Permission) => caller.permissions.has(permission)
  return {
    ...(has('clusters:read') && { clusters: clusterNumbers(items.clusters) }),
    ...(has('jobs:read') && { jobs: jobNumbers(items.jobs) }),
    ...(has('modules:read') && { modules: moduleNumbers(installed, items.scan) }),
    ...(has('platform:admin') && { update: updateNumbers(items.check, items.update) }),
    unreadCount: unread,
    // That the store answers whoever reads this has seen.
    health: { aggregate: aggregateOf(moduleChecks(installed)) },
    navigationTag: sha256(JSON.stringify(navigationOf(caller, installed.modules))).slice(0, 16),
  }
}

interface Counters {
  clusters: Item | undefined
  jobs: Item | undefined
  scan: Item | undefined
  check: Item | undefined
  update: Item | undefined
}

/** The small items that the summary is made of. No call for a caller that may see none of them. */
async function readCounters({ organisationId, permissions }: Caller): Promise<Counters> {
  const wanted: [Permission, keys.Key][] = [
    ['clusters:read', keys.clusterStatusCounts(organisationId)],
    ['jobs:read', keys.jobTotals(organisationId)],
    ['modules:read', keys.catalogScan()],
    ['platform:admin', keys.updateCheck()],
    ['platform:admin', keys.updateState()],
  ]
  const readable = wanted.filter(([needs]) => permissions.has(needs)).map(([, key]) => key)
  const items = await getConsistent(readable, { stale: true })
  const [clusters, jobs, scan, check, update] = wanted.map(([, key]) => items[readable.indexOf(key)])
  return { clusters, jobs, scan, check, update }
}

const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((total, count) => total + count, 0)

/** Each cluster is in one tally. */
function clusterNumbers(tally: Item | undefined) {
  const byStatus = countByStatus(tally)
  return { total: sum(byStatus), byStatus }
}

/** As the list of jobs tells its totals. */
function jobNumbers(totals: Item | undefined) {
  const of = (status: JobStatus): number => countJobs(totals, status)
  return {
    total: countJobs(totals),
    byStatus: {
      Queued: of('Queued'),
      Running: of('Running'),
      Completed: of('Completed'),
      Failed: of('Failed'),
      Cancelled: of('Cancelled'),
    },
  }
}

function moduleNumbers({ modules, healths }: InstalledModules, scan: Item | undefined) {
  const installed = modules.filter(isInstalled)
  const latest = latestVersions(scan)
  const isOutdated = (id: string, version: string) => isNewer(latest.get(id) ?? version, version)
  return {
    installed: installed.length,
    unhealthy: installed.filter((row) => currentHealth(row, healths.get(row.id)) === 'Unhealthy').length,
    updatesAvailable: installed.filter(({ id, release }) => isOutdated(id, release.version)).length,
  }
}

function updateNumbers(check: Item | undefined, state: Item | undefined) {
  const previous = previousRelease(parseUpdateState(state))
  return { ...lastKnownUpdate(parseCheck(check)), ...(previous && { previousVersion: previous.version }) }
}

/**
 * Modules are the whole platform's: whoever asks so soon after another one is told the same. With the four seconds between
 * two polls it is less than the five in which a new entry of the navigation has to be seen.
 */
const sharedMs = 500

let shared: { modules: Promise<InstalledModules>; atMs: number } | undefined

function currentModules(): Promise<InstalledModules> {
  if (shared !== undefined && isWithin(shared.atMs, sharedMs)) return shared.modules
  const mine = { modules: readModules(), atMs: now() }
  shared = mine
  mine.modules.catch(() => {
    if (shared === mine) shared = undefined
  })
  return mine.modules
}
