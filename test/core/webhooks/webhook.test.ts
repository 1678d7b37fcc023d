import { DynamoDBClient, ScanCommand } from '@aws-sdk/client-dynamodb'
import { webhookLimit } from '@platform/contract/webhook'
import { config } from '@platform/core/config'
import * as Batch from '@platform/core/jobs/batches/batch'
import { runProjections } from '@platform/core/outbox/run-projections'
import { webhookProjection } from '@platform/core/webhooks/projection'
import { ensureKeys } from '@platform/core/signing/keys'
import { webhookRootKey } from '@platform/core/signing/root-keys'
import { statementKeys } from '@platform/core/signing/statement-keys'
import * as Cluster from '@platform/core/clusters/cluster'
import * as Delivery from '@platform/core/webhooks/delivery-log'
import { isSubscribed } from '@platform/core/webhooks/record'
import { secretOf, signedHeaders } from '@platform/core/webhooks/secret'
import * as Webhook from '@platform/core/webhooks/webhook'
import { Webhook as Verifier } from 'standardwebhooks'
import { beforeAll, expect, test } from 'vitest'
import { expectError, newCaller, requestErrorCode } from '../../support/fixtures.ts'
import { onStoreCall } from '../../support/store-calls.ts'
import { runBefore } from '../support/interleaving.ts'
import { scriptJob } from '../support/jobs.ts'

const settings = { url: 'https://hooks.example.com/platform', events: ['platform.job.*'] }

async function startPlatform(): Promise<string> {
  await ensureKeys()
  return JSON.stringify([await webhookRootKey(), await statementKeys()])
}

