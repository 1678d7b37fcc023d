import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { Webhook } from 'standardwebhooks'
import { assert, expect } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { expectStatus } from './support/answer.ts'
import type { Platform } from './support/platform.ts'
import { test } from './support/test.ts'
import {
  eventsAt,
  type ReceivedRequest,
  startReceiver,
  startWebhookTenant,
  waitForClusterEvent,
  waitForDelivery,
  waitForRequests,
  webhooksPath as path,
} from './support/webhooks.ts'

const disabledWebhook = { url: 'https://hooks.example.com/conformance', events: ['platform.setup.*'], enabled: false }

async function newWebhook(platform: Platform, fields: object = {}): Promise<any> {
  const admin = await platform.admin
  const webhook = expectStatus(await admin.post(path, { ...disabledWebhook, ...fields }), 201)
  platform.removeLater(admin, `${path}/${webhook.id}`)
  return webhook
}

/** A sample of private hosts. The tests of core contain more notations. */
const privateHosts = ['127.1:8080', '0x7f.1', '[::ffff:127.0.0.1]', '10.0.0.1', '169.254.169.254', '[fd00::1]']

test('creates, changes, lists and removes a webhook and shows its secret once', async ({ platform }) => {
  const tenant = platform.as(await platform.tenant)
  const admin = await tenant.admin
  const { secret, ...webhook } = await newWebhook(tenant)
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/)
  expect([webhook.url, webhook.events, webhook.enabled]).toEqual([disabledWebhook.url, disabledWebhook.events, false])
  const listedWebhook = await waitFor('the webhook is listed', async () => {
    const list = await admin.get(path)
    expect(list.text).not.toContain(secret)
    return expectStatus(list, 200).items.find(({ id }: any) => id === webhook.id)
  })
  expect(listedWebhook).toEqual(webhook)
  const change = { events: ['platform.job.failed', 'platform.batch.*'], url: `${disabledWebhook.url}/other` }
  const changedWebhook = expectStatus(await admin.patch(`${path}/${webhook.id}`, change), 200)
  expect(changedWebhook).toEqual({ ...webhook, ...change })
  expectStatus(await admin.post(`${path}/${webhook.id}/test`), 409, 'webhook_disabled')
  expectStatus(await admin.delete(`${path}/${webhook.id}`), 204)
  expectStatus(await admin.delete(`${path}/${webhook.id}`), 404, 'webhook_not_found')
  expectStatus(await admin.patch(`${path}/${webhook.id}`, {}), 404, 'webhook_not_found')
})

test('rejects private addresses in any notation, on creation and change', async ({ platform }) => {
  const tenant = platform.as(await platform.tenant)
  const admin = await tenant.admin
  const { id } = await newWebhook(tenant)
  for (const host of [...privateHosts, 'user:password@hooks.example.com']) {
    const url = `http://${host}/`
    expectStatus(await admin.post(path, { ...disabledWebhook, url }), 422, 'url_not_allowed')
    expectStatus(await admin.patch(`${path}/${id}`, { url }), 422, 'url_not_allowed')
  }
})

test('does not call a name that resolves to a private address and logs the error', async ({ platform }) => {
  const tenant = platform.as(await platform.tenant)
  const admin = await tenant.admin
  await using receiver = await startReceiver(['127.0.0.1:0'])
  const url = (receiver?.url ?? '').replace('127.0.0.1', 'localhost')
  const { id } = await newWebhook(tenant, { url, enabled: true })
  expectStatus(await admin.post(`${path}/${id}/test`), 202)
  const [attempt] = await waitFor('the attempt', async () => {
    const { items } = expectStatus(await admin.get(`${path}/${id}/deliveries`), 200)
    return items[0]?.attempts.length > 0 && items[0].attempts
  })
  expect(['address_not_allowed', 'name_not_resolved'], attempt.error).toContain(attempt.error)
  expect(attempt.statusCode).toBe(undefined)
  expect(receiver?.requests).toEqual([])
})

