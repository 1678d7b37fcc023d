import { refresh, signOut } from '@platform/core/accounts/session'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get, query } from '@platform/core/db/table'
import { advanceBatch } from '@platform/core/jobs/batches/advance'
import * as Batch from '@platform/core/jobs/batches/batch'
import { claim } from '@platform/core/jobs/claim'
import { complete, completeAll } from '@platform/core/jobs/complete'
import * as Job from '@platform/core/jobs/job'
import { recordStartsAndEnds } from '@platform/core/jobs/recording'
import { removeCluster } from '@platform/core/jobs/remove-cluster'
import { complete as completeSetup } from '@platform/core/platform/setup'
import { enroll } from '@platform/core/relays/enrollment'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { verifyAccessToken } from '@platform/core/signing/access-token'
import { assert, asyncProperty, integer, type Scheduler, scheduler as anySchedule } from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import {
  completionReport,
  readJobCounters,
  readInboxItems,
  runJob,
  scriptJob,
  dispatchedJob,
} from '../core/support/jobs.ts'
import {
  administrator,
  adminToken,
  newCaller,
  enrolledCluster,
  enrollRequest,
  errorCodeOf,
  bootstrapPlatform,
} from '../support/fixtures.ts'
import { readTable } from '../support/read-table.ts'
import { messagesSentBy } from '../core/support/messages.ts'
import { claimAll } from './support/claims.ts'
import { interleave } from './support/interleave.ts'
import { countEvents, readEventNames, isSetUpOnce, newSession, resetPlatform } from './support/platform-state.ts'
import { amount, progressOf, seed } from './support/run.ts'

beforeAll(bootstrapPlatform)

async function explore(
  claim: string,
  numRuns: number,
  [min, max]: readonly [number, number],
  scenario: (scheduler: Scheduler, callers: number) => Promise<void>,
): Promise<void> {
  const [schedules, progress] = [new Set<string>(), progressOf(claim, numRuns)]
  let doneCount = 0
  const property = asyncProperty(anySchedule(), integer({ min, max }), async (scheduler, callers) => {
    await scenario(scheduler, callers)
    schedules.add(
      scheduler
        .report()
        .map(({ label }) => label)
        .join(),
    )
    progress(++doneCount)
  })
  await assert(property, { seed, numRuns })
  claimAll(`${claim}: schedules, ${schedules.size} of them distinct`, doneCount, numRuns)
}

const repeat = <Task>(count: number, task: Task): Task[] => Array.from({ length: count }, () => task)

function successesOf(settled: readonly PromiseSettledResult<any>[], ...codes: string[]): any[] {
  for (const each of settled) {
    if (each.status === 'rejected') expect(codes, String(each.reason.stack)).toContain(each.reason.code)
  }
  return settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
}

async function expectRejected(refreshTokens: readonly string[]): Promise<void> {
  for (const refreshToken of refreshTokens)
    expect(await errorCodeOf(refresh({ refreshToken }))).toBe('invalid_refresh_token')
}

test('one of several concurrent setups succeeds, and its tokens work', () =>
  explore('one of 2 or 3 concurrent setups succeeds', amount(300, 3), [2, 3], async (scheduler, count) => {
    await resetPlatform()
    const body = { ...administrator, initialAdminToken: await adminToken() }
    const settled = await interleave(
      scheduler,
      repeat(count, () => completeSetup(body)),
    )
    const successes = successesOf(settled, 'setup_already_complete')
    expect(successes).toHaveLength(1)
    expect(isSetUpOnce(await readTable())).toBe(true)
    await refresh(successes[0])
  }))

test('a refresh token gets at most one successor, and its second use ends the session', () =>
  explore(
    '2 to 4 uses of a refresh token: at most one successor',
    amount(2000, 12),
    [2, 4],
    async (scheduler, count) => {
      const { refreshToken, sessionId, organisationId } = await newSession()
      const settled = await interleave(
        scheduler,
        repeat(count, () => refresh({ refreshToken })),
      )
      const successes = successesOf(settled, 'invalid_refresh_token')
      expect(successes.length).toBeLessThanOrEqual(1)
      expect((await get(keys.session(sessionId)))?.['revokedAtMs']).toBeDefined()
      expect(await countEvents(organisationId, 'session.reuse_detected')).toBe(1)
      await expectRejected([refreshToken, ...successes.map((tokens) => tokens.refreshToken)])
    },
  ))

