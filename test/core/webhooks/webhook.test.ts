import { DynamoDBClient, ScanCommand } from '@aws-sdk/client-dynamodb'
import { webhookLimit } from '@platform/contract/webhook'
import { config } from '@platform/core/config'
import { readSecret, writeSecret } from '@platform/core/aws/secrets'
import { ensureKeys, statementKeys, webhookRootKey } from '@platform/core/signing/keys'
import * as Webhook from '@platform/core/webhooks/webhook'
import { secretOf, signedHeaders } from '@platform/core/webhooks/secret'
import { Webhook as Verifier } from 'standardwebhooks'
import { beforeAll, expect, test } from 'vitest'
import { newCaller, requestErrorCode, errorCodeOf } from '../../support/fixtures.ts'
import { onStoreCall } from '../../support/store-calls.ts'

const wanted = { url: 'https://hooks.example.com/platform', events: ['platform.job.*'] }

async function start(): Promise<string> {
  await ensureKeys()
  return JSON.stringify([await webhookRootKey(), await statementKeys()])
}

/** What each of several first starts reads afterwards; the first of them was held up while the others ran. */
let firstStarts: string[] = []
beforeAll(async () => {
  const [held, others] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let isHeld = false
  using _ = onStoreCall({
    before: async ({ command }) => {
      if (isHeld || !command.startsWith('TransactWrite')) return
      isHeld = true
      held.resolve()
      await others.promise
    },
  })
  const late = start()
  await held.promise
  firstStarts = await Promise.all([start(), start()])
  others.resolve()
  firstStarts.push(await late)
})

test('first starts at the same moment agree on the keys that relays and receivers hold on to', async () => {
  expect(new Set(firstStarts).size).toBe(1)
  await Promise.all([ensureKeys({ rotate: true }), ensureKeys({ rotate: true }), ensureKeys()])
  expect(JSON.stringify([await webhookRootKey(), await statementKeys()])).toBe(firstStarts[0])
})

test('a platform that was set up before there were webhooks has one master, before and after its keys rotate', async () => {
  const stored = (await readSecret(config.PLAT_SECRET_SIGNING_KEYS)) ?? ''
  const { webhook: _, ...older } = JSON.parse(stored)
  try {
    await writeSecret(config.PLAT_SECRET_SIGNING_KEYS, JSON.stringify(older))
    await ensureKeys()
    const master = await webhookRootKey()
    expect(Buffer.from(master, 'base64url')).toHaveLength(32)
    await ensureKeys({ rotate: true })
    expect(await webhookRootKey()).toBe(master)
    expect(JSON.parse((await readSecret(config.PLAT_SECRET_SIGNING_KEYS)) ?? '').webhook).toBe(master)
  } finally {
    await writeSecret(config.PLAT_SECRET_SIGNING_KEYS, stored)
    await ensureKeys()
  }
})

test('a secret verifies what is signed with it, and differs by webhook and version', async () => {
  const webhook = { id: 'hook_1', secretVersion: 1 }
  const [secret, other, next] = await Promise.all([
    secretOf(webhook),
    secretOf({ ...webhook, id: 'hook_2' }),
    secretOf({ ...webhook, secretVersion: 2 }),
  ])
  expect(new Set([secret, other, next]).size).toBe(3)
  expect(Buffer.from(secret.replace('whsec_', ''), 'base64')).toHaveLength(32)
  const headers = await signedHeaders(webhook, 'evt_1', Math.floor(Date.now() / 1000), '{"a":1}')
  expect(new Verifier(secret).verify('{"a":1}', headers)).toEqual({ a: 1 })
  for (const wrong of [other, next]) expect(() => new Verifier(wrong).verify('{"a":1}', headers)).toThrow()
})

test('a webhook is told its secret when it is made, and then nobody is', async () => {
  const caller = await newCaller()
  const { secret, ...shown } = await Webhook.create(caller, wanted)
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(shown).toEqual({ id: shown.id, ...wanted, enabled: true, failureCount: 0, createdAt: shown.createdAt })
  expect(await Webhook.list(caller)).toEqual({ items: [shown] })
  expect(await Webhook.change(caller, shown.id, { enabled: true })).toEqual(shown)

  const { Items = [] } = await new DynamoDBClient().send(new ScanCommand({ TableName: config.PLAT_TABLE }))
  const table = JSON.stringify(Items)
  expect(table).toContain(shown.id)
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const spellings = [secret, ...(['base64', 'base64url', 'hex'] as const).map((encoding) => key.toString(encoding))]
  for (const text of [...spellings, await webhookRootKey()]) expect(table).not.toContain(text.replace(/=+$/, ''))
})