const deliveryTest = test.extend('tenant', async ({ platform, skip }, { onCleanup }) => {
  const tenant = await startWebhookTenant(platform)
  if (tenant === undefined) return skip('PLAT_WEBHOOK_ALLOW names no free port of this machine')
  onCleanup(() => tenant[Symbol.asyncDispose]())
  return tenant
})

async function eventSchemas(platform: Platform): Promise<Map<string, ValidateFunction>> {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true })
  formats.default(ajv)
  const { items } = expectStatus(await (await platform.admin).get('/api/v1/events/catalog'), 200)
  return new Map(items.map(({ type, schema }: any) => [type, ajv.compile(schema)]))
}

const signatureHeaders = ({ headers }: ReceivedRequest) => ({
  'webhook-id': String(headers['webhook-id']),
  'webhook-timestamp': String(headers['webhook-timestamp']),
  'webhook-signature': String(headers['webhook-signature']),
})

deliveryTest('signs a test event with the secret of its webhook', async ({ tenant }) => {
  const { admin, receiver, newWebhook } = tenant
  const webhook = await newWebhook('/signed', ['platform.setup.*'])
  const otherWebhook = await newWebhook('/other', ['platform.setup.*'])
  const acceptedTest = expectStatus(await admin.post(`${path}/${webhook.id}/test`), 202)
  const [request] = await waitForRequests(receiver, '/signed', 1)
  assert(request !== undefined)
  const event: any = new Webhook(webhook.secret).verify(request.body, signatureHeaders(request))
  expect([event.specversion, event.type]).toEqual(['1.0', 'platform.webhook.tested'])
  expect(request.headers['webhook-id']).toBe(event.id)
  expect(() => new Webhook(otherWebhook.secret).verify(request.body, signatureHeaders(request))).toThrow()
  expect(() => new Webhook(webhook.secret).verify(`${request.body} `, signatureHeaders(request))).toThrow()
  const finishedDelivery = await waitForDelivery(admin, webhook.id, ({ status }) => status === 'Delivered')
  expect([finishedDelivery.id, finishedDelivery.eventId, finishedDelivery.attempts.length]).toEqual([
    acceptedTest.id,
    event.id,
    1,
  ])
  expect([finishedDelivery.attempts[0].statusCode, finishedDelivery.attempts[0].error]).toEqual([204, undefined])
  expect(receiver.requests.length).toBe(1)

  const rotatedSecret = expectStatus(await admin.post(`${path}/${webhook.id}/rotate-secret`), 200)
  expect(rotatedSecret.secret).not.toBe(webhook.secret)
  expectStatus(await admin.post(`${path}/${webhook.id}/test`), 202)
  const [, doublySigned] = await waitForRequests(receiver, '/signed', 2)
  assert(doublySigned !== undefined)
  for (const { secret } of [webhook, rotatedSecret])
    expect(new Webhook(secret).verify(doublySigned.body, signatureHeaders(doublySigned))).toBeDefined()
})

deliveryTest('delivers only subscribed events, as CloudEvents that match the catalog', async ({ tenant }) => {
  const { admin, receiver, newWebhook } = tenant
  await newWebhook('/clusters', ['platform.cluster.*'])
  const { id } = await tenant.platform.newCluster()
  expectStatus(await admin.post(`/api/v1/jobs/${await tenant.platform.submit(id)}/cancel`), 202)
  const removal = await admin.delete(`/api/v1/clusters/${id}`)
  expectStatus(removal, 204)
  const events = await waitFor('both events', async () => {
    const receivedEvents = eventsAt(receiver, '/clusters').filter(({ data }) => data.clusterId === id)
    return (
      receivedEvents.some(({ type }) => type === 'platform.cluster.deleted') &&
      receivedEvents.length >= 2 &&
      receivedEvents
    )
  })
  const types: string[] = events.map(({ type }) => type)
  expect(types.toSorted()).toEqual(['platform.cluster.deleted', 'platform.cluster.registered'])
  expect(eventsAt(receiver, '/clusters').every(({ type }) => type.startsWith('platform.cluster.'))).toBe(true)
  const deletionEvent = events.find(({ type }) => type === 'platform.cluster.deleted')
  expect(deletionEvent.traceid).toBe(removal.headers.get('x-trace-id'))
  const schemas = await eventSchemas(tenant.platform)
  const { organisationId } = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  for (const { specversion, source, subject, time, type, data } of events) {
    expect([specversion, source, subject]).toEqual(['1.0', `/organisations/${organisationId}`, id])
    expect(Date.parse(time)).toBeGreaterThan(0)
    expect(schemas.get(type)?.(data), type).toBe(true)
  }
})