test('no refresh succeeds that began after a sign-out', () =>
  explore('sign-out against refresh: the session ends', amount(1000, 8), [2, 3], async (scheduler, count) => {
    const { refreshToken, accessToken } = await newSession()
    const caller = await verifyAccessToken(accessToken)
    let isSignedOut = false
    const tokens = [refreshToken]
    const refreshTwice = async () => {
      for (let round = 0; round < 2; round++) {
        const beganAfterSignOut = isSignedOut
        tokens.push((await refresh({ refreshToken: tokens.at(-1) ?? '' })).refreshToken)
        expect(beganAfterSignOut, 'a refresh after the sign-out succeeded').toBe(false)
      }
    }
    const signOutOnce = async () => {
      await signOut(caller)
      isSignedOut = true
    }
    successesOf(
      await interleave(scheduler, [refreshTwice, signOutOnce, signOutOnce].slice(0, count)),
      'invalid_refresh_token',
    )
    await expectRejected(tokens)
  }))

test('an enrollment token enrolls one relay, which may repeat its request', () =>
  explore('2 to 4 uses of an enrollment token: one relay', amount(1000, 6), [2, 4], async (scheduler, count) => {
    const caller = await newCaller()
    const { id, enrollmentToken } = await Cluster.register(caller, { name: 'berlin-1', type: 'Hypervisor' })
    const first = enrollRequest(enrollmentToken)
    // The first relay repeats its request, as after a lost response.
    const requests = [first, enrollRequest(enrollmentToken), first, enrollRequest(enrollmentToken)].slice(0, count)
    const settled = await interleave(
      scheduler,
      requests.map((request) => () => enroll(request)),
    )
    const relayIds = new Set(successesOf(settled, 'enrollment_token_used').map(({ relayId }) => relayId))
    expect([...relayIds]).toEqual([(await Cluster.find(caller.organisationId, id))?.relayId])
    expect(await countEvents(caller.organisationId, 'cluster.enrolled')).toBe(1)
    expect(await countEvents(caller.organisationId, 'enrollment.reuse_detected')).toBeLessThanOrEqual(1)
  }))

test('a job that is claimed twice and cancelled runs at most once and ends once', () =>
  explore('claims against cancellations: a job ends once', amount(1000, 6), [2, 4], async (scheduler, count) => {
    const caller = await newCaller()
    const enrolled = await enrolledCluster(caller)
    const jobId = await dispatchedJob(caller, enrolled)
    // Each run reports its completion twice, as a relay does after a late response.
    const run = (exitCode: number) => async () => {
      const { leaseId } = await claim(enrolled.request(), jobId, undefined)
      const report = () => complete(enrolled.request(), jobId, completionReport(enrolled, leaseId, exitCode))
      await Promise.all([report(), report()])
    }
    const cancel = () => Job.cancel(caller, jobId)
    const tasks: (() => Promise<unknown>)[] = [run(0), cancel, run(3), cancel]
    successesOf(await interleave(scheduler, tasks.slice(0, count)), 'job_not_claimable', 'job_already_finished')
    expect(['Completed', 'Failed', 'Cancelled']).toContain((await Job.read(caller, jobId)).status)
    expect(await readJobCounters(caller, enrolled)).toEqual([0, 0])
    expect(await readInboxItems(enrolled.cluster.id)).toEqual([])
    const events = await readEventNames(caller.organisationId)
    expect(events.filter((name) => name === 'job.started').length).toBeLessThanOrEqual(1)
    expect(events.filter((name) => /^job\.(completed|failed|cancelled)$/.test(name))).toHaveLength(1)
  }))

test('jobs whose results share a request start once and end once', () =>
  explore(
    'shared requests against single ones: each job ends once',
    amount(500, 6),
    [2, 5],
    async (scheduler, count) => {
      const caller = await newCaller()
      const { organisationId } = caller
      const enrolled = await enrolledCluster(caller)
      const reports = await Promise.all(
        repeat(3, 0).map(async () => {
          const jobId = await dispatchedJob(caller, enrolled)
          const { leaseId } = await claim(enrolled.request(), jobId, undefined)
          return { jobId, ...completionReport(enrolled, leaseId) }
        }),
      )
      const jobIds = reports.map(({ jobId }) => jobId)
      const [first = { jobId: '', ...completionReport(enrolled, '') }] = reports
      const tasks: (() => Promise<unknown>)[] = [
        () => completeAll(enrolled.request(), reports),
        () => completeAll(enrolled.request(), reports.toReversed()),
        () => recordStartsAndEnds(organisationId, jobIds),
        () => complete(enrolled.request(), first.jobId, first),
        () => Job.cancel(caller, first.jobId),
      ]
      successesOf(await interleave(scheduler, tasks.slice(0, count)), 'job_already_finished')
      expect(await readJobCounters(caller, enrolled)).toEqual([0, 0])
      const events = await readEventNames(organisationId)
      expect(events.filter((name) => name === 'job.started')).toHaveLength(3)
      expect(events.filter((name) => /^job\.(completed|failed|cancelled)$/.test(name))).toHaveLength(3)
    },
  ))

