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
import { parseUpdateState, previousRelease } from '../updates/record.ts'
import { unreadCount } from '../notifications/unread.ts'

/** All numbers of the portal in one response. Every open tab polls it, so it reads counters, never lists. */

/**
 * The summary, as far as the caller may read it. Three concurrent calls: five small items, the newest notification, and
 * the modules, which callers share for half a second. One more if the caller's notifications changed.
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
    // The store is healthy, because it answered this request.
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

/** The counters of the summary. No call for a caller without permissions. */
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

/** Each cluster is in exactly one count. */
function clusterNumbers(tally: Item | undefined) {
  const byStatus = countByStatus(tally)
  return { total: sum(byStatus), byStatus }
}

/** The same totals as in the list of jobs. */
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
 * Modules are the same for all callers. With the four seconds between polls a new navigation entry appears within five.
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
