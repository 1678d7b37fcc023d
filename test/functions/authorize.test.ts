import { expect, test } from 'vitest'
import * as ApiToken from '@platform/core/accounts/api-token'
import * as Cluster from '@platform/core/clusters/cluster'
import { platformError } from '@platform/core/error'
import { enroll } from '@platform/core/relays/enrollment'
import { authenticate, authenticateIfPermitted, identityOf } from '@platform/http/authorize'
import { onStoreCall } from '../support/store-calls.ts'
import {
  bearer,
  newCaller,
  enrollRequest,
  errorCodeOf,
  newRelayKey,
  relayToken,
  bootstrapPlatform,
} from '../support/fixtures.ts'

await bootstrapPlatform()

const user = { kind: 'user', userId: 'user_a', organisationId: 'org_a', sessionId: 'sess_a' } as const
const relayCaller = { kind: 'relay', relayId: 'relay_a', organisationId: 'org_a', clusterId: 'clus_a' } as const

test('identifies callers in log lines by their ids only', () => {
  const permissions = new Set(['jobs:read'] as const)
  const ids = { organisationId: 'org_a', userId: 'user_a' }
  expect(identityOf(undefined)).toEqual({})
  expect(identityOf({ ...user, permissions })).toEqual(ids)
  expect(identityOf({ ...user, permissions, tokenId: 'tok_a' })).toEqual({ ...ids, tokenId: 'tok_a' })
  expect(identityOf({ ...relayCaller, tokenId: 'token', issuedAtMs: 0 })).toEqual({
    organisationId: 'org_a',
    relayId: 'relay_a',
  })
})

const address = '192.0.2.7'
const request = (headers: Record<string, string>) => ({
  rawPath: '/api/v1/sites',
  rawQueryString: '',
  headers,
  isBase64Encoded: false,
  requestContext: { http: { method: 'GET', sourceIp: address } },
})

test('does not authenticate callers of public endpoints', async () => {
  for (const headers of [{}, { authorization: 'Bearer nonsense' }, { authorization: 'Relay nonsense' }]) {
    expect(await authenticate('public', request(headers))).toBeUndefined()
  }
})

test('authenticates a user by an access token and by an API token, with the address of the request', async () => {
  const caller = await newCaller()
  const { id: tokenId, token } = await ApiToken.create(caller, { name: 'nightly' })
  const { userId, organisationId } = caller
  expect(await authenticate('user', request({ authorization: `bearer   ${token}` }))).toMatchObject({
    userId,
    organisationId,
    tokenId,
    address,
  })
  const signedIn = await authenticate('user', request(await bearer(['Viewer'], organisationId)))
  expect(signedIn).toMatchObject({ kind: 'user', organisationId, address })
  expect(signedIn).not.toHaveProperty('tokenId')
})

test('authenticates a relay by its own kind of token only', async () => {
  const { id: clusterId, enrollmentToken } = await Cluster.register(await newCaller(), {
    name: 'ours',
    type: 'Hypervisor',
  })
  const { privateKey, wire } = newRelayKey()
  const { relayId } = await enroll({ ...enrollRequest(enrollmentToken), publicKey: wire })
  const { authorization } = await relayToken(relayId, privateKey, '/api/v1/sites')
  expect(await authenticate('relay', request({ authorization }))).toMatchObject({ kind: 'relay', relayId, clusterId })
  const asUser = authorization.replace('Relay', 'Bearer')
  expect(await errorCodeOf(authenticate('relay', request({ authorization: asUser })))).toBe('unauthenticated')
  expect(await errorCodeOf(authenticate('user', request({ authorization: asUser })))).toBe('unauthenticated')
})

test.each(['', 'Bearer', 'Bearer  ', 'Bearer plat_', 'plat_x', 'Basic dTpw', 'x Bearer y', 'Bearer y z'])(
  'rejects the Authorization header %j',
  async (authorization) => {
    expect(await errorCodeOf(authenticate('user', request({ authorization })))).toBe('unauthenticated')
    expect(await authenticateIfPermitted('jobs:read', { authorization }, { address })).toBeUndefined()
  },
)

test('recognises callers with a permission at a public endpoint', async () => {
  const headers = await bearer(['Operator'])
  expect(await authenticateIfPermitted('jobs:write', headers, { address })).toMatchObject({ kind: 'user', address })
  expect(await authenticateIfPermitted('users:admin', headers, { address })).toBeUndefined()
  expect(await authenticateIfPermitted('jobs:write', {}, { address })).toBeUndefined()
})

test('passes on store errors at a public endpoint instead of treating the caller as anonymous', async () => {
  const { token } = await ApiToken.create(await newCaller(), { name: 'nightly' })
  for (const failure of [platformError('database_unavailable'), new RangeError('out of order')]) {
    using _ = onStoreCall({
      before: async () => {
        throw failure
      },
    })
    const asked = authenticateIfPermitted('jobs:read', { authorization: `Bearer ${token}` }, { address })
    await expect(asked).rejects.toMatchObject({ message: failure.message })
  }
})
