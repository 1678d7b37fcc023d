import { expect } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { expectStatus } from './support/answer.ts'
import type { TestUser } from './support/person.ts'
import type { Platform } from './support/platform.ts'
import type { Relay } from './support/relay.ts'
import { test } from './support/test.ts'

const path = '/api/v1/notifications'
/** Time limit for changes that a sweep makes. Sweeps run once a minute. */
const sweepSeconds = 150

/** Creates a user of the tenant, whose users receive no notifications about the clusters of other test files. */
const newMember = async (platform: Platform, role = 'Operator') => platform.as(await platform.tenant).newUser(role)
const newRelay = async (platform: Platform) => platform.as(await platform.tenant).newRelay()

const readPage = async ({ client }: TestUser, query = '') => expectStatus(await client.get(`${path}?${query}`), 200)

const waitForNotification = (user: TestUser, resource: string, type: string): Promise<any> =>
  waitFor(
    `${type} about ${resource}`,
    async () => {
      const { items } = await readPage(user, 'pageSize=100')
      return items.find((item: any) => item.resource === resource && item.type === type)
    },
    sweepSeconds,
  )

async function failedJob(platform: Platform, user: TestUser, relay: Relay): Promise<any> {
  const { jobId, leaseId } = await platform.as(user).startJob(relay)
  expectStatus(await relay.complete(jobId, leaseId, 3), 200)
  return waitForNotification(user, jobId, 'JobFailed')
}

const removeCluster = async (platform: Platform, { clusterId }: Relay) =>
  expectStatus(await (await platform.tenant).client.delete(`/api/v1/clusters/${clusterId}`), 204)

test('notifies only the submitter of a failed job', async ({ platform }) => {
  const [user, otherUser] = [await newMember(platform), await newMember(platform)]
  const relay = await newRelay(platform)
  expect((await readPage(user)).items).toEqual([])
  const notification = await failedJob(platform, user, relay)
  expect([notification.read, (await readPage(user)).unreadCount]).toEqual([false, 1])
  expect(notification.title.length).toBeGreaterThan(0)
  expect(Date.parse(notification.createdAt)).toBeGreaterThan(0)
  // Notifications keep their order: once the one of a later job exists, no earlier one is missing.
  const secondJob = await failedJob(platform, otherUser, relay)
  expect((await readPage(otherUser)).items).toEqual([secondJob])
  expect((await readPage(user)).items).toEqual([notification])
  await removeCluster(platform, relay)
})

test('notifies cluster readers when a cluster goes Offline and recovers', async ({ platform }) => {
  const viewer = await newMember(platform, 'Viewer')
  const relay = await newRelay(platform)
  expectStatus(await relay.heartbeat(), 200)
  expectStatus(await relay.goodbye(), 204)
  const offlineNotification = await waitForNotification(viewer, relay.clusterId, 'ClusterOffline')
  for (let count = 0; count < 2; count++) expectStatus(await relay.heartbeat(), 200)
  const recoveryNotification = await waitForNotification(viewer, relay.clusterId, 'ClusterRecovered')
  expect(Date.parse(recoveryNotification.createdAt)).toBeGreaterThanOrEqual(Date.parse(offlineNotification.createdAt))
  await removeCluster(platform, relay)
})

test('alerts a user when a refresh token is reused', async ({ platform }) => {
  const user = await newMember(platform, 'Viewer')
  const { refreshToken } = user.tokens
  const refresh = () => platform.anonymous.post('/api/v1/auth/refresh', { refreshToken })
  expectStatus(await refresh(), 200)
  expectStatus(await refresh(), 401, 'invalid_refresh_token')
  // The reuse has ended the session.
  const { accessToken } = await platform.signIn(user)
  const client = platform.anonymous.withToken(accessToken)
  await waitFor('the security alert', async () => {
    const { items } = await readPage({ ...user, client })
    return items.some(({ type, severity }: any) => type === 'SecurityAlert' && severity === 'critical')
  })
})
