import * as Batch from '@platform/core/jobs/batches/batch'
import { parseRemovalGuard } from '@platform/core/clusters/removal-guard'
import { findBatch } from '@platform/core/jobs/batches/record'
import { type Caller } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { platformError } from '@platform/core/error'
import * as Job from '@platform/core/jobs/job'
import { claim } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import { seededRandom } from '../../../support/random.ts'
import { beforeAll, expect, test } from 'vitest'
import { isLong } from '../../../support/long.ts'
import { newCaller, enrolledCluster, errorCodeOf, bootstrapPlatform } from '../../../support/fixtures.ts'
import { clusterCounters, jobsForClusters, jobRecords, countByStatus, advance } from '../../support/batches.ts'
import { drainOutbox } from '../../support/outbox.ts'
import { completionReport, inboxItems, type EnrolledCluster } from '../../support/jobs.ts'
import { onStoreCall } from '../../../support/store-calls.ts'

beforeAll(bootstrapPlatform)

/** A number from 0 to below `sides`. */
type Dice = (sides: number) => number

interface Play {
  dice: Dice
  caller: Caller
  enrolledClusters: EnrolledCluster[]
  batchId: string
  jobIds: string[]
  maxConcurrency: number | undefined
  maxErrors: number | undefined
  isToBeCancelled: boolean
  /** What relays hold. */
  held: { enrolled: EnrolledCluster; jobId: string; leaseId: string }[]
  /** Every lease that was ever given for a job. */
  leases: Map<string, Set<string>>
}

/** A batch of up to 40 jobs for three clusters, with any limits. */
async function begin(seed: number): Promise<Play> {
  const random = seededRandom(seed)
  const dice: Dice = (sides) => Math.floor(random() * sides)
  const caller = await newCaller()
  const enrolledClusters = [await enrolledCluster(caller), await enrolledCluster(caller), await enrolledCluster(caller)]
  const jobs = jobsForClusters(
    enrolledClusters.map(({ cluster }) => cluster.id),
    1 + dice(40),
  )
  const maxConcurrency = dice(3) === 0 ? undefined : 1 + dice(6)
  const maxErrors = dice(2) === 0 ? undefined : dice(6)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs, maxConcurrency, maxErrors })
  const isToBeCancelled = dice(4) === 0
  const nothingYet = { held: [], leases: new Map() }
  return { dice, caller, enrolledClusters, batchId, jobIds, maxConcurrency, maxErrors, isToBeCancelled, ...nothingYet }
}

/** A relay takes a job of its inbox. The same claim may be repeated, and answers the same. */
async function take({ held, leases }: Play, enrolled: EnrolledCluster, jobId: string): Promise<void> {
  const { leaseId } = await claim(enrolled.request(), jobId, `key of ${jobId}`)
  if (!leases.has(jobId)) held.push({ enrolled, jobId, leaseId })
  leases.set(jobId, (leases.get(jobId) ?? new Set()).add(leaseId))
}

async function takeSome(play: Play, enrolled: EnrolledCluster, luck: number): Promise<void> {
  const inbox = await inboxItems(enrolled.cluster.id)
  const jobId = inbox[luck % inbox.length]
  if (jobId !== undefined) await take(play, enrolled, jobId)
}

/** A relay reports the end of a job until it hears that it has ended. */
async function report({ held }: Play, place: number, exitCode: number): Promise<void> {
  const [lease] = held.splice(place, 1)
  if (lease === undefined) return
  const { enrolled, jobId, leaseId } = lease
  const refusal = await errorCodeOf(complete(enrolled.request(), jobId, completionReport(enrolled, leaseId, exitCode)))
  if (refusal === 'database_unavailable' || refusal === 'conflict') held.push(lease)
}

