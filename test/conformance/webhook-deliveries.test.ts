import { assert, expect } from 'vitest'
import { test as base } from './support/test.ts'
import { Webhook } from 'standardwebhooks'
import { expectStatus } from './support/answer.ts'
import { eventSchemas } from './support/events.ts'
import type { Received } from './support/receiver.ts'
import { waitFor } from '../support/wait-for.ts'
import { came, eventsAt, heardOf, newestDelivery, startDeliveries, webhooksPath as path } from './support/webhooks.ts'

const test = base.extend('deliveries', async ({ platform, skip }, { onCleanup }) => {
  const deliveries = await startDeliveries(platform)
  if (deliveries === undefined) return skip('PLAT_OUTBOUND_ALLOW names no free port of this machine')
  onCleanup(() => deliveries[Symbol.asyncDispose]())
  return deliveries
})

const signatureHeaders = ({ headers }: Received) => ({
  'webhook-id': String(headers['webhook-id']),
  'webhook-timestamp': String(headers['webhook-timestamp']),
  'webhook-signature': String(headers['webhook-signature']),
})

test('signs a test event with the secret of its webhook', async ({ deliveries }) => {
  const { admin, receiver, newWebhook } = deliveries
  const webhook = await newWebhook('/signed', ['platform.setup.*'])
  const other = await newWebhook('/other', ['platform.setup.*'])
  const accepted = expectStatus(await admin.post(`${path}/${webhook.id}/test`), 202)
  const [request] = await came(receiver, '/signed', 1)
  assert(request !== undefined)
  const event: any = new Webhook(webhook.secret).verify(request.body, signatureHeaders(request))
  expect([event.specversion, event.type]).toEqual(['1.0', 'platform.webhook.tested'])
  expect(request.headers['webhook-id']).toBe(event.id)
  expect(() => new Webhook(other.secret).verify(request.body, signatureHeaders(request))).toThrow()
  expect(() => new Webhook(webhook.secret).verify(`${request.body} `, signatureHeaders(request))).toThrow()
  const done = await newestDelivery(admin, webhook.id, ({ status }) => status === 'Delivered')
  expect([done.id, done.eventId, done.attempts.length]).toEqual([accepted.id, event.id, 1])
  expect([done.attempts[0].statusCode, done.attempts[0].error]).toEqual([204, undefined])
  expect(receiver.received.length).toBe(1)
})

test('delivers only subscribed events, as CloudEvents that match the catalog', async ({ deliveries }) => {
  const { theirs, admin, receiver, newWebhook } = deliveries
  await newWebhook('/clusters', ['platform.cluster.*'])
  const { id } = await theirs.newCluster()
  expectStatus(await admin.post(`/api/v1/jobs/${await theirs.submit(id)}/cancel`), 202)
  const removal = await admin.delete(`/api/v1/clusters/${id}`)
  expectStatus(removal, 204)
  const events = await waitFor('both events have come', async () => {
    const about = eventsAt(receiver, '/clusters').filter(({ data }) => data.clusterId === id)
    return about.some(({ type }) => type === 'platform.cluster.deleted') && about.length >= 2 && about
  })
  const types: string[] = events.map(({ type }) => type)
  expect(types.toSorted()).toEqual(['platform.cluster.deleted', 'platform.cluster.registered'])
  expect(eventsAt(receiver, '/clusters').every(({ type }) => type.startsWith('platform.cluster.'))).toBe(true)
  const deleted = events.find(({ type }) => type === 'platform.cluster.deleted')
  expect(deleted.traceid).toBe(removal.headers.get('x-trace-id'))
  const schemas = await eventSchemas(theirs)
  const { organisationId } = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  for (const { specversion, source, subject, time, type, data } of events) {
    expect([specversion, source, subject]).toEqual(['1.0', `/organisations/${organisationId}`, id])
    expect(Date.parse(time)).toBeGreaterThan(0)
    expect(schemas.get(type)?.(data), type).toBe(true)
  }
})

