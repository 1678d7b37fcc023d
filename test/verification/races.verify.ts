import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { advanceBatch } from '@platform/core/jobs/batches/advance'
import { issueAccessToken } from '@platform/core/signing/access-token'
import { seededRandom } from '../support/random.ts'
import { afterAll, beforeAll, test } from 'vitest'
import { scriptJob } from '../core/support/jobs.ts'
import { jsonRequest } from '../support/request.ts'
import { administrator, adminToken, newCaller, enrollRequest, bootstrapPlatform } from '../support/fixtures.ts'
import { BalancedDelay } from './races/balanced-delay.ts'
import type { Call, Response } from './races/caller.ts'
import { type Children, startChildren } from './support/children.ts'
import { claimAtLeast, claimNone, RoundClaims } from './support/claims.ts'
import { ownStoreFaults } from './support/emulators.ts'
import { countEvents, isSetUpOnce, newSession, resetPlatform } from './support/platform-state.ts'
import { readTable } from '../support/read-table.ts'
import { amount, isShort, progressOf, seed } from './support/run.ts'

/** Callers in several processes concurrently attempt operations of which only one may succeed. */

const processes = amount(4, 2)
const random = seededRandom(seed)
let callers: Children

beforeAll(async () => {
  await bootstrapPlatform()
  callers = startChildren(
    new URL('races/caller.ts', import.meta.url),
    Array.from({ length: processes }, () => []),
  )
  await callers.requestAll(() => [])
})
afterAll(() => callers[Symbol.asyncDispose]())

async function sendTogether(calls: readonly Call[]): Promise<Response[][]> {
  const replies = await callers.requestAll((position) => calls.filter((_, index) => index % processes === position))
  return calls.map((_, index) => replies[index % processes][Math.floor(index / processes)])
}

const firstsOf = async (calls: readonly Call[]): Promise<Response[]> =>
  (await sendTogether(calls)).flatMap(([first]) => first ?? [])

const repeat = <Each>(count: number, make: () => Each): Each[] => Array.from({ length: count }, make)
const withStatus = (responses: readonly Response[], status: number): Response[] =>
  responses.filter((each) => each.status === status)

const findUnexpected = (responses: readonly Response[], ...expected: string[]): string[] =>
  responses
    .map(({ status, json }) => `${status} ${status < 400 ? '' : json.error}`.trim())
    .filter((each) => !expected.includes(each))

async function forRounds(name: string, rounds: number, round: (index: number) => Promise<void>): Promise<void> {
  const progress = progressOf(name, rounds)
  for (let index = 0; index < rounds; index++) {
    await round(index)
    progress(index)
  }
}

const refreshing = (refreshToken: string): Call => ({
  function: 'auth',
  sent: jsonRequest('/api/v1/auth/refresh', { refreshToken }),
})

const bearerOf = async (caller: Caller): Promise<Record<string, string>> => ({
  authorization: `Bearer ${await issueAccessToken({ ...caller, roles: ['OrgAdmin'] })}`,
})

test('setup: exactly one caller wins', async () => {
  // More concurrent calls would be rejected: a process hashes few passwords at once (`hash-queue.ts`).
  const count = 4 * processes
  const [rounds, lostRounds] = [amount(200, 1), amount(20, 1)]
  const [claims, others] = [new RoundClaims(), [] as string[]]
  const round = async (name: string, isLost: boolean) => {
    await resetPlatform()
    const body = { ...administrator, initialAdminToken: await adminToken() }
    // Spread the calls over the time that the winner takes.
    const calls = repeat(count, () => ({
      function: 'setup' as const,
      sent: jsonRequest('/api/v1/setup/complete', body),
      afterMs: Math.floor(random() * 4),
    }))
    // The next transaction takes effect, but its caller gets no response.
    if (isLost)
      await ownStoreFaults.set({ operations: ['TransactWriteItems'], lostAcknowledgementRate: 1, remaining: 1 })
    const responses = await firstsOf(calls)
    if (isLost) claims.check(`${name}: it was lost`, (await ownStoreFaults.read()).remaining === 0)
    await ownStoreFaults.clear()
    const winners = withStatus(responses, 200)
    claims.check(`${name}: exactly one 200`, winners.length === 1)
    claims.check(`${name}: one organisation, one user, one administrator, one session`, isSetUpOnce(await readTable()))
    others.push(...findUnexpected(responses, '200', '403 setup_already_complete'))
    const [refreshed] = await firstsOf(winners.slice(0, 1).map(({ json }) => refreshing(json.refreshToken)))
    claims.check(`${name}: the winner’s tokens work`, refreshed?.status === 200)
  }
  await forRounds('setup', rounds, () => round(`setup by ${count} callers`, false))
  await forRounds('setup, lost acknowledgement', lostRounds, () =>
    round('setup, the winner’s acknowledgement lost', true),
  )
  claims.claim()
  claimNone('setup: responses other than 200 and 403 setup_already_complete', others, count * (rounds + lostRounds))
})

