import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { messageOf } from '@platform/contract/errors'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import { outboxPartitions } from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { readRoutes, reserveRoutesWrite, type RouteReservation } from '@platform/core/modules/routes'
import { enroll } from '@platform/core/relays/enrollment'
import { parseRecord } from '@platform/core/outbox/record'
import { isLong, sampled } from '../support/long.ts'
import { newCaller, enrollRequest, newRelayKey, relayToken } from '../support/fixtures.ts'
import { newModuleId } from '../core/support/modules.ts'
import { call, rejections, type RequestParts, staleFixtures, toRequest, validRequest } from './fixtures.ts'
import { moduleWorld } from './module-world.ts'
import { type Operation, operationNamed, operations } from './operations.ts'
import { requirements } from './requirements.ts'
import { type Headers, newUser, type SignedInUser } from './users.ts'
import { writes } from './writes.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))
await vi.hoisted(() => import('./module-world.ts'))
afterAll(() => moduleWorld[Symbol.asyncDispose]())

/** Role × operation, from tables that are written by hand: the roles below, the permissions in `requirements.ts`. */

const roles = ['PlatformAdmin', 'OrgAdmin', 'ClusterAdmin', 'Operator', 'Viewer', 'Auditor'] as const
type Role = (typeof roles)[number]

const rolesByRequirement: Record<string, readonly Role[]> = {
  user: roles,
  session: roles,
  'clusters:read': roles,
  'clusters:write': ['PlatformAdmin', 'OrgAdmin', 'ClusterAdmin'],
  'clusters:admin': ['PlatformAdmin', 'OrgAdmin', 'ClusterAdmin'],
  'jobs:read': roles,
  'jobs:write': ['PlatformAdmin', 'OrgAdmin', 'ClusterAdmin', 'Operator'],
  'modules:read': roles,
  'modules:install': ['PlatformAdmin'],
  'users:admin': ['PlatformAdmin', 'OrgAdmin'],
  'audit:read': ['PlatformAdmin', 'OrgAdmin', 'Auditor'],
  'platform:admin': ['PlatformAdmin'],
}

const requirementOf = (operation: Operation): string => requirements[operation.name] ?? ''
const authenticatedOperations = operations.filter((operation) => requirementOf(operation) in rolesByRequirement)

test('the tables contain exactly the operations of the contract', () => {
  expect(Object.keys(requirements).toSorted()).toEqual(operations.map(({ name }) => name).toSorted())
  expect(staleFixtures).toEqual([])
})

const cells = authenticatedOperations.flatMap((operation) =>
  roles.map((role) => [operation.name, role, operation] as const),
)
const isPermitted = ([, role, operation]: (typeof cells)[number]): boolean =>
  rolesByRequirement[requirementOf(operation)]?.includes(role) ?? false
const [permittedCells, deniedCells] = [cells.filter(isPermitted), cells.filter((cell) => !isPermitted(cell))]

/** By default, the last permitted and the first denied role of each operation. */
const lastPermitted = permittedCells.filter(([name], index) => isLong || permittedCells[index + 1]?.[0] !== name)
const firstDenied = deniedCells.filter(([name], index) => isLong || deniedCells[index - 1]?.[0] !== name)

async function countAuditEntries({ organisationId, userId }: SignedInUser): Promise<number> {
  const pages = await Promise.all(
    outboxPartitions(organisationId).map((pk) => query({ pk, isNewestFirst: true, limit: 1000 })),
  )
  const items = pages.flatMap((page) => page.items)
  return items.map(parseRecord).filter(({ actor, audit }) => actor.id === userId && audit).length
}

const isRecorded = ({ method, name, endpoint }: Operation) =>
  (method !== 'GET' && !endpoint.readsOnly) || name.endsWith('/audit/export')