test('a webhook is changed in part; the newest stands first', async () => {
  const caller = await newCaller()
  const first = await Webhook.create(caller, { ...wanted, enabled: false })
  const second = await Webhook.create(caller, { ...wanted, events: ['*', '*', 'platform.job.failed'] })
  expect(second.events).toEqual(['*', 'platform.job.failed'])
  const { secret: _, ...shown } = first
  expect(await Webhook.change(caller, first.id, {})).toEqual(shown)
  const url = 'https://other.example.com/'
  expect(await Webhook.change(caller, first.id, { url })).toEqual({ ...shown, url })
  expect(await Webhook.change(caller, first.id, { events: ['*'] })).toEqual({ ...shown, url, events: ['*'] })
  expect(await Webhook.change(caller, first.id, { enabled: true })).toMatchObject({ enabled: true, url })
  expect((await Webhook.list(caller)).items.map(({ id }) => id)).toEqual([second.id, first.id])
})

test('changes of different fields at the same moment both count', async () => {
  const caller = await newCaller()
  const { id } = await Webhook.create(caller, wanted)
  let isFirst = true
  // The second change is made when the first has read the webhook and not yet written it.
  using _ = onStoreCall({
    before: async ({ command }) => {
      if (!isFirst || !command.startsWith('TransactWrite')) return
      isFirst = false
      await Webhook.change(caller, id, { enabled: false })
    },
  })
  await Webhook.change(caller, id, { events: ['*'] })
  expect((await Webhook.list(caller)).items).toMatchObject([{ events: ['*'], enabled: false, url: wanted.url }])
})

test('a foreign or unknown webhook is not found, and stays as it is', async () => {
  const [caller, other] = [await newCaller(), await newCaller()]
  const { id } = await Webhook.create(caller, wanted)
  for (const [who, which] of [
    [other, id],
    [caller, 'hook_01jd8w5k3zr9x2m4c7t6v0b1qa'],
    [caller, '*'],
  ] as const) {
    expect(await errorCodeOf(Webhook.change(who, which, { enabled: false }))).toBe('webhook_not_found')
    expect(await errorCodeOf(Webhook.remove(who, which))).toBe('webhook_not_found')
  }
  expect((await Webhook.list(other)).items).toEqual([])
  expect((await Webhook.list(caller)).items).toMatchObject([{ id, enabled: true }])
})

test('an organisation has at most fifty webhooks, however many are made at once', async () => {
  const [caller, neighbour] = [await newCaller(), await newCaller()]
  for (let count = 0; count < webhookLimit - 2; count++) await Webhook.create(caller, wanted)
  const outcomes = await Promise.allSettled(Array.from({ length: 6 }, () => Webhook.create(caller, wanted)))
  const made = outcomes.filter(({ status }) => status === 'fulfilled')
  const { items } = await Webhook.list(caller)
  expect([made.length, items.length]).toEqual([2, webhookLimit])
  expect(await errorCodeOf(Webhook.create(caller, wanted))).toBe('limit_reached')
  await Webhook.create(neighbour, wanted)
  await Webhook.remove(caller, items[0]?.id ?? '')
  expect(await errorCodeOf(Webhook.remove(caller, items[0]?.id ?? ''))).toBe('webhook_not_found')
  await Webhook.create(caller, wanted)
  expect(await errorCodeOf(Webhook.create(caller, wanted))).toBe('limit_reached')
  expect(await requestErrorCode('webhooks', 'POST /api/v1/webhooks', [caller, 'OrgAdmin'], wanted)).toBe(
    'limit_reached',
  )
})

test.each([
  'http://127.0.0.1/',
  'http://[::1]/',
  'http://2130706433/',
  'https://10.0.0.1:8443/x',
  'http://169.254.169.254/',
  'http://user@hooks.example.com/',
])('the address %s is refused, when a webhook is made and when it is changed', async (url) => {
  const caller = await newCaller()
  const { id } = await Webhook.create(caller, wanted)
  expect(await errorCodeOf(Webhook.create(caller, { ...wanted, url }))).toBe('url_not_allowed')
  expect(await errorCodeOf(Webhook.change(caller, id, { url }))).toBe('url_not_allowed')
  expect((await Webhook.list(caller)).items).toMatchObject([{ url: wanted.url }])
})
