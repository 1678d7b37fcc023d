import { createSite } from '@platform/contract/site'
import * as Site from '@platform/core/clusters/site'
import { outboxPartitions } from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import { parseRecord } from '@platform/core/outbox/record'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'
import { afterAll, expect, test, vi } from 'vitest'
import { advanceClock } from '../support/clock.ts'
import { captureLog } from '../support/log.ts'
import { sampled } from '../support/long.ts'
import { jsonRequest, type TestResponse, send } from '../support/request.ts'
import { call, type RequestParts, toRequest, validRequest } from './fixtures.ts'
import { moduleWorld } from './module-world.ts'
import { type Operation, operationNamed, operations } from './operations.ts'
import { accessTokenOf, type Headers, newUser, password, type SignedInUser } from './users.ts'
import { failAfterWrite } from './writes.ts'
import { readTable } from '../support/read-table.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))
await vi.hoisted(() => import('./module-world.ts'))
afterAll(() => moduleWorld[Symbol.asyncDispose]())

const withKey = ({ headers }: { headers: Headers }, key: string): Headers => ({ ...headers, 'Idempotency-Key': key })
const idempotent = operations.filter(
  ({ method, endpoint: { access, readsOnly } }) =>
    method === 'POST' && !readsOnly && access !== 'public' && access !== 'relay',
)

async function countChanges({ organisationId, userId }: SignedInUser): Promise<number> {
  const pages = await Promise.all(
    outboxPartitions(organisationId).map((pk) => query({ pk, isNewestFirst: true, limit: 1000 })),
  )
  const items = pages.flatMap((page) => page.items)
  return items.map(parseRecord).filter(({ actor }) => actor.id === userId).length
}

const isSuccess = ({ status }: TestResponse): boolean => status >= 200 && status < 300
const isReplayed = ({ headers }: TestResponse): boolean => headers['idempotency-replayed'] === 'true'
const contentOf = ({ status, text }: TestResponse) => ({ status, text })

async function repeatableRequest(operation: Operation) {
  const user = await newUser('PlatformAdmin')
  const parts = await validRequest(operation, user)
  const countBefore = await countChanges(user)
  return {
    repeat: () => call(operation, parts, withKey(user, 'first')),
    changes: async () => (await countChanges(user)) - countBefore,
  }
}

test('every authenticated POST defines exactly one success status', () => {
  expect(idempotent.length).toBeGreaterThan(5)
  expect(idempotent.filter(({ endpoint }) => Object.keys(endpoint.responses).length !== 1)).toEqual([])
})

test('replays the creation of a user in another organisation', async () => {
  const user = await newUser('PlatformAdmin')
  const name = `o-${crypto.randomUUID()}`
  const organisation = await call(
    operationNamed('POST /api/v1/platform/organisations'),
    { body: { name } },
    user.headers,
  )
  const body = {
    username: name,
    email: 'ada@example.com',
    password,
    roles: ['OrgAdmin'],
    organisationId: organisation.json.id,
  }
  const create = () => call(operationNamed('POST /api/v1/users'), { body }, withKey(user, 'first-user'))
  const firstResponse = await create()
  expect(firstResponse.status).toBe(201)
  const repeatedResponse = await create()
  expect([contentOf(repeatedResponse), isReplayed(repeatedResponse)]).toEqual([contentOf(firstResponse), true])
})

test.each(idempotent)('$name is performed once and replayed', async (operation) => {
  const { repeat, changes } = await repeatableRequest(operation)
  const firstResponse = await repeat()
  expect([isSuccess(firstResponse), isReplayed(firstResponse)], firstResponse.text).toEqual([true, false])
  for (const repeated of [await repeat(), await repeat()]) {
    expect(contentOf(repeated)).toEqual(contentOf(firstResponse))
    expect(isReplayed(repeated)).toBe(true)
  }
  expect(await changes()).toBe(1)
})

/** Sends ten requests, and repeats those that are rejected by the limit of concurrent password hashes. */
async function sendConcurrently(repeat: () => Promise<TestResponse>): Promise<TestResponse[]> {
  const responses = await Promise.all(Array.from({ length: 10 }, repeat))
  return Promise.all(responses.map(async (response) => (response.status === 429 ? repeat() : response)))
}

test.each(sampled(idempotent))('$name is performed once by ten concurrent requests', async (operation) => {
  const { repeat, changes } = await repeatableRequest(operation)
  const responses = await sendConcurrently(repeat)
  const firstResponse = responses.find((response) => !isReplayed(response))
  expect(firstResponse && isSuccess(firstResponse), firstResponse?.text).toBe(true)
  for (const response of responses) expect(contentOf(response)).toEqual(firstResponse && contentOf(firstResponse))
  expect(responses.filter(isReplayed)).toHaveLength(9)
  expect(await changes()).toBe(1)
})