test('refresh: one token gets at most one successor', async () => {
  const [count, rounds] = [8, amount(500, 4)]
  const [claims, others] = [new RoundClaims(), [] as string[]]
  await forRounds('refresh', rounds, async () => {
    const { refreshToken, sessionId, organisationId } = await newSession()
    const responses = await firstsOf(repeat(count, () => refreshing(refreshToken)))
    const winners = withStatus(responses, 200)
    claims.check(`refresh by ${count} callers: at most one successor`, winners.length <= 1)
    others.push(...findUnexpected(responses, '200', '401 invalid_refresh_token'))
    const family = [refreshToken, ...winners.map(({ json }) => json.refreshToken)]
    const lateResponses = await firstsOf(family.map(refreshing))
    const isRevoked = (await get(keys.session(sessionId)))?.['revokedAtMs'] !== undefined
    claims.check(
      'refresh: the session ends, and its tokens are rejected',
      isRevoked && lateResponses.every(({ status }) => status === 401),
    )
    claims.check('refresh: one alarm', (await countEvents(organisationId, 'session.reuse_detected')) === 1)
  })
  claims.claim()
  claimNone('refresh: responses other than 200 and 401', others, count * rounds)
})

test('sign-out: later refreshes fail', async () => {
  const [claims, others, late, alive] = [new RoundClaims(), [] as string[], [] as string[], [] as string[]]
  const signOutDelay = new BalancedDelay()
  let refreshedCount = 0
  await forRounds('sign-out', amount(300, 4), async () => {
    const { accessToken, refreshToken } = await newSession()
    const logoutRequest = {
      ...jsonRequest('/api/v1/auth/logout', '', { authorization: `Bearer ${accessToken}` }),
      body: '',
    }
    const signOut = { function: 'auth' as const, sent: logoutRequest, afterMs: signOutDelay.next(random()) }
    const [chain = [], [signedOut] = []] = await sendTogether([{ ...refreshing(refreshToken), refreshes: 5 }, signOut])
    claims.check('sign-out against refresh: the sign-out responds 204', signedOut?.status === 204)
    const successes = withStatus(chain, 200)
    refreshedCount += successes.length
    signOutDelay.adjust(successes.length < 3)
    others.push(...findUnexpected(chain, '200', '401 invalid_refresh_token'))
    late.push(...successes.filter(({ beganUs }) => beganUs > (signedOut?.endedUs ?? 0)).map(() => refreshToken))
    const tokens = [refreshToken, ...successes.map(({ json }) => json.refreshToken)]
    alive.push(...withStatus(await firstsOf(tokens.map(refreshing)), 200).map(() => refreshToken))
  })
  claims.claim()
  claimNone(
    'sign-out against refresh: refreshes that began after the 204 and succeeded',
    late,
    `${refreshedCount} that succeeded`,
  )
  claimNone('sign-out against refresh: tokens that work afterwards', alive)
  claimNone('sign-out against refresh: responses other than 200 and 401', others)
})