deliveryTest('delivers all events of its organisation and none of another', async ({ tenant, platform }) => {
  const { admin, receiver, newWebhook } = tenant
  const { id: webhookId } = await newWebhook('/all', ['*'])
  const foreignCluster = await platform.newCluster()
  const { organisationId } = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  const jobId = await tenant.platform.submit((await tenant.platform.newCluster()).id)
  expectStatus(await admin.post(`/api/v1/jobs/${jobId}/cancel`), 202)
  const ownEvents = () => eventsAt(receiver, '/all')
  expectStatus(await (await platform.admin).delete(`/api/v1/clusters/${foreignCluster.id}`), 204)
  await waitFor(
    'the events of the job',
    async () => ownEvents().filter(({ subject }) => subject === jobId).length === 2,
  )
  expect(ownEvents().every(({ source }) => source === `/organisations/${organisationId}`)).toBe(true)
  const types = new Set(ownEvents().map(({ type }) => type))
  for (const name of ['cluster.registered', 'job.queued', 'job.cancelled'])
    expect(types.has(`platform.${name}`)).toBe(true)
  await waitFor('the deliveries in the log', async () => {
    const log = expectStatus(await admin.get(`${path}/${webhookId}/deliveries?pageSize=100`), 200)
    const loggedEventIds = new Set(log.items.map(({ eventId }: any) => eventId))
    return ownEvents().every(({ id }) => loggedEventIds.has(id))
  })
})

