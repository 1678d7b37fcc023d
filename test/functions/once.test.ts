import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { createSite } from '@platform/contract/site'
import { shiftClock } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { client, query } from '@platform/core/db/table'
import { outbox } from '@platform/core/db/keys'
import { parseRecord } from '@platform/core/outbox/record'
import * as Site from '@platform/core/clusters/site'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'
import { ScanCommand } from '@aws-sdk/lib-dynamodb'
import { jsonRequest, type TestResponse, send } from '../support/request.ts'
import { captureLog } from '../support/log.ts'
import { type Ask, askOf, call, sentOf } from './fixtures.ts'
import { moduleWorld } from './module-world.ts'
import { type Headers, password, type Person, personOf, renewed } from './person.ts'
import { type Row, rowNamed, rows } from './table.ts'
import { dyingAfterWrite } from './writes.ts'
import { sampled } from '../support/long.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))
await vi.hoisted(() => import('./module-world.ts'))
afterAll(() => moduleWorld[Symbol.asyncDispose]())

let shiftedMs = 0
const pass = (ms: number): void => {
  shiftedMs += ms
  shiftClock(ms)
}
afterEach(() => pass(-shiftedMs))

const replayed = 'idempotency-replayed'
const keyed = ({ headers }: { headers: Headers }, key: string): Headers => ({ ...headers, 'Idempotency-Key': key })
const repeatable = rows.filter(
  ({ method, endpoint: { access } }) => method === 'POST' && access !== 'public' && access !== 'relay',
)

/** The changes of somebody that are on record. */
async function changes({ organisationId, userId }: Person): Promise<number> {
  const { items } = await query({ pk: outbox(organisationId, '').pk, newestFirst: true, limit: 1000 })
  return items.map(parseRecord).filter(({ actor }) => actor.id === userId).length
}

const succeeds = ({ status }: TestResponse): boolean => status >= 200 && status < 300
const isReplayed = ({ headers }: TestResponse): boolean => headers[replayed] === 'true'
const shown = ({ status, text }: TestResponse) => ({ status, text })

/** Somebody, a request, and a way to send it with one key. */
async function repeating(row: Row, key = 'first') {
  const who = await personOf('PlatformAdmin')
  const ask = await askOf(row, who)
  const before = await changes(who)
  return {
    repeat: () => call(row, ask, keyed(who, key)),
    changed: async () => (await changes(who)) - before,
  }
}

test('every POST of somebody signed in has exactly one success', () => {
  expect(repeatable.length).toBeGreaterThan(5)
  expect(repeatable.filter(({ endpoint }) => Object.keys(endpoint.responses).length !== 1)).toEqual([])
})

test.each(repeatable)('$name is done once and answered the same again', async (row) => {
  const { repeat, changed } = await repeating(row)
  const first = await repeat()
  expect(succeeds(first), first.text).toBe(true)
  expect(isReplayed(first)).toBe(false)
  for (const again of [await repeat(), await repeat()]) {
    expect(shown(again)).toEqual(shown(first))
    expect(isReplayed(again)).toBe(true)
  }
  expect(await changed()).toBe(1)
})

/** Ten at once. Whoever is told to wait, because passwords are hashed four at a time, asks once more afterwards. */
async function tenAtOnce(repeat: () => Promise<TestResponse>): Promise<TestResponse[]> {
  const answers = await Promise.all(Array.from({ length: 10 }, repeat))
  return Promise.all(answers.map(async (answer) => (answer.status === 429 ? repeat() : answer)))
}

test.each(sampled(repeatable))('$name, ten times at once, is done once and answered alike', async (row) => {
  const { repeat, changed } = await repeating(row)
  const answers = await tenAtOnce(repeat)
  const first = answers.find((answer) => !isReplayed(answer))
  expect(first && succeeds(first), first?.text).toBe(true)
  for (const answer of answers) expect(shown(answer)).toEqual(first && shown(first))
  expect(answers.filter(isReplayed)).toHaveLength(9)
  expect(await changed()).toBe(1)
})

test.each(sampled(repeatable, 2))(
  '$name, cut short after its write, is answered as if it had not been',
  async (row) => {
    const { repeat, changed } = await repeating(row)
    expect(await dyingAfterWrite(() => captureLog(repeat))).toBe(true)
    const [first, again] = [await repeat(), await repeat()]
    expect(succeeds(first), first.text).toBe(true)
    expect(shown(again)).toEqual(shown(first))
    expect(await changed()).toBe(1)
  },
)

const siteRow = rowNamed('POST /api/v1/sites')
const site = (name: string): Ask => ({ body: { name } })
const createSiteAs = (who: { headers: Headers }, name: string, key: string) =>
  call(siteRow, site(name), keyed(who, key))

test('a kill between the change and its answer loses nothing: the retry hears the first answer', async () => {
  const who = await personOf('OrgAdmin')
  const made = Promise.withResolvers<unknown>()
  const dying = serve(
    route(createSite, async ({ caller, body }) => {
      made.resolve(await Site.create(caller, body))
      return new Promise<never>(() => undefined)
    }),
  )
  void send(dying, sentOf(siteRow, site('Berlin'), keyed(who, 'k')))
  const first = await made.promise
  const retry = await createSiteAs(who, 'Berlin', 'k')
  expect([retry.status, retry.json, isReplayed(retry)]).toEqual([201, first, true])
})

