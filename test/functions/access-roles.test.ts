import { afterAll, expect, test, vi } from 'vitest'
import { messageOf } from '@platform/contract/errors'
import * as Cluster from '@platform/core/clusters/cluster'
import { outbox } from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import { enroll } from '@platform/core/relays/enrollment'
import { parseRecord } from '@platform/core/outbox/record'
import { isLong, sampled } from '../support/long.ts'
import { newCaller, enrollRequest, newRelayKey, relayToken } from '../support/fixtures.ts'
import { type Ask, askOf, call, sentOf, staleFixtures } from './fixtures.ts'
import { moduleWorld } from './module-world.ts'
import { needs } from './needs.ts'
import { type Headers, type Person, personOf } from './person.ts'
import { type Row, rowNamed, rows } from './table.ts'
import { writes } from './writes.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))
await vi.hoisted(() => import('./module-world.ts'))
afterAll(() => moduleWorld[Symbol.asyncDispose]())

/**
 * Role × operation. Who may do what stands here once more, by hand: the table of D14 below, and in `needs.ts` the permission
 * of every operation, from the specification and the decisions. Neither is read from the code under test.
 */

const everyone = ['PlatformAdmin', 'OrgAdmin', 'ClusterAdmin', 'Operator', 'Viewer', 'Auditor'] as const
type Role = (typeof everyone)[number]

const holders: Record<string, readonly Role[]> = {
  user: everyone,
  session: everyone,
  'clusters:read': everyone,
  'clusters:write': ['PlatformAdmin', 'OrgAdmin', 'ClusterAdmin'],
  'clusters:admin': ['PlatformAdmin', 'OrgAdmin', 'ClusterAdmin'],
  'jobs:read': everyone,
  'jobs:write': ['PlatformAdmin', 'OrgAdmin', 'ClusterAdmin', 'Operator'],
  'modules:read': everyone,
  'modules:install': ['PlatformAdmin'],
  'users:admin': ['PlatformAdmin', 'OrgAdmin'],
  'audit:read': ['PlatformAdmin', 'OrgAdmin', 'Auditor'],
  'platform:admin': ['PlatformAdmin'],
}

const needOf = (row: Row): string => {
  const need = needs[row.name]
  if (need === undefined) throw new Error(`${row.name} has no line in this matrix.`)
  return need
}

const withCaller = rows.filter(({ name }) => holders[needs[name] ?? ''] !== undefined)

test('the matrix and the fixtures hold every operation and no other', () => {
  const names = rows.map(({ name }) => name)
  expect(names.filter((name) => needs[name] === undefined)).toEqual([])
  expect(Object.keys(needs).filter((name) => !names.includes(name))).toEqual([])
  expect(staleFixtures).toEqual([])
})

const cells = withCaller.flatMap((row) => everyone.map((role) => [row.name, role, row] as const))
const isAllowed = ([, role, row]: (typeof cells)[number]): boolean => holders[needOf(row)]?.includes(role) ?? false
const [allowed, denied] = [cells.filter(isAllowed), cells.filter((cell) => !isAllowed(cell))]

/** All of them; by default those at the border alone: the last role that may do an operation, and the first that may not. */
const done = allowed.filter(([name], index) => isLong || allowed[index + 1]?.[0] !== name)
const refused = denied.filter(([name], index) => isLong || denied[index - 1]?.[0] !== name)

/** How often the audit trail will tell that somebody did something. */
async function audited({ organisationId, userId }: Person): Promise<number> {
  const { items } = await query({ pk: outbox(organisationId, '').pk, newestFirst: true, limit: 1000 })
  return items.map(parseRecord).filter(({ actor, audit }) => actor.id === userId && audit).length
}

test.each(done)('%s is done for %s, and what changes something is on record', async (_, role, row) => {
  const who = await personOf(role)
  const ask = await askOf(row, who)
  const before = await audited(who)
  const { status, text } = await call(row, ask, who.headers)
  expect(Object.keys(row.endpoint.responses), text).toContain(String(status))
  expect((await audited(who)) - before).toBe(row.method === 'GET' ? 0 : 1)
})

/** Refused as somebody who may not do it, with nothing written. */
async function expectForbidden(row: Row, ask: Ask, headers: Headers): Promise<void> {
  const before = writes()
  const { status, json } = await call(row, ask, headers)
  const need = needOf(row)
  const refusal = { error: 'forbidden', message: messageOf('forbidden'), traceId: expect.any(String) }
  expect([status, json]).toEqual([403, need === 'session' ? refusal : { ...refusal, requiredPermission: need }])
  expect(writes()).toBe(before)
}