/** The keys after concurrent first starts, of which the slowest writes last. */
let keysOfStarts: string[] = []
beforeAll(async () => {
  const [paused, resumed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let isPaused = false
  using _ = onStoreCall({
    before: async ({ command }) => {
      if (isPaused || !command.startsWith('TransactWrite')) return
      isPaused = true
      paused.resolve()
      await resumed.promise
    },
  })
  const slowStart = startPlatform()
  await paused.promise
  keysOfStarts = await Promise.all([startPlatform(), startPlatform()])
  resumed.resolve()
  keysOfStarts.push(await slowStart)
})

test('concurrent first starts agree on all keys, and rotation keeps those that relays and receivers store', async () => {
  expect(new Set(keysOfStarts).size).toBe(1)
  await Promise.all([ensureKeys({ rotate: true }), ensureKeys({ rotate: true }), ensureKeys()])
  expect(JSON.stringify([await webhookRootKey(), await statementKeys()])).toBe(keysOfStarts[0])
})

test('a signature covers body, id and time, and its secret differs by webhook and version', async () => {
  const webhook = { id: 'hook_1', secretVersion: 1 }
  const [secret, ...otherSecrets] = await Promise.all([
    secretOf(webhook),
    secretOf({ ...webhook, id: 'hook_2' }),
    secretOf({ ...webhook, secretVersion: 2 }),
  ])
  expect(new Set([secret, ...otherSecrets]).size).toBe(3)
  expect(Buffer.from(secret.replace('whsec_', ''), 'base64')).toHaveLength(32)
  const nowSeconds = Math.floor(Date.now() / 1000)
  const verify = (headers: Record<string, string>, body = '{"a":1}', key = secret) =>
    new Verifier(key).verify(body, headers)
  const headers = await signedHeaders(webhook, 'evt_1', nowSeconds, '{"a":1}')
  expect(verify(headers)).toEqual({ a: 1 })
  for (const other of otherSecrets) expect(() => verify(headers, '{"a":1}', other)).toThrow()
  expect(() => verify(headers, '{"a":1} ')).toThrow()
  expect(() => verify({ ...headers, 'webhook-id': 'evt_2' })).toThrow()
  expect(() => verify({ ...headers, 'webhook-timestamp': String(nowSeconds + 1) })).toThrow()
})

test('the secret is shown once at creation and never stored', async () => {
  const caller = await newCaller()
  const { secret, ...view } = await Webhook.create(caller, settings)
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(view).toEqual({ id: view.id, ...settings, enabled: true, failureCount: 0, createdAt: view.createdAt })
  expect(await Webhook.list(caller)).toEqual({ items: [view] })
  expect(await Webhook.change(caller, view.id, { enabled: true })).toEqual(view)

  const { Items = [] } = await new DynamoDBClient().send(new ScanCommand({ TableName: config.PLAT_TABLE }))
  const table = JSON.stringify(Items)
  expect(table).toContain(view.id)
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const encodings = [secret, ...(['base64', 'base64url', 'hex'] as const).map((encoding) => key.toString(encoding))]
  for (const text of [...encodings, await webhookRootKey()]) expect(table).not.toContain(text.replace(/=+$/, ''))
})

test('changes only the given fields, and lists the newest webhook first', async () => {
  const caller = await newCaller()
  const { secret: _, ...first } = await Webhook.create(caller, { ...settings, enabled: false })
  const second = await Webhook.create(caller, { ...settings, events: ['*', '*', 'platform.job.failed'] })
  expect(second.events).toEqual(['*', 'platform.job.failed'])
  expect(await Webhook.change(caller, first.id, {})).toEqual(first)
  const url = 'https://other.example.com/'
  expect(await Webhook.change(caller, first.id, { url })).toEqual({ ...first, url })
  expect(await Webhook.change(caller, first.id, { events: ['*'] })).toEqual({ ...first, url, events: ['*'] })
  expect(await Webhook.change(caller, first.id, { enabled: true })).toMatchObject({ enabled: true, url })
  expect((await Webhook.list(caller)).items.map(({ id }) => id)).toEqual([second.id, first.id])
})

test('concurrent changes of different fields both take effect', async () => {
  const caller = await newCaller()
  const { id } = await Webhook.create(caller, settings)
  runBefore(/^TransactWrite/, () => Webhook.change(caller, id, { enabled: false }))
  await Webhook.change(caller, id, { events: ['*'] })
  expect((await Webhook.list(caller)).items).toMatchObject([{ events: ['*'], enabled: false, url: settings.url }])
})

test('limits an organisation to fifty webhooks, also under concurrent creation', async () => {
  const [caller, otherTenant] = [await newCaller(), await newCaller()]
  for (let count = 0; count < webhookLimit - 2; count++) await Webhook.create(caller, settings)
  const results = await Promise.allSettled(Array.from({ length: 6 }, () => Webhook.create(caller, settings)))
  const createdWebhooks = results.filter(({ status }) => status === 'fulfilled')
  const { items } = await Webhook.list(caller)
  expect([createdWebhooks.length, items.length]).toEqual([2, webhookLimit])
  await expectError(Webhook.create(caller, settings), 'limit_reached')
  await Webhook.create(otherTenant, settings)
  await Webhook.remove(caller, items[0]?.id ?? '')
  await expectError(Webhook.remove(caller, items[0]?.id ?? ''), 'webhook_not_found')
  await Webhook.create(caller, settings)
  const request = requestErrorCode('webhooks', 'POST /api/v1/webhooks', [caller, 'OrgAdmin'], settings)
  expect(await request).toBe('limit_reached')
})

test.each([
  [['*'], [true, true]],
  [['platform.job.*'], [false, true]],
  [['platform.cluster.deleted'], [true, false]],
  [
    ['platform.cluster.*', 'platform.job.completed'],
    [true, true],
  ],
  [
    ['platform.cluster.delete', 'platform.jo*'],
    [false, false],
  ],
])('a subscription to %j matches exact types and areas', (events, expected) => {
  const types = ['platform.cluster.deleted', 'platform.job.completed']
  expect(types.map((type) => isSubscribed({ events }, type))).toEqual(expected)
})

test('a webhook with a selector gets only events about matching clusters, also about their removal', async () => {
  const caller = await newCaller()
  const { id } = await Webhook.create(caller, { url: settings.url, events: ['*'], selector: 'env=prod' })
  const deliveries = async () => {
    await runProjections(caller.organisationId, [webhookProjection])
    const { items } = await Delivery.list(caller, id, { page: 1, pageSize: 100 })
    return items.map(({ eventType }) => eventType.replace('platform.', '')).toReversed()
  }
  const register = (name: string, env: string) =>
    Cluster.register(caller, { name, type: 'Hypervisor', labels: { env } })
  const [prod, test] = [await register('prod', 'prod'), await register('test', 'test')]
  await Batch.submit(caller, { jobs: [scriptJob(test.id)] })
  expect(await deliveries()).toEqual(['cluster.registered'])
  await Cluster.update(caller, prod.id, { labels: { env: 'test' } })
  await Cluster.update(caller, prod.id, { labels: { env: 'prod' } })
  await Cluster.remove(caller, prod.id)
  expect((await deliveries()).slice(-3)).toEqual(['cluster.updated', 'cluster.updated', 'cluster.deleted'])
  expect(await Webhook.change(caller, id, { selector: null })).not.toHaveProperty('selector')
  await Cluster.update(caller, test.id, { labels: { tier: 'web' } })
  expect((await deliveries()).at(-1)).toBe('cluster.updated')
})