test.each(sampled(idempotent, 2))('$name is performed once if the process dies after its write', async (operation) => {
  const { repeat, changes } = await repeatableRequest(operation)
  expect(await failAfterWrite(() => captureLog(repeat))).toBe(true)
  const [firstResponse, repeatedResponse] = [await repeat(), await repeat()]
  expect(isSuccess(firstResponse), firstResponse.text).toBe(true)
  expect(contentOf(repeatedResponse)).toEqual(contentOf(firstResponse))
  expect(await changes()).toBe(1)
})

const siteOperation = operationNamed('POST /api/v1/sites')
const site = (name: string): RequestParts => ({ body: { name } })
const createSiteAs = (user: { headers: Headers }, name: string, key: string) =>
  call(siteOperation, site(name), withKey(user, key))

test('replays the result of a change whose handler was killed or failed', async () => {
  for (const end of [() => new Promise<never>(() => undefined), () => Promise.reject(new Error('lost'))]) {
    const user = await newUser('OrgAdmin')
    const created = Promise.withResolvers<unknown>()
    const handler = serve(
      route(createSite, async ({ caller, body }) => {
        created.resolve(await Site.create(caller, body))
        return end()
      }),
    )
    void send(handler, toRequest(siteOperation, site('Berlin'), withKey(user, 'k')))
    const result = await created.promise
    const repeatedResponse = await createSiteAs(user, 'Berlin', 'k')
    expect([repeatedResponse.status, repeatedResponse.json, isReplayed(repeatedResponse)]).toEqual([201, result, true])
  }
})

test('keeps a response for 24 hours', async () => {
  const user = await newUser('OrgAdmin')
  const operation = operationNamed('POST /api/v1/users/me/saved-filters')
  const parts = { body: { name: 'mine', context: 'clusters', filter: {} } }
  const save = async () => call(operation, parts, withKey({ headers: await accessTokenOf(user, 'OrgAdmin') }, 'k'))
  const firstResponse = await save()
  advanceClock(24 * 3_600_000 - 1000)
  expect(contentOf(await save())).toEqual(contentOf(firstResponse))
  advanceClock(1000)
  const [secondResponse, repeatedResponse] = [await save(), await save()]
  expect([isReplayed(secondResponse), isReplayed(repeatedResponse)]).toEqual([false, true])
  expect(secondResponse.json.id).not.toBe(firstResponse.json.id)
  expect(contentOf(repeatedResponse)).toEqual(contentOf(secondResponse))
})

test('encrypts stored responses', async () => {
  const user = await newUser('OrgAdmin')
  const cluster = { body: { name: 'berlin-1', type: 'Hypervisor' } }
  const token = { body: { name: 'a' } }
  const secrets = [
    (await call(operationNamed('POST /api/v1/clusters'), cluster, withKey(user, 'a'))).json.enrollmentToken,
    (await call(operationNamed('POST /api/v1/users/me/tokens'), token, withKey(user, 'b'))).json.token,
  ]
  const items = await readTable()
  const storedItems = items.filter(({ pk }) => String(pk).startsWith(`ORG#${user.organisationId}#IDEMPOTENCY#`))
  const attributes = ['expiresAtMs', 'pk', 'sealed', 'sk', 'ttl']
  expect(storedItems.map((item) => Object.keys(item).toSorted())).toEqual([attributes, attributes])
  const table = items.map(toText).join('\n')
  expect(table).toContain(user.userId)
  for (const secret of [password, ...secrets]) expect(table).not.toContain(secret.slice(-20))
})

const toText = (item: Record<string, unknown>): string =>
  JSON.stringify(item, (_, value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString() : value))

test('ignores the key of other methods and public operations', async () => {
  const user = await newUser('OrgAdmin')
  expect((await call(operationNamed('GET /api/v1/sites'), {}, withKey(user, ''))).status).toBe(200)
  const signIn = jsonRequest('/api/v1/auth/login', { username: user.username, password }, { 'Idempotency-Key': 'k' })
  const { handler } = operationNamed('POST /api/v1/auth/login')
  const [first, second] = [await send(handler, signIn), await send(handler, signIn)]
  expect([first.status, second.status]).toEqual([200, 200])
  expect(first.json.refreshToken).not.toBe(second.json.refreshToken)
})
