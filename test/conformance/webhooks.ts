import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import { receiverAt } from './support/receiver.ts'
import type { Journeys, Platform } from './support/platform.ts'
import { until } from './support/until.ts'

const path = '/api/v1/webhooks'
const good = { url: 'https://hooks.example.com/conformance', events: ['platform.setup.*'], enabled: false }

async function newWebhook(platform: Platform, rest: object = {}): Promise<any> {
  const admin = await platform.admin
  const webhook = answered(await admin.post(path, { ...good, ...rest }), 201)
  platform.leftovers.made(admin, `${path}/${webhook.id}`)
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

export const webhooks: Journeys = {
  'a webhook is created, changed, listed and removed; its secret is shown once': async (platform) => {
    const theirs = platform.as(await platform.tenant)
    const admin = await theirs.admin
    const { secret, ...webhook } = await newWebhook(theirs)
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{32,}={0,2}$/)
    assert.deepEqual([webhook.url, webhook.events, webhook.enabled], [good.url, good.events, false])
    const listed = await until('the webhook is listed', async () => {
      const list = await admin.get(path)
      assert.ok(!list.text.includes(secret))
      return answered(list, 200).items.find(({ id }: any) => id === webhook.id)
    })
    assert.deepEqual(listed, webhook)
    const change = { events: ['platform.job.failed', 'platform.batch.*'], url: `${good.url}/other` }
    const changed = answered(await admin.patch(`${path}/${webhook.id}`, change), 200)
    assert.deepEqual(changed, { ...webhook, ...change })
    answered(await admin.post(`${path}/${webhook.id}/test`), 409, 'webhook_disabled')
    answered(await admin.delete(`${path}/${webhook.id}`), 204)
    answered(await admin.delete(`${path}/${webhook.id}`), 404, 'webhook_not_found')
    answered(await admin.patch(`${path}/${webhook.id}`, {}), 404, 'webhook_not_found')
  },

  'fields that are wrong are named': async (platform) => {
    const { client } = await platform.tenant
    const wrong: [object, string[]][] = [
      [{}, ['body /url', 'body /events']],
      [{ ...good, url: 'nowhere' }, ['body /url']],
      [{ ...good, url: 'ftp://hooks.example.com/' }, ['body /url']],
      [{ ...good, events: [] }, ['body /events']],
      [{ ...good, events: ['platform.setup.*', 'platform.nothing.happened'] }, ['body /events/1']],
      [{ ...good, enabled: 'yes' }, ['body /enabled']],
    ]
    for (const [json, fields] of wrong) assert.deepEqual(refusedFields(await client.post(path, json)), fields)
  },

  'addresses that are private, however they are written, are refused, when a webhook is changed too': async (
    platform,
  ) => {
    const theirs = platform.as(await platform.tenant)
    const admin = await theirs.admin
    const { id } = await newWebhook(theirs)
    for (const url of [...privateAddresses, 'https://user:password@hooks.example.com/']) {
      answered(await admin.post(path, { ...good, url }), 422, 'url_not_allowed')
      answered(await admin.patch(`${path}/${id}`, { url }), 422, 'url_not_allowed')
    }
  },

  'a name that leads to a private address is not called; the delivery log says so': async (platform) => {
    const theirs = platform.as(await platform.tenant)
    const admin = await theirs.admin
    await using receiver = await receiverAt(['127.0.0.1:0'])
    const url = (receiver?.url ?? '').replace('127.0.0.1', 'localhost')
    const { id } = await newWebhook(theirs, { url, enabled: true })
    answered(await admin.post(`${path}/${id}/test`), 202)
    const [attempt] = await until('the attempt', async () => {
      const { items } = answered(await admin.get(`${path}/${id}/deliveries`), 200)
      return items[0]?.attempts.length > 0 && items[0].attempts
    })
    assert.ok(['address_not_allowed', 'name_not_resolved'].includes(attempt.error), attempt.error)
    assert.equal(attempt.statusCode, undefined)
    assert.deepEqual(receiver?.received, [])
  },

  'an identifier that names no webhook or delivery answers 404': async (platform) => {
    const theirs = platform.as(await platform.tenant)
    const admin = await theirs.admin
    for (const id of ['nothing', 'hook_00000000000000000000000000']) {
      answered(await admin.get(`${path}/${id}/deliveries`), 404, 'webhook_not_found')
      answered(await admin.post(`${path}/${id}/test`), 404, 'webhook_not_found')
      answered(await admin.post(`${path}/${id}/deliveries/nothing/redeliver`), 404, 'webhook_not_found')
    }
    const { id } = await newWebhook(theirs, { enabled: true })
    for (const deliveryId of ['nothing', 'dlv_00000000000000000000000000']) {
      answered(await admin.post(`${path}/${id}/deliveries/${deliveryId}/redeliver`), 404, 'delivery_not_found')
    }
  },
}
