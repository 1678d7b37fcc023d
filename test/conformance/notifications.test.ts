import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, invalidFields } from './support/answer.ts'
import { finishedBatch, jobFor, submitBatch } from './support/batch.ts'
import type { TestUser } from './support/person.ts'
import type { Platform } from './support/platform.ts'
import type { Relay } from './support/relay.ts'
import { waitFor } from '../support/wait-for.ts'

const path = '/api/v1/notifications'
/** The sweep runs once a minute. */
const sweepSeconds = 150

/** Uses its own organisation: all users of an organisation receive notifications about its clusters. */
const newMember = async (platform: Platform, role = 'Operator') => platform.as(await platform.tenant).newPerson(role)
const newRelay = async (platform: Platform) => platform.as(await platform.tenant).newRelay()

const page = async ({ client }: TestUser, query = '') => expectStatus(await client.get(`${path}?${query}`), 200)

const about = (person: TestUser, resource: string, type: string): Promise<any> =>
  waitFor(
    `${type} about ${resource}`,
    async () => {
      const { items } = await page(person, 'pageSize=100')
      return items.find((item: any) => item.resource === resource && item.type === type)
    },
    sweepSeconds,
  )

/** Fails a job and returns the notification. */
async function failedJob(platform: Platform, person: TestUser, relay: Relay): Promise<any> {
  const { jobId, leaseId } = await platform.as(person).running(relay)
  expectStatus(await relay.complete(jobId, leaseId, 3), 200)
  return about(person, jobId, 'JobFailed')
}

const removeCluster = async (platform: Platform, { clusterId }: Relay) =>
  expectStatus(await (await platform.tenant).client.delete(`/api/v1/clusters/${clusterId}`), 204)

test('notifies only the submitter of a failed job', async ({ platform }) => {
  const [person, other] = [await newMember(platform), await newMember(platform)]
  const relay = await newRelay(platform)
  expect((await page(person)).items).toEqual([])
  const told = await failedJob(platform, person, relay)
  expect([told.read, (await page(person)).unreadCount]).toEqual([false, 1])
  expect(told.title.length).toBeGreaterThan(0)
  expect(Date.parse(told.createdAt)).toBeGreaterThan(0)
  // Notifications keep their order: a later job of another submitter proves that none is missing.
  const second = await failedJob(platform, other, relay)
  expect((await page(other)).items).toEqual([second])
  expect((await page(person)).items).toEqual([told])
  await removeCluster(platform, relay)
})

test('marks own notifications as read, by identifier or all at once', async ({ platform }) => {
  const [person, other] = [await newMember(platform), await newMember(platform)]
  const relay = await newRelay(platform)
  const foreign = await failedJob(platform, other, relay)
  const told = []
  for (let count = 0; count < 3; count++) told.push(await failedJob(platform, person, relay))
  const [first, second, third] = told
  const mark = async (json: object) => expectStatus(await person.client.patch(path, json), 204)
  await mark({ ids: [second.id, foreign.id, 'nothing', second.id] })
  const all = await page(person)
  expect([all.unreadCount, all.totalCount]).toEqual([2, 3])
  expect(all.items).toEqual([third, { ...second, read: true }, first])
  const unread = await page(person, 'unreadOnly=true&pageSize=1')
  expect([unread.items, unread.unreadCount, unread.totalCount]).toEqual([[third], 2, 2])
  expect((await page(person, 'unreadOnly=true&pageSize=1&page=2')).items).toEqual([first])
  // With markAllRead the ids are ignored.
  await mark({ ids: ['nothing'], markAllRead: true })
  expect([(await page(person)).unreadCount, (await page(person, 'unreadOnly=true')).items]).toEqual([0, []])
  expect((await page(other)).unreadCount).toBe(1)
  await mark({})
  await removeCluster(platform, relay)
})

test('notifies the submitter of a batch once, when it finishes', async ({ platform }) => {
  const person = await newMember(platform)
  const theirs = platform.as(person)
  const relay = await newRelay(platform)
  const { batchId, jobIds } = await submitBatch(theirs, { jobs: [jobFor(relay.clusterId), jobFor(relay.clusterId)] })
  for (const id of jobIds) {
    await theirs.told(relay, id)
    expectStatus(await relay.complete(id, (await relay.claim(id)).leaseId, 3), 200)
  }
  await finishedBatch(theirs, batchId)
  const told = await about(person, batchId, 'BatchFinished')
  expect((await page(person)).items).toEqual([told])
  await removeCluster(platform, relay)
})

test('notifies cluster readers when a cluster goes Offline and recovers', async ({ platform }) => {
  const viewer = await newMember(platform, 'Viewer')
  const relay = await newRelay(platform)
  expectStatus(await relay.heartbeat(), 200)
  expectStatus(await relay.goodbye(), 204)
  const offline = await about(viewer, relay.clusterId, 'ClusterOffline')
  for (let beats = 0; beats < 2; beats++) expectStatus(await relay.heartbeat(), 200)
  const recovered = await about(viewer, relay.clusterId, 'ClusterRecovered')
  expect(Date.parse(recovered.createdAt)).toBeGreaterThanOrEqual(Date.parse(offline.createdAt))
  await removeCluster(platform, relay)
})

test('alerts a user when a refresh token is reused', async ({ platform }) => {
  const person = await newMember(platform, 'Viewer')
  const { refreshToken } = person.tokens
  const refresh = () => platform.anonymous.post('/api/v1/auth/refresh', { refreshToken })
  expectStatus(await refresh(), 200)
  expectStatus(await refresh(), 401, 'invalid_refresh_token')
  await waitFor('the alarm', async () => {
    const { items } = await page(person)
    return items.some(({ type, severity }: any) => type === 'SecurityAlert' && severity === 'critical')
  })
})

test('rejects invalid changes and filters', async ({ platform }) => {
  const { client } = await newMember(platform, 'Viewer')
  const wrong: [object, string][] = [
    [{ ids: 'nothing' }, 'body /ids'],
    [{ ids: [7] }, 'body /ids/0'],
    [{ ids: Array(1001).fill('x') }, 'body /ids'],
    [{ markAllRead: 'true' }, 'body /markAllRead'],
  ]
  for (const [json, field] of wrong) expect(invalidFields(await client.patch(path, json))).toEqual([field])
  expect(invalidFields(await client.get(`${path}?unreadOnly=yes`))).toEqual(['query /unreadOnly'])
})