/** Something that may happen at any time. All that chance decides is decided before it begins. */
function happening(play: Play): Promise<unknown> {
  const { dice, caller, enrolledClusters, batchId, jobIds, held } = play
  const luck = dice(1000)
  const enrolled = enrolledClusters[luck % enrolledClusters.length]
  const kind = dice(12)
  if (kind < 2) return advance(caller, batchId)
  if (kind < 4) return drainOutbox(caller.organisationId)
  if (kind < 7 && enrolled) return takeSome(play, enrolled, luck)
  if (kind < 10) return report(play, luck % Math.max(1, held.length), luck % 3 === 0 ? 1 : 0)
  if (kind === 10) return luck % 6 === 0 ? Job.cancel(caller, jobIds[luck % jobIds.length] ?? '') : Promise.resolve()
  return play.isToBeCancelled && luck % 15 === 0 ? Batch.cancel(caller, batchId) : Promise.resolve()
}

/** Four things happen at once, while one call to the store in six fails, before it is made or after. */
async function step(play: Play): Promise<void> {
  const strike = async () => {
    if (play.dice(12) === 0) throw platformError('database_unavailable')
  }
  using _ = onStoreCall({ before: strike, after: strike })
  const refusals = await Promise.all(Array.from({ length: 4 }, () => errorCodeOf(happening(play))))
  for (const refusal of refusals) expect(refusal).toMatch(/^([a-z_]+|no error)$/)
}

/** Lets everything that is left run, undisturbed. */
async function finish(play: Play): Promise<void> {
  const { dice, caller, enrolledClusters, batchId, jobIds, held } = play
  for (let round = 0; round < jobIds.length + 10; round++) {
    await advance(caller, batchId)
    for (const enrolled of enrolledClusters) {
      for (const jobId of await inboxItems(enrolled.cluster.id)) await take(play, enrolled, jobId)
    }
    const running = (await jobRecords(caller, jobIds)).filter(({ status }) => status === 'Running')
    for (const { id, clusterId, leaseId = '' } of running) {
      const enrolled = enrolledClusters.find(({ cluster }) => cluster.id === clusterId)
      if (enrolled) await complete(enrolled.request(), id, completionReport(enrolled, leaseId, dice(3) === 0 ? 1 : 0))
    }
    held.length = 0
    await drainOutbox(caller.organisationId)
    if ((await Batch.read(caller, batchId)).status === 'Finished') return
  }
}

/** Jobs that wait for a relay or run. */
const underWay = async ({ caller, jobIds }: Play): Promise<number> =>
  (await jobRecords(caller, jobIds)).filter(
    ({ status, dispatchedAtMs }) => status === 'Running' || (status === 'Queued' && dispatchedAtMs !== undefined),
  ).length

async function expectExactBooks({ caller, enrolledClusters, batchId, jobIds, leases, maxErrors }: Play): Promise<void> {
  const { organisationId } = caller
  const rows = await jobRecords(caller, jobIds)
  const tally = countByStatus(rows)
  expect(rows).toHaveLength(jobIds.length)
  expect(await Batch.read(caller, batchId)).toMatchObject({ status: 'Finished', counts: tally })
  const batch = await findBatch(organisationId, batchId)
  expect(batch?.running).toBe(0)
  const counters = await clusterCounters(
    caller,
    enrolledClusters.map(({ cluster }) => cluster.id),
  )
  expect(counters.map(([active, waiting]) => [active, waiting])).toEqual(enrolledClusters.map(() => [0, 0]))
  expect(counters.reduce((sum, [, , jobs = 0]) => sum + jobs, 0)).toBe(jobIds.length)
  expect(parseRemovalGuard(await get(keys.removalGuard(organisationId))).open.size).toBe(0)
  expect(await get(keys.jobTotals(organisationId))).toMatchObject({ total: jobIds.length })
  expect([...leases.values()].filter(({ size }) => size > 1)).toEqual([])
  const stopped = rows.filter(({ statusReason }) => statusReason === 'batch_error_limit')
  if ((tally['failed'] ?? 0) <= (maxErrors ?? Infinity)) expect(stopped).toEqual([])
}

test.each(isLong ? [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] : [1, 2, 3])(
  'whatever happens at once and fails, a batch runs each job at most once, within its limits, and counts exactly (%i)',
  async (seed) => {
    const play = await begin(seed)
    for (let count = 0; count < 25; count++) {
      await step(play)
      expect(await underWay(play)).toBeLessThanOrEqual(play.maxConcurrency ?? Infinity)
    }
    await finish(play)
    await expectExactBooks(play)
  },
)
