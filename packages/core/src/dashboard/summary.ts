import type { JobStatus } from '@platform/contract/job'
import type { Permission } from '@platform/contract/permission'
import type { PortalSummary } from '@platform/contract/portal'
import type { Caller } from '../caller.ts'
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

/** Every open portal tab polls this summary, so it reads counters instead of lists. */

export async function readPortalSummary(caller: Caller): Promise<PortalSummary> {
  const [counters, notificationCount, installed] = await Promise.all([
    readCounters(caller),
    unreadCount(caller),
    currentModules(),
  ])
  const has = (permission: Permission) => caller.permissions.has(permission)
  return {
    ...(has('clusters:read') && { clusters: clusterNumbers(counters.clusters) }),
    ...(has('jobs:read') && { jobs: jobNumbers(counters.jobs) }),
    ...(has('modules:read') && { modules: moduleNumbers(installed, counters.scan) }),
    ...(has('platform:admin') && { update: updateNumbers(counters.check, counters.update) }),
    unreadCount: notificationCount,
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

async function readCounters({ organisationId, permissions }: Caller): Promise<Counters> {
  const counters: [Permission, keys.Key][] = [
    ['clusters:read', keys.clusterStatusCounts(organisationId)],
    ['jobs:read', keys.organisationCounts(organisationId)],
    ['modules:read', keys.catalogScan()],
    ['platform:admin', keys.updateCheck()],
    ['platform:admin', keys.updateState()],
  ]
  const readableCounters = counters.filter(([permission]) => permissions.has(permission)).map(([, key]) => key)
  const items = await getConsistent(readableCounters, { mayBeStale: true })
  const [clusters, jobs, scan, check, update] = counters.map(([, key]) => items[readableCounters.indexOf(key)])
  return { clusters, jobs, scan, check, update }
}

const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((total, count) => total + count, 0)

function clusterNumbers(statusCounts: Item | undefined) {
  const byStatus = countByStatus(statusCounts)
  return { total: sum(byStatus), byStatus }
}

function jobNumbers(totals: Item | undefined) {
  const count = (status: JobStatus): number => countJobs(totals, status)
  return {
    total: countJobs(totals),
    byStatus: {
      Queued: count('Queued'),
      Running: count('Running'),
      Completed: count('Completed'),
      Failed: count('Failed'),
      Cancelled: count('Cancelled'),
    },
  }
}

function moduleNumbers({ modules, healthById }: InstalledModules, scan: Item | undefined) {
  const installedModules = modules.filter(isInstalled)
  const latestVersionById = latestVersions(scan)
  const isOutdated = (id: string, version: string) => isNewer(latestVersionById.get(id) ?? version, version)
  return {
    installed: installedModules.length,
    unhealthy: installedModules.filter((record) => currentHealth(record, healthById.get(record.id)) === 'Unhealthy')
      .length,
    updatesAvailable: installedModules.filter(({ id, release }) => isOutdated(id, release.version)).length,
  }
}

function updateNumbers(check: Item | undefined, state: Item | undefined) {
  const earlierRelease = previousRelease(parseUpdateState(state))
  return { ...lastKnownUpdate(parseCheck(check)), ...(earlierRelease && { previousVersion: earlierRelease.version }) }
}

/**
 * All callers of a process share the cached modules. The portal polls every 4 s, so a new navigation entry appears
 * within 5 s.
 */
const cacheMs = 500

let cache: { modules: Promise<InstalledModules>; atMs: number } | undefined

function currentModules(): Promise<InstalledModules> {
  if (cache !== undefined && isWithin(cache.atMs, cacheMs)) return cache.modules
  const cacheEntry = { modules: readModules(), atMs: now() }
  cache = cacheEntry
  cacheEntry.modules.catch(() => {
    if (cache === cacheEntry) cache = undefined
  })
  return cacheEntry.modules
}