test.each(lastPermitted)(
  '%s is permitted to %s, and recorded if it changes or exports something',
  async (_, role, operation) => {
    const user = await newUser(role)
    const parts = await validRequest(operation, user)
    const countBefore = await countAuditEntries(user)
    const { status, text } = await call(operation, parts, user.headers)
    expect(Object.keys(operation.endpoint.responses), text).toContain(String(status))
    expect((await countAuditEntries(user)) - countBefore).toBe(isRecorded(operation) ? 1 : 0)
  },
)

test.each(Object.entries(rejections))('%s is returned', async (name, requestOf) => {
  const [, operationName = '', error] = /^(.*) (\w+)$/.exec(name) ?? []
  const user = await newUser(/modules|platform|has_users/.test(name) ? 'PlatformAdmin' : 'OrgAdmin')
  const { text, json } = await call(operationNamed(operationName), await requestOf(user), user.headers)
  expect(json?.error, text).toBe(error)
})

describe.each(['POST /api/v1/modules/{id}/install', 'POST /api/modules/install'])('%s', (name) => {
  const installError = async () => {
    const user = await newUser('PlatformAdmin')
    const operation = operationNamed(name)
    return (await call(operation, await validRequest(operation, user), user.headers)).json?.error
  }

  test('returns module_isolation_unavailable if only seeded modules may run as processes', async () => {
    const { PLAT_MODULE_PROCESSES } = config
    onTestFinished(() => void Object.assign(config, { PLAT_MODULE_PROCESSES }))
    Object.assign(config, { PLAT_MODULE_PROCESSES: 'seeded' })
    expect(await installError()).toBe('module_isolation_unavailable')
  })

  test('returns limit_reached if the paths and events of modules take all space', async () => {
    const id = newModuleId()
    const reserve = async (reservation?: RouteReservation) =>
      transact([reserveRoutesWrite(await readRoutes(), id, reservation)])
    onTestFinished(async () => void (await reserve()))
    await reserve({ apiBasePath: `/api/${id}`, subscriptions: ['x'.repeat(330_000)] })
    expect(await installError()).toBe('limit_reached')
  })
})

async function expectForbidden(operation: Operation, parts: RequestParts, headers: Headers): Promise<void> {
  const writesBefore = writes()
  const { status, json } = await call(operation, parts, headers)
  const requirement = requirementOf(operation)
  const body = { error: 'forbidden', message: messageOf('forbidden'), traceId: expect.any(String) }
  expect([status, json]).toEqual([403, requirement === 'session' ? body : { ...body, requiredPermission: requirement }])
  expect(writes()).toBe(writesBefore)
}

test.each(firstDenied)('%s is denied to %s without a write', async (_, role, operation) => {
  const user = await newUser(role)
  await expectForbidden(operation, await validRequest(operation, user), user.headers)
})

async function apiToken(user: SignedInUser, permissions: string[]): Promise<Headers> {
  const create = operationNamed('POST /api/v1/users/me/tokens')
  const { json } = await call(create, { body: { name: 'x', permissions } }, user.headers)
  const headers = { authorization: `Bearer ${json.token}` }
  expect((await call(operationNamed('GET /api/v1/auth/me'), {}, headers)).json.permissions).toEqual(permissions)
  return headers
}

const foreignJobs = async () => validRequest(operationNamed('POST /api/v1/jobs/batch'), await newUser('Operator'))

test.each([
  ['POST /api/v1/sites', 'Viewer', async () => ({ body: { name: 'x' } }), 'requires clusters:write; 1 call'],
  ['POST /api/v1/jobs/batch', 'Operator', foreignJobs, 'cluster_forbidden; 1 call'],
  ['GET /api/v1/users/me/tokens', 'token', async () => ({}), 'requires a session; 1 call'],
] as const)('the audit trail records the denied call %s of a user (%s)', async (name, role, partsOf, detail) => {
  const user = await newUser(role === 'token' ? 'PlatformAdmin' : role)
  const headers = role === 'token' ? await apiToken(user, []) : user.headers
  expect((await call(operationNamed(name), await partsOf(), headers)).status).toBe(403)
  const pages = await Promise.all(
    outboxPartitions(user.organisationId).map((pk) => query({ pk, isNewestFirst: true, limit: 1000 })),
  )
  const items = pages.flatMap((page) => page.items)
  const audits = items.map(parseRecord).flatMap(({ actor, audit }) => (actor.id === user.userId && audit) || [])
  expect(audits).toContainEqual({ action: 'access.denied', resource: name, detail })
})