test.each(refused)('%s is refused to %s, and changes nothing', async (_, role, row) => {
  const who = await personOf(role)
  await expectForbidden(row, await askOf(row, who), who.headers)
})

/** The header of an API token that was used before: its first use in an hour is written down. */
async function apiToken(who: Person, permissions: string[]): Promise<Headers> {
  const { json } = await call(
    rowNamed('POST /api/v1/users/me/tokens'),
    { body: { name: 'x', permissions } },
    who.headers,
  )
  const headers = { authorization: `Bearer ${json.token}` }
  expect((await call(rowNamed('GET /api/v1/auth/me'), {}, headers)).json.permissions).toEqual(permissions)
  return headers
}

test.each(sampled(withCaller))(
  '$name by an API token without permissions is done only where none is needed',
  async (row) => {
    const who = await personOf('PlatformAdmin')
    const ask = await askOf(row, who)
    const headers = await apiToken(who, [])
    if (needOf(row) !== 'user') return expectForbidden(row, ask, headers)
    expect((await call(row, ask, headers)).status).toBeLessThan(300)
  },
)

const everything = Object.keys(holders).filter((need) => need.includes(':'))

test.each(sampled(withCaller))(
  '$name by an API token with all permissions is done, but where tokens are made',
  async (row) => {
    const who = await personOf('PlatformAdmin')
    const ask = await askOf(row, who)
    const headers = await apiToken(who, everything)
    if (needOf(row) === 'session') return expectForbidden(row, ask, headers)
    expect((await call(row, ask, headers)).status).toBeLessThan(300)
  },
)

/** Where users are administered, or made by a provider, nobody reaches further than the own rights, whatever the permission is. */
const reachesOthers = (row: Row): boolean =>
  (needOf(row) === 'users:admin' && row.name.includes('/users') && row.method !== 'GET') ||
  row.name === 'POST /api/v1/platform/identity/providers'

const withNeed = withCaller.filter((row) => needOf(row).includes(':'))

test.each(withNeed)('$name by an API token with exactly the permission it needs is done', async (row) => {
  const who = await personOf('PlatformAdmin')
  const ask = await askOf(row, who)
  const headers = await apiToken(who, [needOf(row)])
  const { status, json, text } = await call(row, ask, headers)
  if (!reachesOthers(row)) return expect(status, text).toBeLessThan(300)
  expect([403, 422]).toContain(status)
  expect(['forbidden', 'role_not_grantable']).toContain(json.error)
})

test.each(withNeed.filter(reachesOthers))(
  '$name by an API token wants the rights of the other user, too',
  async (row) => {
    const who = await personOf('PlatformAdmin')
    const ask = await askOf(row, who)
    const ofViewers = everything.filter((permission) => holders[permission]?.includes('Viewer'))
    const rights = everything.filter((permission) => permission === needOf(row) || ofViewers.includes(permission))
    expect((await call(row, ask, await apiToken(who, rights))).status).toBeLessThan(300)
  },
)

const key = newRelayKey()
const { enrollmentToken } = await Cluster.register(await newCaller(), { name: 'guarded', type: 'Hypervisor' })
const relay = await enroll({ ...enrollRequest(enrollmentToken), publicKey: key.wire })

test.each(withCaller)('$name by a relay is refused, under either scheme', async (row) => {
  const ask = await askOf(row, await personOf('OrgAdmin'))
  const { target, body = '' } = sentOf(row, ask, {})
  const { authorization } = await relayToken(relay.relayId, key.privateKey, target.split('?')[0] ?? '', String(body))
  const before = writes()
  for (const scheme of ['Relay', 'Bearer']) {
    const headers = { authorization: authorization.replace('Relay', scheme) }
    const { status, json } = await call(row, ask, headers)
    expect([status, json.error]).toEqual([401, 'unauthenticated'])
  }
  expect(writes()).toBe(before)
})

test.each(rows.filter(({ name }) => needs[name] === 'public'))('$name asks nobody who they are', async (row) => {
  const { json } = await call(row, {}, {})
  expect(['unauthenticated', 'token_expired', 'forbidden']).not.toContain(json?.error)
})