deliveryTest('retries a failed delivery, does not delay others and redelivers on request', async ({ tenant }) => {
  const { admin, receiver, newWebhook } = tenant
  receiver.respondWith(500)
  const webhook = await newWebhook('/failing', ['platform.setup.*'])
  expectStatus(await admin.post(`${path}/${webhook.id}/test`), 202)
  const failedDelivery = await waitForDelivery(admin, webhook.id, ({ attempts }) => attempts.length > 0)
  expect([failedDelivery.attempts[0].statusCode, failedDelivery.attempts[0].error]).toEqual([
    500,
    'unsuccessful_status',
  ])
  expect(failedDelivery.status).toBe('Pending')
  expect(Date.parse(failedDelivery.nextAttemptAt)).toBeGreaterThan(Date.parse(failedDelivery.attempts[0].at))
  const { items } = expectStatus(await admin.get(path), 200)
  expect(items.find(({ id }: any) => id === webhook.id).failureCount).toBeGreaterThan(0)

  receiver.respondWith(200)
  const healthyWebhook = await newWebhook('/healthy', ['platform.setup.*'])
  expectStatus(await admin.post(`${path}/${healthyWebhook.id}/test`), 202)
  await waitForRequests(receiver, '/healthy', 1)
  expectStatus(await admin.post(`${path}/${webhook.id}/deliveries/${failedDelivery.id}/redeliver`), 202)
  const retriedRequests = await waitForRequests(receiver, '/failing', 2)
  expect(new Set(retriedRequests.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  await waitForDelivery(admin, webhook.id, ({ status }) => status === 'Delivered')
})

deliveryTest('does not delay other deliveries for a receiver that hangs', async ({ tenant }) => {
  const { admin, receiver, newWebhook } = tenant
  receiver.hangingPaths.add('/hanging')
  const [hangingWebhook, quickWebhook] = [
    await newWebhook('/hanging', ['platform.setup.*']),
    await newWebhook('/quick', ['platform.setup.*']),
  ]
  expectStatus(await admin.post(`${path}/${hangingWebhook.id}/test`), 202)
  await waitForRequests(receiver, '/hanging', 1)
  expectStatus(await admin.post(`${path}/${quickWebhook.id}/test`), 202)
  await waitForRequests(receiver, '/quick', 1)
  // The first attempt is still open.
  const { attempts, status } = await waitForDelivery(admin, hangingWebhook.id, () => true)
  expect([attempts, status]).toEqual([[], 'Pending'])
})

deliveryTest('delivers nothing that happened while a webhook was disabled', async ({ tenant }) => {
  const { admin, receiver, newWebhook } = tenant
  const webhook = await newWebhook('/re-enabled', ['platform.cluster.registered'])
  expectStatus(await admin.patch(`${path}/${webhook.id}`, { enabled: false }), 200)
  const { id: firstId } = await tenant.platform.newCluster()
  await newWebhook('/control', ['platform.cluster.registered'])
  const { id: secondId } = await tenant.platform.newCluster()
  // Once the second webhook has the event, the first one would have it too.
  await waitForClusterEvent(receiver, '/control', secondId)
  expectStatus(await admin.patch(`${path}/${webhook.id}`, { enabled: true }), 200)
  const { id: lastId } = await tenant.platform.newCluster()
  await waitForClusterEvent(receiver, '/re-enabled', lastId)
  const receivedIds = new Set(eventsAt(receiver, '/re-enabled').map(({ data }) => data.clusterId))
  expect([receivedIds.has(firstId), receivedIds.has(secondId)]).toEqual([false, false])
})

const promisedNames = [
  'setup.completed',
  ...['created', 'signed_in', 'sign_in_failed', 'deleted'].map((verb) => `user.${verb}`),
  'session.reuse_detected',
  ...['registered', 'enrolled', 'status_changed', 'updated', 'deleted'].map((verb) => `cluster.${verb}`),
  'relay.replaced',
  ...['queued', 'started', 'completed', 'failed', 'cancelled'].map((verb) => `job.${verb}`),
  ...['accepted', 'finished'].map((verb) => `batch.${verb}`),
  ...['provider_configured', 'consent_received'].map((verb) => `identity.${verb}`),
  ...['available', 'started', 'completed', 'failed', 'rolled_back'].map((verb) => `update.${verb}`),
]

test('lists every event once with a description', async ({ platform }) => {
  const { client } = await platform.newUser('Viewer')
  const { items } = expectStatus(await client.get('/api/v1/events/catalog'), 200)
  const types: string[] = items.map(({ type }: any) => type)
  expect(new Set(types).size).toBe(types.length)
  for (const name of promisedNames) expect(types, name).toContain(`platform.${name}`)
  for (const { type, description } of items) {
    expect(type).toMatch(/^platform(?:\.[a-z_]+){2}$/)
    expect(description).toMatch(/\.$/)
  }
})

test('publishes schemas that compile and validate event data', async ({ platform }) => {
  const schemas = await eventSchemas(platform)
  expect(schemas.size).toBeGreaterThan(0)
  for (const [type, validate] of schemas) {
    for (const invalid of [null, [], 'text', {}]) expect(validate(invalid), type).toBe(false)
  }
  const isRegistrationValid = schemas.get('platform.cluster.registered')
  const cluster = { clusterId: 'clus_00000000000000000000000000', name: 'berlin-1', type: 'Hypervisor' }
  expect(isRegistrationValid?.(cluster)).toBe(true)
  // A later release may add members.
  expect(isRegistrationValid?.({ ...cluster, another: 1 })).toBe(true)
  expect(isRegistrationValid?.({ ...cluster, clusterId: 'berlin-1' })).toBe(false)
})