test('enrollment: one token enrolls one relay', async () => {
  const [count, rounds] = [8, amount(200, 2)]
  const [claims, others, enrolled] = [new RoundClaims(), [] as string[], [] as string[]]
  await forRounds('enrollment', rounds, async (round) => {
    const caller = await newCaller()
    const { id, enrollmentToken } = await Cluster.register(caller, { name: `cluster ${round}`, type: 'Hypervisor' })
    const responses = await firstsOf(
      repeat(count, () => ({
        function: 'relay',
        sent: jsonRequest('/api/v1/relay/enroll', enrollRequest(enrollmentToken)),
      })),
    )
    const winners = withStatus(responses, 201).map(({ json }) => json.relayId)
    enrolled.push(...winners)
    claims.check(`enrollment of ${count} relays: exactly one 201`, winners.length === 1)
    const cluster = await Cluster.find(caller.organisationId, id)
    claims.check('enrollment: the cluster has the winner’s relay', cluster?.relayId === winners[0])
    const alarms = await countEvents(caller.organisationId, 'enrollment.reuse_detected')
    claims.check('enrollment: one alarm about the second use', alarms === 1)
    others.push(...findUnexpected(responses, '201', '409 enrollment_token_used'))
  })
  claims.claim()
  const relays = (await readTable()).filter(({ sk }) => sk === 'RELAY').map(({ relayId }) => String(relayId))
  claimNone(
    'enrollment: relays in the table beside the winners',
    relays.filter((id) => !enrolled.includes(id)),
    relays.length,
  )
  claimNone('enrollment: responses other than 201 and 409 enrollment_token_used', others, count * rounds)
})

test.for(['jobs', 'batches'] as const)(
  'removal of a cluster against %s: either the removal or the submissions succeed',
  async (kind) => {
    const [count, rounds] = [6, amount(300, 8)]
    const [others, both] = [[] as string[], [] as string[]]
    let [removedCount, keptCount] = [0, 0]
    const caller = await newCaller()
    const { organisationId } = caller
    const otherCluster = await Cluster.register(caller, { name: 'stays', type: 'Hypervisor' })
    const submissionDelay = new BalancedDelay()
    await forRounds(`removal against ${kind}`, rounds, async (round) => {
      const { id } = await Cluster.register(caller, { name: `${kind} ${round}`, type: 'Hypervisor' })
      const headers = await bearerOf(caller)
      const removal = {
        function: 'clusters' as const,
        sent: { method: 'DELETE', target: `/api/v1/clusters/${id}`, headers },
      }
      const [path, body] =
        kind === 'jobs' ? ['', scriptJob(id)] : ['/batch', { jobs: [scriptJob(otherCluster.id), scriptJob(id)] }]
      const submissions = repeat(count, () => ({
        function: 'jobs' as const,
        sent: jsonRequest(`/api/v1/jobs${path}`, body, headers),
        afterMs: submissionDelay.next(random()),
      }))
      const [response, ...responses] = await firstsOf([removal, ...submissions])
      const acceptedResponses = withStatus(responses, 202)
      if (response?.status === 204) removedCount++
      if (response?.status === 409) keptCount++
      submissionDelay.adjust(response?.status !== 204)
      if (response?.status === 204 && acceptedResponses.length > 0) both.push(id)
      others.push(...findUnexpected(responses, '202', '404 cluster_not_found', '403 cluster_forbidden'))
      if (response !== undefined) others.push(...findUnexpected([response], '204', '409 cluster_has_active_jobs'))
      for (const { json } of kind === 'batches' ? acceptedResponses : [])
        await advanceBatch({ organisationId, batchId: json.batchId })
    })
    claimNone(`removal against ${kind}: rounds with a 204 and an accepted job`, both, rounds)
    if (!isShort) claimAtLeast(`removal against ${kind}: rounds in which the removal won`, removedCount, 1)
    if (!isShort) claimAtLeast(`removal against ${kind}: rounds in which a submission won`, keptCount, 1)
    claimNone(
      `removal against ${kind}: responses that neither succeed nor state the reason`,
      others,
      rounds * (count + 1),
    )
  },
)

test('no job lacks its cluster, and clusters count their active jobs', async () => {
  const items = await readTable()
  const clusters = new Map(
    items.filter(({ pk }) => String(pk).endsWith('#CLUSTER')).map((item) => [String(item['id']), item]),
  )
  const jobs = items.filter(({ sk }) => String(sk).startsWith('JOB#'))
  claimNone(
    'jobs without a cluster',
    jobs.filter(({ clusterId }) => !clusters.has(String(clusterId))),
    jobs.length,
  )
  const jobsByCluster = Map.groupBy(jobs, ({ clusterId }) => String(clusterId))
  const wrongCounts = [...clusters].filter(
    ([id, { activeJobs }]) => Number(activeJobs) !== (jobsByCluster.get(id)?.length ?? 0),
  )
  claimNone(
    'clusters with a wrong number of active jobs',
    wrongCounts.map(([id]) => id),
    clusters.size,
  )
})