const allPermissions = Object.keys(rolesByRequirement).filter((requirement) => requirement.includes(':'))

test.each(sampled(authenticatedOperations))('$name with an API token depends on its permissions', async (operation) => {
  for (const [permissions, isForbidden] of [
    [[], requirementOf(operation) !== 'user'],
    [allPermissions, requirementOf(operation) === 'session'],
  ] as const) {
    const user = await newUser('PlatformAdmin')
    const parts = await validRequest(operation, user)
    const headers = await apiToken(user, [...permissions])
    if (isForbidden) await expectForbidden(operation, parts, headers)
    else expect((await call(operation, parts, headers)).status).toBeLessThan(300)
  }
})

/**
 * Whether an operation manages users or maps roles. Its caller must also hold the permissions of these users or roles.
 */
const grantsPermissions = (operation: Operation): boolean =>
  (requirementOf(operation) === 'users:admin' && operation.name.includes('/users') && operation.method !== 'GET') ||
  operation.name === 'POST /api/v1/platform/identity/providers'

const withPermission = authenticatedOperations.filter((operation) => requirementOf(operation).includes(':'))

const requiredWith = (permission: string) => (permission === 'modules:install' ? ['platform:admin'] : [])

const [granting, others] = [
  withPermission.filter(grantsPermissions),
  withPermission.filter((each) => !grantsPermissions(each)),
]

test.each(sampled(others))('$name is permitted to an API token with only its permission', async (operation) => {
  const user = await newUser('PlatformAdmin')
  const parts = await validRequest(operation, user)
  const permission = requirementOf(operation)
  const headers = await apiToken(user, [permission, ...requiredWith(permission)])
  const { status, text } = await call(operation, parts, headers)
  expect(status, text).toBeLessThan(300)
})

test.each(granting)(
  '$name is permitted to an API token only with the permissions of the other user',
  async (operation) => {
    const user = await newUser('PlatformAdmin')
    const parts = await validRequest(operation, user)
    const { json } = await call(operation, parts, await apiToken(user, [requirementOf(operation)]))
    expect(json.error).toBeOneOf(['forbidden', 'role_not_grantable'])
    const isViewers = (permission: string) => rolesByRequirement[permission]?.includes('Viewer')
    const permissions = allPermissions.filter((each) => each === requirementOf(operation) || isViewers(each))
    expect((await call(operation, parts, await apiToken(user, permissions))).status).toBeLessThan(300)
  },
)

const key = newRelayKey()
const { enrollmentToken } = await Cluster.register(await newCaller(), { name: 'berlin-1', type: 'Hypervisor' })
const relay = await enroll({ ...enrollRequest(enrollmentToken), publicKey: key.wire })

test.each(sampled(authenticatedOperations))('$name rejects a relay token under either scheme', async (operation) => {
  const parts = await validRequest(operation, await newUser('OrgAdmin'))
  const { target, body = '' } = toRequest(operation, parts, {})
  const { authorization } = await relayToken(relay.relayId, key.privateKey, target.split('?')[0] ?? '', String(body))
  const writesBefore = writes()
  for (const scheme of ['Relay', 'Bearer']) {
    const { status, json } = await call(operation, parts, { authorization: authorization.replace('Relay', scheme) })
    expect([status, json.error]).toEqual([401, 'unauthenticated'])
  }
  expect(writes()).toBe(writesBefore)
})

test.each(operations.filter((operation) => requirementOf(operation) === 'public'))(
  '$name requires no authentication',
  async (operation) => {
    const { json } = await call(operation, {}, {})
    expect(['unauthenticated', 'token_expired', 'forbidden']).not.toContain(json?.error)
  },
)
