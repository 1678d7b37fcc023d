import { parseRemovalGuard } from '@platform/core/clusters/removal-guard'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { platformError } from '@platform/core/error'
import * as Batch from '@platform/core/jobs/batches/batch'
import { findBatch } from '@platform/core/jobs/batches/record'
import { claim } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import * as Job from '@platform/core/jobs/job'
import { beforeAll, expect, test } from 'vitest'
import { bootstrapPlatform, enrolledCluster, errorCodeOf, newCaller } from '../../../support/fixtures.ts'
import { isLong } from '../../../support/long.ts'
import { seededRandom } from '../../../support/random.ts'
import { onStoreCall } from '../../../support/store-calls.ts'
import { advance, clusterCounters, countByStatus, jobRecords, jobsForClusters } from '../../support/batches.ts'
import { completionReport, type EnrolledCluster, inboxItems } from '../../support/jobs.ts'
import { drainOutbox } from '../../support/outbox.ts'

beforeAll(bootstrapPlatform)

type State = Awaited<ReturnType<typeof submitRandomBatch>>

/** A batch of up to 40 jobs for three clusters with random limits. */
async function submitRandomBatch(seed: number) {
  const random = seededRandom(seed)
  /** A number from 0 to below `limit`. */
  const pick = (limit: number): number => Math.floor(random() * limit)
  const caller = await newCaller()
  const clusters = [await enrolledCluster(caller), await enrolledCluster(caller), await enrolledCluster(caller)]
  const clusterIds = clusters.map(({ cluster }) => cluster.id)
  const jobs = jobsForClusters(clusterIds, 1 + pick(40))
  const maxConcurrency = pick(3) === 0 ? undefined : 1 + pick(6)
  const maxErrors = pick(2) === 0 ? undefined : pick(6)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs, maxConcurrency, maxErrors })
  return {
    ...{ pick, caller, clusters, clusterIds, batchId, jobIds, maxConcurrency, maxErrors },
    mayCancel: pick(4) === 0,
    claims: [] as { enrolled: EnrolledCluster; jobId: string; leaseId: string }[],
    leases: new Map<string, Set<string>>(),
  }
}

async function claimJob({ claims, leases }: State, enrolled: EnrolledCluster, jobId: string): Promise<void> {
  const { leaseId } = await claim(enrolled.request(), jobId, `key of ${jobId}`)
  if (!leases.has(jobId)) claims.push({ enrolled, jobId, leaseId })
  leases.set(jobId, (leases.get(jobId) ?? new Set()).add(leaseId))
}

/** Completes a claimed job; keeps the claim after a temporary failure. */
async function completeJob({ claims }: State, index: number, exitCode: number): Promise<void> {
  const [entry] = claims.splice(index, 1)
  if (entry === undefined) return
  const { enrolled, jobId, leaseId } = entry
  const code = await errorCodeOf(complete(enrolled.request(), jobId, completionReport(enrolled, leaseId, exitCode)))
  if (code === 'database_unavailable' || code === 'conflict') claims.push(entry)
}

/** A random action. All random choices precede its first call, so that a seed always chooses the same. */
async function randomAction(state: State): Promise<unknown> {
  const { pick, caller, clusters, batchId, jobIds, claims } = state
  const choice = pick(1000)
  const enrolled = clusters[choice % clusters.length]!
  const kind = pick(12)
  if (kind < 2) return advance(caller, batchId)
  if (kind < 4) return drainOutbox(caller.organisationId)
  if (kind < 7) {
    const inbox = await inboxItems(enrolled.cluster.id)
    return inbox.length === 0 ? undefined : claimJob(state, enrolled, inbox[choice % inbox.length]!)
  }
  if (kind < 10) return completeJob(state, choice % Math.max(1, claims.length), choice % 3 === 0 ? 1 : 0)
  if (kind === 10) return choice % 6 === 0 ? Job.cancel(caller, jobIds[choice % jobIds.length]!) : undefined
  return state.mayCancel && choice % 15 === 0 ? Batch.cancel(caller, batchId) : undefined
}

/** Runs four random actions concurrently, while one of six store calls fails before or after its execution. */
async function runStep(state: State): Promise<void> {
  const failRandomly = async () => {
    if (state.pick(12) === 0) throw platformError('database_unavailable')
  }
  using _ = onStoreCall({ before: failRandomly, after: failRandomly })
  const codes = await Promise.all(Array.from({ length: 4 }, () => errorCodeOf(randomAction(state))))
  for (const code of codes) expect(code).toMatch(/^([a-z_]+|no error)$/)
}

async function finish(state: State): Promise<void> {
  const { pick, caller, clusters, batchId, jobIds, claims } = state
  for (let round = 0; round < jobIds.length + 10; round++) {
    await advance(caller, batchId)
    for (const enrolled of clusters) {
      for (const jobId of await inboxItems(enrolled.cluster.id)) await claimJob(state, enrolled, jobId)
    }
    const running = (await jobRecords(caller, jobIds)).filter(({ status }) => status === 'Running')
    for (const { id, clusterId, leaseId = '' } of running) {
      const enrolled = clusters.find(({ cluster }) => cluster.id === clusterId)!
      await complete(enrolled.request(), id, completionReport(enrolled, leaseId, pick(3) === 0 ? 1 : 0))
    }
    claims.length = 0
    await drainOutbox(caller.organisationId)
    if ((await Batch.read(caller, batchId)).status === 'Finished') return
  }
}

const countActive = async ({ caller, jobIds }: State): Promise<number> =>
  (await jobRecords(caller, jobIds)).filter(
    ({ status, dispatchedAtMs }) => status === 'Running' || (status === 'Queued' && dispatchedAtMs !== undefined),
  ).length

async function expectExactCounts({ caller, clusterIds, batchId, jobIds, leases, maxErrors }: State): Promise<void> {
  const { organisationId } = caller
  const jobs = await jobRecords(caller, jobIds)
  const counts = countByStatus(jobs)
  expect(jobs).toHaveLength(jobIds.length)
  expect(await Batch.read(caller, batchId)).toMatchObject({ status: 'Finished', counts })
  expect((await findBatch(organisationId, batchId))?.running).toBe(0)
  const counters = await clusterCounters(caller, clusterIds)
  for (const [active, waiting] of counters) expect([active, waiting]).toEqual([0, 0])
  expect(counters.reduce((sum, [, , total = 0]) => sum + total, 0)).toBe(jobIds.length)
  expect(parseRemovalGuard(await get(keys.removalGuard(organisationId))).open.size).toBe(0)
  expect(await get(keys.jobTotals(organisationId))).toMatchObject({ total: jobIds.length })
  for (const { size } of leases.values()) expect(size).toBe(1)
  const stopped = jobs.filter(({ statusReason }) => statusReason === 'batch_error_limit')
  if ((counts['failed'] ?? 0) <= (maxErrors ?? Infinity)) expect(stopped).toEqual([])
}

test.each(isLong ? [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] : [1, 2, 3])(
  'a batch runs each job at most once, within its limits and with exact counts, despite failures (seed %i)',
  async (seed) => {
    const state = await submitRandomBatch(seed)
    for (let count = 0; count < 25; count++) {
      await runStep(state)
      expect(await countActive(state)).toBeLessThanOrEqual(state.maxConcurrency ?? Infinity)
    }
    await finish(state)
    await expectExactCounts(state)
  },
)