test('delivers all events of the own organisation and none of another', async ({ deliveries, platform }) => {
  const { theirs, admin, receiver, newWebhook } = deliveries
  const { id: webhookId } = await newWebhook('/all', ['*'])
  // An event of another organisation.
  const foreign = await platform.newCluster()
  const { organisationId } = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  const jobId = await theirs.submit((await theirs.newCluster()).id)
  expectStatus(await admin.post(`/api/v1/jobs/${jobId}/cancel`), 202)
  const own = () => eventsAt(receiver, '/all')
  expectStatus(await (await platform.admin).delete(`/api/v1/clusters/${foreign.id}`), 204)
  await waitFor('the job is heard of', async () => own().filter(({ subject }) => subject === jobId).length === 2)
  expect(own().every(({ source }) => source === `/organisations/${organisationId}`)).toBe(true)
  const types = new Set(own().map(({ type }) => type))
  for (const name of ['cluster.registered', 'job.queued', 'job.cancelled'])
    expect(types.has(`platform.${name}`)).toBe(true)
  await waitFor('all of that is in the log', async () => {
    const log = expectStatus(await admin.get(`${path}/${webhookId}/deliveries?pageSize=100`), 200)
    const logged = new Set(log.items.map(({ eventId }: any) => eventId))
    return own().every(({ id }) => logged.has(id))
  })
})

test('retries a failed delivery, does not delay others and redelivers on request', async ({ deliveries }) => {
  const { admin, receiver, newWebhook } = deliveries
  receiver.answerWith(500)
  const webhook = await newWebhook('/failing', ['platform.setup.*'])
  expectStatus(await admin.post(`${path}/${webhook.id}/test`), 202)
  const failed = await newestDelivery(admin, webhook.id, ({ attempts }) => attempts.length > 0)
  expect([failed.attempts[0].statusCode, failed.attempts[0].error]).toEqual([500, 'unsuccessful_status'])
  expect(failed.status).toBe('Pending')
  expect(Date.parse(failed.nextAttemptAt)).toBeGreaterThan(Date.parse(failed.attempts[0].at))
  const { items } = expectStatus(await admin.get(path), 200)
  expect(items.find(({ id }: any) => id === webhook.id).failureCount).toBeGreaterThan(0)

  receiver.answerWith(200)
  const healthy = await newWebhook('/healthy', ['platform.setup.*'])
  expectStatus(await admin.post(`${path}/${healthy.id}/test`), 202)
  await came(receiver, '/healthy', 1)
  expectStatus(await admin.post(`${path}/${webhook.id}/deliveries/${failed.id}/redeliver`), 202)
  const again = await came(receiver, '/failing', 2)
  expect(new Set(again.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  await newestDelivery(admin, webhook.id, ({ status }) => status === 'Delivered')
})

test('does not delay other deliveries for a receiver that hangs', async ({ deliveries }) => {
  const { admin, receiver, newWebhook } = deliveries
  receiver.silentAt.add('/hanging')
  const [hanging, quick] = [
    await newWebhook('/hanging', ['platform.setup.*']),
    await newWebhook('/quick', ['platform.setup.*']),
  ]
  expectStatus(await admin.post(`${path}/${hanging.id}/test`), 202)
  await came(receiver, '/hanging', 1)
  expectStatus(await admin.post(`${path}/${quick.id}/test`), 202)
  await came(receiver, '/quick', 1)
  // The first attempt is still open.
  const { attempts, status } = await newestDelivery(admin, hanging.id, () => true)
  expect([attempts, status]).toEqual([[], 'Pending'])
})

test('does not follow redirects', async ({ deliveries }) => {
  const { admin, receiver, newWebhook } = deliveries
  receiver.answerWith(302, { location: `${receiver.url}/elsewhere` })
  const webhook = await newWebhook('/redirecting', ['platform.setup.*'])
  expectStatus(await admin.post(`${path}/${webhook.id}/test`), 202)
  const { attempts } = await newestDelivery(admin, webhook.id, (newest) => newest.attempts.length > 0)
  expect([attempts[0].statusCode, attempts[0].error]).toEqual([302, 'redirected'])
  expect(receiver.received.every((request) => request.path === '/redirecting')).toBe(true)
})

test('delivers nothing that happened while a webhook was disabled', async ({ deliveries }) => {
  const { theirs, admin, receiver, newWebhook } = deliveries
  const webhook = await newWebhook('/switched', ['platform.cluster.registered'])
  expectStatus(await admin.patch(`${path}/${webhook.id}`, { enabled: false }), 200)
  const { id: unheard } = await theirs.newCluster()
  await newWebhook('/witness', ['platform.cluster.registered'])
  const { id: unheardToo } = await theirs.newCluster()
  // Once the second webhook has the event, the first one would have it too.
  await heardOf(receiver, '/witness', unheardToo)
  expectStatus(await admin.patch(`${path}/${webhook.id}`, { enabled: true }), 200)
  const { id: last } = await theirs.newCluster()
  await heardOf(receiver, '/switched', last)
  const heard = new Set(eventsAt(receiver, '/switched').map(({ data }) => data.clusterId))
  expect([heard.has(unheard), heard.has(unheardToo)]).toEqual([false, false])
})
