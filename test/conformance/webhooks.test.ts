import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, invalidFields } from './support/answer.ts'
import { receiverAt } from './support/receiver.ts'
import type { Platform } from './support/platform.ts'
import { waitFor } from '../support/wait-for.ts'

const path = '/api/v1/webhooks'
const good = { url: 'https://hooks.example.com/conformance', events: ['platform.setup.*'], enabled: false }

async function newWebhook(platform: Platform, rest: object = {}): Promise<any> {
  const admin = await platform.admin
  const webhook = expectStatus(await admin.post(path, { ...good, ...rest }), 201)
  platform.removeLater(admin, `${path}/${webhook.id}`)
  return webhook
}

const privateAddresses = [
  'http://127.0.0.1/',
  'http://127.1:8080/',
  'http://2130706433/',
  'http://0x7f.1/',
  'http://0.0.0.0/',
  'http://[::1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://10.0.0.1/',
  'https://192.168.0.1/',
  'http://172.16.0.1/',
  'http://100.64.0.1/',
  'http://169.254.169.254/latest/meta-data/',
  'http://[fd00::1]/',
  'http://[fe80::1]/',
]

test('creates, changes, lists and removes a webhook and shows its secret once', async ({ platform }) => {
  const theirs = platform.as(await platform.tenant)
  const admin = await theirs.admin
  const { secret, ...webhook } = await newWebhook(theirs)
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/)
  expect([webhook.url, webhook.events, webhook.enabled]).toEqual([good.url, good.events, false])
  const listed = await waitFor('the webhook is listed', async () => {
    const list = await admin.get(path)
    expect(list.text).not.toContain(secret)
    return expectStatus(list, 200).items.find(({ id }: any) => id === webhook.id)
  })
  expect(listed).toEqual(webhook)
  const change = { events: ['platform.job.failed', 'platform.batch.*'], url: `${good.url}/other` }
  const changed = expectStatus(await admin.patch(`${path}/${webhook.id}`, change), 200)
  expect(changed).toEqual({ ...webhook, ...change })
  expectStatus(await admin.post(`${path}/${webhook.id}/test`), 409, 'webhook_disabled')
  expectStatus(await admin.delete(`${path}/${webhook.id}`), 204)
  expectStatus(await admin.delete(`${path}/${webhook.id}`), 404, 'webhook_not_found')
  expectStatus(await admin.patch(`${path}/${webhook.id}`, {}), 404, 'webhook_not_found')
})

test('names invalid fields', async ({ platform }) => {
  const { client } = await platform.tenant
  const wrong: [object, string[]][] = [
    [{}, ['body /url', 'body /events']],
    [{ ...good, url: 'nowhere' }, ['body /url']],
    [{ ...good, url: 'ftp://hooks.example.com/' }, ['body /url']],
    [{ ...good, url: `${good.url}/${'x'.repeat(2000)}` }, ['body /url']],
    [{ ...good, events: [] }, ['body /events']],
    [{ ...good, events: ['platform.*'] }, ['body /events/0']],
    [{ ...good, events: ['platform.setup.*', 'platform.nothing.happened'] }, ['body /events/1']],
    [{ ...good, enabled: 'yes' }, ['body /enabled']],
  ]
  for (const [json, fields] of wrong) expect(invalidFields(await client.post(path, json))).toEqual(fields)
})

test('rejects private addresses in any notation, on creation and change', async ({ platform }) => {
  const theirs = platform.as(await platform.tenant)
  const admin = await theirs.admin
  const { id } = await newWebhook(theirs)
  for (const url of [...privateAddresses, 'https://user:password@hooks.example.com/']) {
    expectStatus(await admin.post(path, { ...good, url }), 422, 'url_not_allowed')
    expectStatus(await admin.patch(`${path}/${id}`, { url }), 422, 'url_not_allowed')
  }
})

test('does not call a name that resolves to a private address and logs the error', async ({ platform }) => {
  const theirs = platform.as(await platform.tenant)
  const admin = await theirs.admin
  await using receiver = await receiverAt(['127.0.0.1:0'])
  const url = (receiver?.url ?? '').replace('127.0.0.1', 'localhost')
  const { id } = await newWebhook(theirs, { url, enabled: true })
  expectStatus(await admin.post(`${path}/${id}/test`), 202)
  const [attempt] = await waitFor('the attempt', async () => {
    const { items } = expectStatus(await admin.get(`${path}/${id}/deliveries`), 200)
    return items[0]?.attempts.length > 0 && items[0].attempts
  })
  expect(['address_not_allowed', 'name_not_resolved'], attempt.error).toContain(attempt.error)
  expect(attempt.statusCode).toBe(undefined)
  expect(receiver?.received).toEqual([])
})

test('returns 404 for every operation on an unknown webhook or delivery', async ({ platform }) => {
  const theirs = platform.as(await platform.tenant)
  const admin = await theirs.admin
  for (const id of ['nothing', 'hook_00000000000000000000000000']) {
    expectStatus(await admin.get(`${path}/${id}/deliveries`), 404, 'webhook_not_found')
    expectStatus(await admin.post(`${path}/${id}/test`), 404, 'webhook_not_found')
    expectStatus(await admin.post(`${path}/${id}/deliveries/nothing/redeliver`), 404, 'webhook_not_found')
  }
  const { id } = await newWebhook(theirs, { enabled: true })
  for (const deliveryId of ['nothing', 'dlv_00000000000000000000000000']) {
    expectStatus(await admin.post(`${path}/${id}/deliveries/${deliveryId}/redeliver`), 404, 'delivery_not_found')
  }
})
