import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import { finishedBatch, jobFor, submitBatch } from './support/batch.ts'
import type { Person } from './support/person.ts'
import type { Journeys, Platform } from './support/platform.ts'
import type { Relay } from './support/relay.ts'
import { until } from './support/until.ts'

const path = '/api/v1/notifications'
/** The sweep looks at silence once a minute. */
const sweepSeconds = 150

/** In an organisation of its own: what happens to clusters is told to everybody who may see them. */
const newMember = async (platform: Platform, role = 'Operator') => platform.as(await platform.tenant).newPerson(role)
const newRelay = async (platform: Platform) => platform.as(await platform.tenant).newRelay()

const page = async ({ client }: Person, query = '') => answered(await client.get(`${path}?${query}`), 200)

/** The notification about something, once it is there. */
const about = (person: Person, resource: string, type: string): Promise<any> =>
  until(
    `${type} about ${resource}`,
    async () => {
      const { items } = await page(person, 'pageSize=100')
      return items.find((item: any) => item.resource === resource && item.type === type)
    },
    sweepSeconds,
  )

/** Somebody's job fails; answers the notification. */
async function failedJob(platform: Platform, person: Person, relay: Relay): Promise<any> {
  const { jobId, leaseId } = await platform.as(person).running(relay)
  answered(await relay.complete(jobId, leaseId, 3), 200)
  return about(person, jobId, 'JobFailed')
}

const removeCluster = async (platform: Platform, { clusterId }: Relay) =>
  answered(await (await platform.tenant).client.delete(`/api/v1/clusters/${clusterId}`), 204)

export const notifications: Journeys = {
  'whoever submitted a job is told that it failed, and nobody else': async (platform) => {
    const [person, other] = [await newMember(platform), await newMember(platform)]
    const relay = await newRelay(platform)
    assert.deepEqual((await page(person)).items, [])
    const told = await failedJob(platform, person, relay)
    assert.deepEqual([told.read, (await page(person)).unreadCount], [false, 1])
    assert.ok(told.title.length > 0 && Date.parse(told.createdAt) > 0)
    // A job of another submitter: by then the first one would have been told of, too.
    const second = await failedJob(platform, other, relay)
    assert.deepEqual((await page(other)).items, [second])
    assert.deepEqual((await page(person)).items, [told])
    await removeCluster(platform, relay)
  },

  'notifications are marked as read by their identifiers, or all of them; others’ are left alone': async (platform) => {
    const [person, other] = [await newMember(platform), await newMember(platform)]
    const relay = await newRelay(platform)
    const foreign = await failedJob(platform, other, relay)
    const told = []
    for (let count = 0; count < 3; count++) told.push(await failedJob(platform, person, relay))
    const [first, second, third] = told
    const mark = async (json: object) => answered(await person.client.patch(path, json), 204)
    await mark({ ids: [second.id, foreign.id, 'nothing', second.id] })
    const all = await page(person)
    assert.deepEqual([all.unreadCount, all.totalCount], [2, 3])
    assert.deepEqual(all.items, [third, { ...second, read: true }, first])
    const unread = await page(person, 'unreadOnly=true&pageSize=1')
    assert.deepEqual([unread.items, unread.unreadCount, unread.totalCount], [[third], 2, 2])
    assert.deepEqual((await page(person, 'unreadOnly=true&pageSize=1&page=2')).items, [first])
    // With markAllRead the identifiers are ignored.
    await mark({ ids: ['nothing'], markAllRead: true })
    assert.deepEqual([(await page(person)).unreadCount, (await page(person, 'unreadOnly=true')).items], [0, []])
    assert.equal((await page(other)).unreadCount, 1)
    await mark({})
    await removeCluster(platform, relay)
  },

  'of a batch its submitter is told once, when it is over': async (platform) => {
    const person = await newMember(platform)
    const theirs = platform.as(person)
    const relay = await newRelay(platform)
    const { batchId, jobIds } = await submitBatch(theirs, { jobs: [jobFor(relay.clusterId), jobFor(relay.clusterId)] })
    for (const id of jobIds) {
      await theirs.told(relay, id)
      answered(await relay.complete(id, (await relay.claim(id)).leaseId, 3), 200)
    }
    await finishedBatch(theirs, batchId)
    const told = await about(person, batchId, 'BatchFinished')
    assert.deepEqual((await page(person)).items, [told])
    await removeCluster(platform, relay)
  },

  'whoever may see a cluster is told that it went Offline, and that it came back': async (platform) => {
    const viewer = await newMember(platform, 'Viewer')
    const relay = await newRelay(platform)
    answered(await relay.beat(), 200)
    answered(await relay.goodbye(), 204)
    const offline = await about(viewer, relay.clusterId, 'ClusterOffline')
    for (let beats = 0; beats < 2; beats++) answered(await relay.beat(), 200)
    const recovered = await about(viewer, relay.clusterId, 'ClusterRecovered')
    assert.ok(Date.parse(recovered.createdAt) >= Date.parse(offline.createdAt))
    await removeCluster(platform, relay)
  },

  'a refresh token that is used twice alarms its user': async (platform) => {
    const person = await newMember(platform, 'Viewer')
    const { refreshToken } = person.tokens
    const refresh = () => platform.anonymous.post('/api/v1/auth/refresh', { refreshToken })
    answered(await refresh(), 200)
    answered(await refresh(), 401, 'invalid_refresh_token')
    await until('the alarm', async () => {
      const { items } = await page(person)
      return items.some(({ type, severity }: any) => type === 'SecurityAlert' && severity === 'critical')
    })
  },

  'what is no change of notifications is refused': async (platform) => {
    const { client } = await newMember(platform, 'Viewer')
    const wrong: [object, string][] = [
      [{ ids: 'nothing' }, 'body /ids'],
      [{ ids: [7] }, 'body /ids/0'],
      [{ markAllRead: 'true' }, 'body /markAllRead'],
    ]
    for (const [json, field] of wrong) assert.deepEqual(refusedFields(await client.patch(path, json)), [field])
    assert.deepEqual(refusedFields(await client.get(`${path}?unreadOnly=yes`)), ['query /unreadOnly'])
  },
}