test('the end of a job of a batch is recorded once, and before its cluster is removed', () =>
  explore('ends of jobs of batches: each one is recorded once', amount(500, 6), [2, 6], async (scheduler, count) => {
    const caller = await newCaller()
    const { organisationId } = caller
    const clusters = [await enrolledCluster(caller), await enrolledCluster(caller)] as const
    const [first, second] = clusters
    const jobs = clusters.map(({ cluster }) => scriptJob(cluster.id))
    const { batchId, jobIds } = await Batch.submit(caller, { jobs })
    await advanceBatch({ organisationId, batchId })
    const beat = async ({ request, heartbeat: report }: typeof first, change: object = {}) =>
      (await heartbeat(request(), { ...report, claimKey: 'key-0001', ...change })).claims ?? []
    const end = (enrolled: typeof first, claims: readonly { leaseId: string; jobId: string }[]) => () =>
      Promise.all(
        claims.map(({ jobId, leaseId }) => complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))),
      )
    const [endFirst, endSecond] = [end(first, await beat(first)), end(second, await beat(second))]
    const record = () => recordStartsAndEnds(organisationId, jobIds)
    await endSecond()
    const remove = () => removeCluster(caller, first.cluster.id)
    const tasks = [endFirst, record, () => beat(first, { running: jobIds.slice(0, 1) }), endFirst, remove, record]
    const codes = ['cluster_has_active_jobs', 'relay_revoked', 'job_not_found']
    const messages = await messagesSentBy(config.PLAT_QUEUE_EVENTS, async () =>
      successesOf(await interleave<unknown>(scheduler, tasks.slice(0, count)), ...codes),
    )
    // The tasks `record` consume the message about the claims. The messages that the tasks sent are consumed here.
    for (const { jobs: ids } of messages)
      if (ids !== undefined) await recordStartsAndEnds(organisationId, ids.split(','))
    for (const enrolled of clusters) {
      const [activeCount, waitingCount] = await readJobCounters(caller, enrolled)
      // The cluster may have been removed.
      if (activeCount !== undefined) expect([activeCount, waitingCount]).toEqual([0, 0])
    }
    const events = await readEventNames(organisationId)
    expect(events.filter((name) => name === 'job.started')).toHaveLength(2)
    expect(events.filter((name) => name === 'job.completed')).toHaveLength(2)
  }))

test('a cluster is removed or gets jobs, never both', () =>
  explore(
    'removal of a cluster against submissions: one of them',
    amount(1000, 6),
    [2, 4],
    async (scheduler, count) => {
      const caller = await newCaller()
      const { organisationId } = caller
      const otherCluster = await Cluster.register(caller, { name: 'stays', type: 'Hypervisor' })
      const enrolled = await enrolledCluster(caller)
      const { id } = enrolled.cluster
      const jobId = await dispatchedJob(caller, enrolled)
      const remove = () => Cluster.remove(caller, id)
      const tasks: (() => Promise<unknown>)[] = [
        remove,
        () => runJob(enrolled, jobId).then(remove),
        async () => {
          const { batchId } = await Batch.submit(caller, { jobs: [scriptJob(otherCluster.id), scriptJob(id)] })
          await advanceBatch({ organisationId, batchId })
        },
        () => Job.submit(caller, scriptJob(id)),
      ]
      const codes = ['cluster_has_active_jobs', 'cluster_not_found', 'cluster_forbidden']
      successesOf(await interleave(scheduler, tasks.slice(0, count)), ...codes)
      const { items } = await query({ index: 'gsi1', pk: keys.clusterJobs(id) })
      // Jobs of a removed cluster are not found through the API.
      const jobs = await Promise.all(items.map(({ pk, sk }) => get({ pk: String(pk), sk: String(sk) })))
      const activeCount = jobs.filter((job) => ['Queued', 'Running'].includes(String(job?.['status']))).length
      expect((await Cluster.find(organisationId, id))?.activeJobs ?? 0).toBe(activeCount)
    },
  ))
