import { expect, test } from 'vitest'
import type { Access } from '@platform/contract/endpoint'
import type { Permission } from '@platform/contract/permission'
import * as ApiToken from '@platform/core/accounts/api-token'
import type { Caller, RelayCaller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import { platformError } from '@platform/core/error'
import { enroll } from '@platform/core/relays/enrollment'
import { authenticate, authenticateIfPermitted, identityOf, requirePermission } from '@platform/http/authorize'
import { atStoreCalls } from '../core/support/store-hook.ts'
import { bearer, relayToken } from '../support/tokens.ts'
import { callerOf, enrollRequest, refusalOf, relayKey, started } from '../support/world.ts'

await started()

/** Who may come to an endpoint: each kind of access by each kind of caller. */

const user = (...permissions: Permission[]): Caller => ({
  kind: 'user',
  userId: 'user_a',
  organisationId: 'org_a',
  sessionId: 'sess_a',
  permissions: new Set(permissions),
})
const callers = {
  nobody: undefined,
  'a user': user('jobs:read'),
  'a program with a token': { ...user('jobs:read', 'jobs:write'), sessionId: '', tokenId: 'tok_a' },
  'a relay': {
    kind: 'relay',
    relayId: 'relay_a',
    organisationId: 'org_a',
    clusterId: 'clus_a',
    tokenId: 'token',
    issuedAtMs: 0,
  },
} satisfies Record<string, Caller | RelayCaller | undefined>

const mayCome: Partial<Record<Access, readonly (keyof typeof callers)[]>> = {
  public: ['nobody', 'a user', 'a program with a token', 'a relay'],
  user: ['nobody', 'a user', 'a program with a token', 'a relay'],
  relay: ['nobody', 'a user', 'a program with a token', 'a relay'],
  session: ['a user'],
  'jobs:read': ['a user', 'a program with a token'],
  'jobs:write': ['a program with a token'],
  'users:admin': [],
}

const cells = (Object.keys(mayCome) as Access[]).flatMap((access) =>
  (Object.keys(callers) as (keyof typeof callers)[]).map((who) => [access, who] as const),
)

test.each(cells)('an endpoint for %s lets %s come, or says what is missing', (access, who) => {
  const come = () => requirePermission(access, callers[who])
  if (mayCome[access]?.includes(who)) expect(come()).toBeUndefined()
  else if (access === 'session') expect(come).toThrow(expect.objectContaining({ code: 'forbidden', extra: {} }))
  else expect(come).toThrow(expect.objectContaining({ code: 'forbidden', extra: { requiredPermission: access } }))
})

test('log lines name whoever calls by ids, and by nothing else', () => {
  expect(identityOf(undefined)).toEqual({})
  expect(identityOf(callers['a user'])).toEqual({ organisationId: 'org_a', userId: 'user_a' })
  expect(identityOf(callers['a program with a token'])).toEqual({
    organisationId: 'org_a',
    userId: 'user_a',
    tokenId: 'tok_a',
  })
  expect(identityOf(callers['a relay'])).toEqual({ organisationId: 'org_a', relayId: 'relay_a' })
})

const address = '192.0.2.7'
const request = (headers: Record<string, string>) => ({
  rawPath: '/api/v1/sites',
  rawQueryString: '',
  headers,
  isBase64Encoded: false,
  requestContext: { http: { method: 'GET', sourceIp: address } },
})

test('whoever may be anybody is not looked at, whatever comes along', async () => {
  for (const headers of [{}, { authorization: 'Bearer nonsense' }, { authorization: 'Relay nonsense' }]) {
    expect(await authenticate('public', request(headers))).toBeUndefined()
  }
})

test('a user is known by a token of access and by an API token, with where the request came from', async () => {
  const caller = await callerOf()
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

test('a relay is known by its own kind of token, and by no other', async () => {
  const { id: clusterId, enrollmentToken } = await Cluster.register(await callerOf(), {
    name: 'ours',
    type: 'Hypervisor',
  })
  const { privateKey, wire } = relayKey()
  const { relayId } = await enroll({ ...enrollRequest(enrollmentToken), publicKey: wire })
  const { authorization } = await relayToken(relayId, privateKey, '/api/v1/sites')
  expect(await authenticate('relay', request({ authorization }))).toMatchObject({ kind: 'relay', relayId, clusterId })
  const asUser = authorization.replace('Relay', 'Bearer')
  expect(await refusalOf(authenticate('relay', request({ authorization: asUser })))).toBe('unauthenticated')
  expect(await refusalOf(authenticate('user', request({ authorization: asUser })))).toBe('unauthenticated')
})

test.each(['', 'Bearer', 'Bearer  ', 'Bearer plat_', 'plat_x', 'Basic dTpw', 'x Bearer y', 'Bearer y z'])(
  'the header %j makes nobody a user',
  async (authorization) => {
    expect(await refusalOf(authenticate('user', request({ authorization })))).toBe('unauthenticated')
    expect(await authenticateIfPermitted('jobs:read', { authorization }, { address })).toBeUndefined()
  },
)

test('at a public endpoint whoever has a permission is told apart from everybody else', async () => {
  const headers = await bearer(['Operator'])
  expect(await authenticateIfPermitted('jobs:write', headers, { address })).toMatchObject({ kind: 'user', address })
  expect(await authenticateIfPermitted('users:admin', headers, { address })).toBeUndefined()
  expect(await authenticateIfPermitted('jobs:write', {}, { address })).toBeUndefined()
})

test('a store that fails makes nobody a stranger at a public endpoint', async () => {
  const { token } = await ApiToken.create(await callerOf(), { name: 'nightly' })
  for (const failure of [platformError('database_unavailable'), new RangeError('out of order')]) {
    using _ = atStoreCalls({
      before: async () => {
        throw failure
      },
    })
    const asked = authenticateIfPermitted('jobs:read', { authorization: `Bearer ${token}` }, { address })
    await expect(asked).rejects.toMatchObject({ message: failure.message })
  }
})
