import { enqueueClusterSweep } from '../aws/queues.ts'
import { elapsedMs, now } from '../clock.ts'
import { endFullSweeps, recordSweep } from '../clusters/downtime.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import type { Item } from '../db/table.ts'
import { purgeCluster } from '../jobs/purge.ts'
import { removeExpiredJobs } from '../jobs/retention.ts'
import { forEachLimit } from '../lib/async.ts'
import { recordMetric } from '../lib/metrics.ts'
import { log } from '../log.ts'
import { processSafely, sweepDue } from './due-items.ts'

/** Limits each kind of work that follows a sweep, so that the work does not delay the next sweep. */
const maxFollowUpMs = 15_000
const ownerConcurrency = 4

/** Silence must be reported within a minute, so clusters are also checked between the sweeps. */
const clusterCheckSeconds = 10

/**
 * Reads only due items, so that the cost grows with the overdue work, not with the number of clusters. Sweeps may
 * overlap, repeat or stop halfway. After the clock was set back, a sweep also reads the items that are not due, because
 * their due times may be too late.
 */
export async function sweep(): Promise<void> {
  const isFull = await recordSweep()
  if (isFull) log('warn', 'The clock was set back; the sweep checks all scheduled items')
  const state = await sweepDue(() => true, isFull)
  if (isFull && state.failureCount === 0) await endFullSweeps()
  for (const { duesk } of state.oldestItems)
    recordMetric('SweepDelay', Math.max(0, now() - keys.dueMsOf(String(duesk))) / 1000)
  await Promise.all([
    purgeClusters(state.removedClusters),
    confirmOwners(state.usedTokens),
    processSafely({ ...keys.jobRetention() }, () => removeExpiredJobs(maxFollowUpMs)),
  ])
}

/** On AWS, a schedule runs once a minute at most, so delayed messages start the checks in between. */
export async function sweepAndPlanChecks(): Promise<void> {
  const checkCount = Math.ceil(Math.min(60, config.PLAT_SWEEP_INTERVAL_SECONDS) / clusterCheckSeconds) - 1
  const delays = Array.from({ length: checkCount }, (_, index) => (index + 1) * clusterCheckSeconds)
  await Promise.all([sweep(), ...delays.map(enqueueClusterSweep)])
}

/** Purges one cluster after another, the oldest first. The next sweep continues a backlog. */
async function purgeClusters(removedClusters: readonly Item[]): Promise<void> {
  const untilMs = elapsedMs() + maxFollowUpMs
  for (const item of removedClusters.toSorted((a, b) => (String(a['duesk']) < String(b['duesk']) ? -1 : 1))) {
    if (elapsedMs() < untilMs) await processSafely(item, purgeCluster)
  }
}

async function confirmOwners(usedTokens: readonly Item[]): Promise<void> {
  if (usedTokens.length === 0) return
  const untilMs = elapsedMs() + maxFollowUpMs
  // Loaded on demand, for a fast cold start.
  const { confirmOwner } = await import('../identity-providers/token-owner.ts')
  const unreachableProviderIds = new Set<string>()
  const tokensByOwner = [...Map.groupBy(usedTokens, ({ userId }) => userId).values()]
  await forEachLimit(ownerConcurrency, tokensByOwner, async (tokens) => {
    if (elapsedMs() < untilMs) await processSafely(tokens[0] ?? {}, () => confirmOwner(tokens, unreachableProviderIds))
  })
}