test('a handler that fails after the change answers what was kept', async () => {
  const who = await personOf('OrgAdmin')
  const failing = serve(
    route(createSite, async ({ caller, body }) => {
      await Site.create(caller, body)
      throw new Error('lost')
    }),
  )
  const first = await send(failing, sentOf(siteRow, site('Berlin'), keyed(who, 'k')))
  expect([first.status, isReplayed(first)]).toEqual([201, true])
  expect(shown(await createSiteAs(who, 'Berlin', 'k'))).toEqual(shown(first))
})

test('the key of one request is refused for another: another body, another path, another query', async () => {
  const who = await personOf('OrgAdmin')
  await createSiteAs(who, 'Berlin', 'k')
  const others = [
    await createSiteAs(who, 'Hamburg', 'k'),
    await call(siteRow, { ...site('Berlin'), query: { x: '1' } }, keyed(who, 'k')),
    await call(rowNamed('POST /api/v1/clusters'), { body: { name: 'Berlin', type: 'Hypervisor' } }, keyed(who, 'k')),
  ]
  for (const { status, json } of others) expect([status, json.error]).toEqual([422, 'idempotency_key_reused'])
  expect(await changes(who)).toBe(1)
})

test('of two different requests with one key at once one is done', async () => {
  const who = await personOf('OrgAdmin')
  const answers = await Promise.all(['Berlin', 'Hamburg'].map((name) => createSiteAs(who, name, 'k')))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201, 422]))
  expect(await changes(who)).toBe(1)
})

test('an answer is kept for 24 hours; then the key is free, though the store has not forgotten it', async () => {
  const who = await personOf('OrgAdmin')
  const row = rowNamed('POST /api/v1/users/me/saved-filters')
  const ask = { body: { name: 'mine', context: 'clusters', filter: {} } }
  const save = async () => call(row, ask, keyed({ headers: await renewed(who) }, 'k'))
  const first = await save()
  pass(24 * 3_600_000 - 1000)
  expect(shown(await save())).toEqual(shown(first))
  pass(1000)
  const answers = [await save(), await save()]
  expect(answers.map(isReplayed)).toEqual([false, true])
  expect(answers[0]?.json.id).not.toBe(first.json.id)
  expect(shown(answers[1] as TestResponse)).toEqual(shown(answers[0] as TestResponse))
  expect(await changes(who)).toBe(2)
})

test('a secret that an answer holds is not in the table', async () => {
  const who = await personOf('OrgAdmin')
  const cluster = { body: { name: 'berlin-1', type: 'Hypervisor' } }
  const secrets = [
    (await call(rowNamed('POST /api/v1/clusters'), cluster, keyed(who, 'a'))).json.enrollmentToken,
    (await call(rowNamed('POST /api/v1/users/me/tokens'), { body: { name: 'a' } }, keyed(who, 'b'))).json.token,
  ]
  const { Items = [] } = await client.send(new ScanCommand({ TableName: config.PLAT_TABLE, ConsistentRead: true }))
  const kept = Items.filter(({ pk }) => String(pk).startsWith(`ORG#${who.organisationId}#IDEMPOTENCY#`))
  expect(kept.map((item) => Object.keys(item).toSorted())).toEqual(
    kept.map(() => ['expiresAtMs', 'pk', 'sealed', 'sk', 'ttl']),
  )
  expect(kept).toHaveLength(2)
  const table = Items.map(textOf).join('\n')
  expect(table).toContain(who.userId)
  for (const secret of [password, ...secrets]) expect(table).not.toContain(secret.slice(-20))
})

/** An item with its bytes read as text, too. */
const textOf = (item: Record<string, unknown>): string =>
  JSON.stringify(item, (_, value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString() : value))

test.each(['', ' ', 'a b', 'ü', 'a\tb', 'a'.repeat(201)])('the key %j is refused', async (key) => {
  const { status, json } = await createSiteAs(await personOf('OrgAdmin'), 'Berlin', key)
  expect([status, json.details]).toMatchObject([400, [{ in: 'header', path: '/idempotency-key' }]])
})

test.each(['!', '~', '"3f0f9c5e"', 'a'.repeat(200)])('the key %j is taken', async (key) => {
  const who = await personOf('OrgAdmin')
  expect((await createSiteAs(who, 'Berlin', key)).status).toBe(201)
  expect(isReplayed(await createSiteAs(who, 'Berlin', key))).toBe(true)
})

test('other methods and public operations pay no heed to the header', async () => {
  const who = await personOf('OrgAdmin')
  expect((await call(rowNamed('GET /api/v1/sites'), {}, keyed(who, ''))).status).toBe(200)
  const signIn = jsonRequest('/api/v1/auth/login', { username: who.username, password }, { 'Idempotency-Key': 'k' })
  const { handler } = rowNamed('POST /api/v1/auth/login')
  const [one, other] = [await send(handler, signIn), await send(handler, signIn)]
  expect([one.status, other.status]).toEqual([200, 200])
  expect(one.json.refreshToken).not.toBe(other.json.refreshToken)
})
