import { expect, test, vi } from 'vitest'
import { messageOf } from '@platform/contract/errors'
import * as ApiToken from '@platform/core/accounts/api-token'
import { platformError } from '@platform/core/error'
import { authenticate, authenticateIfPermitted, identityOf } from '@platform/http/authorize'
import { publicPortalHeaders } from '../support/browser-session.ts'
import { advanceClock } from '../support/clock.ts'
import { bearer, bootstrapPlatform, errorCodeOf, newCaller } from '../support/fixtures.ts'
import { send } from '../support/request.ts'
import { onStoreCall } from '../support/store-calls.ts'
import { handlerOf, isProtected, type Operation, operations, requestTo } from './operations.ts'
import { writes } from './writes.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))
await bootstrapPlatform()

const isRelayOperation = ({ endpoint }: Operation): boolean => endpoint.access === 'relay'
const protectedOperations = operations.filter(isProtected)
// The logout comes last, because it ends the session of the tests.
const userOperations = protectedOperations
  .filter((operation) => !isRelayOperation(operation))
  .toSorted((a, b) => Number(a.name.endsWith('/auth/logout')) - Number(b.name.endsWith('/auth/logout')))

const administrator = await bearer(['PlatformAdmin'])
const token = administrator.authorization.slice('Bearer '.length)
const cookie = { cookie: `__Host-plat_access=${token}` }

test.each(protectedOperations)('$name requires its kind of token', async (operation) => {
  const { status, headers, json } = await send(operation.handler, requestTo(operation))
  expect([status, headers['www-authenticate']]).toEqual([401, isRelayOperation(operation) ? 'Relay' : 'Bearer'])
  const error = 'unauthenticated'
  expect(json).toEqual({ error, message: messageOf(error), traceId: headers['x-trace-id'] })
  const otherHeaders = isRelayOperation(operation) ? administrator : { authorization: `Relay ${token}` }
  expect((await send(operation.handler, requestTo(operation, otherHeaders))).status).toBe(401)
})

test('reports an expired token, whether or not the process has cached it', async () => {
  const listSites = (headers: Record<string, string>) => send(handlerOf('sites'), { target: '/api/v1/sites', headers })
  const [cachedHeaders, unusedHeaders] = await Promise.all([bearer(['Viewer']), bearer(['Viewer'])])
  expect((await listSites(cachedHeaders)).status).toBe(200)
  advanceClock(16 * 60_000)
  for (const headers of [cachedHeaders, unusedHeaders]) {
    const { status, json } = await listSites(headers)
    expect([status, json.error]).toEqual([401, 'token_expired'])
  }
})

test.each(userOperations)('$name accepts the cookie of a browser from the same origin only', async (operation) => {
  const writesBefore = writes()
  const foreignHeaders = { ...publicPortalHeaders, origin: 'https://other.example.com', 'sec-fetch-site': 'same-site' }
  const rejectedResponse = await send(operation.handler, requestTo(operation, { ...foreignHeaders, ...cookie }))
  expect([rejectedResponse.status, rejectedResponse.json.error, writes()]).toEqual([
    403,
    'cross_origin_request',
    writesBefore,
  ])
  const acceptedResponse = await send(operation.handler, requestTo(operation, { ...publicPortalHeaders, ...cookie }))
  expect([401, 403], acceptedResponse.text).not.toContain(acceptedResponse.status)
})

test.each(operations.filter(isRelayOperation))('$name accepts no cookie', async (operation) => {
  const { status } = await send(operation.handler, requestTo(operation, { ...publicPortalHeaders, ...cookie }))
  expect(status).toBe(401)
})

test('identifies callers in log lines by their ids only', () => {
  const permissions = new Set(['jobs:read'] as const)
  const ids = { organisationId: 'org_a', userId: 'user_a' }
  const user = { ...ids, kind: 'user', sessionId: 'sess_a', permissions } as const
  expect(identityOf(undefined)).toEqual({})
  expect(identityOf(user)).toEqual(ids)
  expect(identityOf({ ...user, tokenId: 'tok_a' })).toEqual({ ...ids, tokenId: 'tok_a' })
  const relay = { kind: 'relay', relayId: 'relay_a', organisationId: 'org_a', clusterId: 'clus_a' } as const
  const relayIds = { organisationId: 'org_a', relayId: 'relay_a' }
  expect(identityOf({ ...relay, tokenId: 'token', issuedAtMs: 0 })).toEqual(relayIds)
})

const address = '192.0.2.7'
const event = (headers: Record<string, string>) => ({
  rawPath: '/api/v1/sites',
  rawQueryString: '',
  headers,
  isBase64Encoded: false,
  requestContext: { http: { method: 'GET', sourceIp: address } },
})

test('does not authenticate callers of public endpoints', async () => {
  for (const headers of [{}, { authorization: 'Bearer nonsense' }, { authorization: 'Relay nonsense' }]) {
    expect(await authenticate('public', event(headers))).toBeUndefined()
  }
})

test('authenticates a user by an access token or an API token, with the address of the request', async () => {
  const { kind, userId, organisationId, ...caller } = await newCaller()
  const { id: tokenId, token: apiToken } = await ApiToken.create(
    { ...caller, kind, userId, organisationId },
    { name: 'nightly' },
  )
  const tokenCaller = await authenticate('user', event({ authorization: `bearer   ${apiToken}` }))
  expect(tokenCaller).toMatchObject({ userId, organisationId, tokenId, address })
  const sessionCaller = await authenticate('user', event(await bearer(['Viewer'], organisationId)))
  expect(sessionCaller).toMatchObject({ kind: 'user', organisationId, address })
  expect(sessionCaller).not.toHaveProperty('tokenId')
})

test.each(['', 'Bearer', 'Bearer  ', 'Bearer plat_', 'plat_x', 'Basic dTpw', 'x Bearer y', 'Bearer y z'])(
  'rejects the Authorization header %j',
  async (authorization) => {
    expect(await errorCodeOf(authenticate('user', event({ authorization })))).toBe('unauthenticated')
    expect(await authenticateIfPermitted('jobs:read', { authorization }, { address })).toBeUndefined()
  },
)

test('recognises callers with a permission at a public endpoint', async () => {
  const headers = await bearer(['Operator'])
  expect(await authenticateIfPermitted('jobs:write', headers, { address })).toMatchObject({ kind: 'user', address })
  expect(await authenticateIfPermitted('users:admin', headers, { address })).toBeUndefined()
  expect(await authenticateIfPermitted('jobs:write', {}, { address })).toBeUndefined()
})

test('reports a store error at a public endpoint instead of treating the caller as anonymous', async () => {
  const { token: apiToken } = await ApiToken.create(await newCaller(), { name: 'nightly' })
  for (const failure of [platformError('database_unavailable'), new RangeError('out of order')]) {
    using _ = onStoreCall({ before: () => Promise.reject(failure) })
    const caller = authenticateIfPermitted('jobs:read', { authorization: `Bearer ${apiToken}` }, { address })
    await expect(caller).rejects.toMatchObject({ message: failure.message })
  }
})
