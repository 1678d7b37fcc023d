import { ScanCommand } from '@aws-sdk/lib-dynamodb'
import { expect, test, vi } from 'vitest'
import { permissionsOf } from '@platform/contract/permission'
import type { FunctionName } from '@platform/contract/index'
import { config } from '@platform/core/config'
import { client } from '@platform/core/db/client'
import { newId, newSecret } from '@platform/core/id'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { posting, type Received, send } from '../support/event.ts'
import { colleague, newUser, password, type Person, platformAdministrator, signedIn } from '../support/people.ts'
import { handlerOf, isProtected, requestTo, rows } from './table.ts'

vi.hoisted(() => {
  for (const limit of ['API_PER_MINUTE', 'API_BURST']) process.env[`PLAT_LIMIT_${limit}`] = '1000000'
  process.env['PLAT_CHECK_RESPONSES'] = '1'
})

type Headers = Record<string, string>
const platform = await platformAdministrator()
const withBearer = (token: string): Headers => ({ authorization: `Bearer ${token}` })
const my = withBearer(platform.accessToken)

const ask = (name: FunctionName, method: string, target: string, headers: Headers = my): Promise<Received> =>
  send(handlerOf(name), { method, target, headers })
const tell = (name: FunctionName, method: string, target: string, body: object, headers: Headers = my) =>
  send(handlerOf(name), { ...posting(target, body, headers), method })

const tokensPath = '/api/v1/users/me/tokens'
const newToken = async (headers: Headers = my, body: object = { name: 'nightly' }) =>
  (await tell('users', 'POST', tokensPath, body, headers)).json
const me = (headers: Headers) => ask('auth', 'GET', '/api/v1/auth/me', headers)

test('an organisation is created, seeded, and left to its own users', async () => {
  const created = await tell('platform', 'POST', '/api/v1/platform/organisations', { name: '  Acme  ' })
  expect(created).toMatchObject({ status: 201, json: { name: 'Acme', isPlatform: false } })
  const { items, totalCount } = (await ask('platform', 'GET', '/api/v1/platform/organisations?pageSize=1')).json
  expect([items, totalCount]).toEqual([[created.json], 2])
  const organisationId = created.json.id
  const seeded = await tell('users', 'POST', '/api/v1/users', { ...newUser(['OrgAdmin'], 'olga'), organisationId })
  expect(seeded).toMatchObject({ status: 201, json: { username: 'olga', organisationId, roles: ['OrgAdmin'] } })
  const again = await tell('users', 'POST', '/api/v1/users', { ...newUser(['OrgAdmin']), organisationId })
  expect([again.status, again.json.error]).toEqual([409, 'organisation_has_users'])

  const olga = withBearer((await signedIn('olga')).accessToken)
  const other = await tell('users', 'POST', '/api/v1/users', newUser(['Viewer'], 'otto'), olga)
  expect(other).toMatchObject({ status: 201, json: { organisationId } })
  const target = `/api/v1/users/${other.json.id}`
  expect((await ask('users', 'GET', target)).json.error).toBe('user_not_found')
  expect((await tell('users', 'PATCH', target, { roles: ['Operator'] }, olga)).json.roles).toEqual(['Operator'])
  const listed = await ask('users', 'GET', '/api/v1/users?page=1&pageSize=10', olga)
  expect(listed.json).toMatchObject({ totalCount: 2, items: [{ username: 'otto' }, { username: 'olga' }] })
  expect((await ask('users', 'DELETE', `${target}/sessions`, olga)).status).toBe(204)
  expect(await ask('users', 'DELETE', target, olga)).toMatchObject({ status: 204, text: '' })
  const forbidden = await ask('platform', 'GET', '/api/v1/platform/organisations', olga)
  expect(forbidden).toMatchObject({ status: 403, json: { requiredPermission: 'platform:admin' } })
})

test.each([
  ['no roles', { roles: [] }, '/roles'],
  ['an unknown role', { roles: ['Root'] }, '/roles/0'],
  ['a short password', { password: 'short' }, '/password'],
  ['a name with a space', { username: 'a b' }, '/username'],
  ['no address', { email: 'nowhere' }, '/email'],
])('a user with %s is refused', async (_, wrong, path) => {
  const { status, json } = await tell('users', 'POST', '/api/v1/users', { ...newUser(), ...wrong })
  expect([status, json.error]).toEqual([400, 'validation_failed'])
  expect(json.details).toMatchObject([{ in: 'body', path }])
  expect(JSON.stringify(json)).not.toContain('short"')
})

test('what a request may not set is ignored: id, organisation, name, provider, rights', async () => {
  const more = {
    id: newId('user'),
    createdAt: '2020-01-01T00:00:00.000Z',
    authProvider: 'ldap',
    permissions: ['platform:admin'],
    version: 7,
    epoch: 7,
    tokenIds: ['x'],
  }
  const { json } = await tell('users', 'POST', '/api/v1/users', { ...newUser(['Viewer']), ...more })
  expect(json).toMatchObject({ authProvider: 'local', permissions: permissionsOf(['Viewer']) })
  expect(json.id).not.toBe(more.id)
  const change = { ...more, username: 'other', organisationId: newId('org') }
  const changed = await tell('users', 'PATCH', `/api/v1/users/${json.id}`, change)
  expect(changed.json).toEqual(json)
})

test('the last administrator hears why it cannot go', async () => {
  const { status, json } = await ask('users', 'DELETE', `/api/v1/users/${platform.id}`)
  expect([status, json.error]).toEqual([409, 'last_administrator'])
})

const refresh = ({ refreshToken }: Person) => send(handlerOf('auth'), posting('/api/v1/auth/refresh', { refreshToken }))

test('a user changes the password, sees the sessions and ends one', async () => {
  const own = await colleague(platform.caller, 'Viewer')
  const other = await signedIn(own.username)
  const headers = withBearer(own.accessToken)
  const listed = await ask('users', 'GET', '/api/v1/users/me/sessions', headers)
  expect(listed.json.items).toMatchObject([
    { id: other.caller.sessionId, isCurrent: false },
    { id: own.caller.sessionId, isCurrent: true },
  ])
  const target = `/api/v1/users/me/sessions/${other.caller.sessionId}`
  expect((await ask('users', 'DELETE', target)).json.error).toBe('session_not_found')
  expect((await ask('users', 'DELETE', target, headers)).status).toBe(204)
  const change = { currentPassword: 'wrong password', newPassword: 'another long sentence' }
  const refused = await tell('users', 'PUT', '/api/v1/users/me/password', change, headers)
  expect([refused.status, refused.json.error]).toEqual([401, 'invalid_credentials'])
  const right = { ...change, currentPassword: password }
  expect(await tell('users', 'PUT', '/api/v1/users/me/password', right, headers)).toMatchObject({ status: 204 })
  expect((await refresh(other)).json.error).toBe('invalid_refresh_token')
  expect((await refresh(own)).status).toBe(200)
})

const bearers = rows.filter((row) => isProtected(row) && row.endpoint.access !== 'relay')

test.each(bearers)('$name refuses what only looks like an API token', async (row) => {
  const forged = `plat_${newId('tok').slice(4)}_${newSecret()}`
  for (const text of ['plat_', 'plat_x_y', forged]) {
    const { status, headers, json } = await send(row.handler, requestTo(row, withBearer(text)))
    expect([status, json.error, headers['www-authenticate']]).toEqual([401, 'unauthenticated', 'Bearer'])
  }
})

const full = withBearer((await newToken()).token)

test.each(bearers)('$name takes an API token, unless it is about API tokens', async (row) => {
  const { status, json } = await send(row.handler, requestTo(row, full))
  if (row.endpoint.access !== 'session') return expect([401, 403]).not.toContain(status)
  expect([status, json.error, json.requiredPermission]).toEqual([403, 'forbidden', undefined])
})

test('exactly the endpoints about API tokens want a session', () => {
  const wanting = bearers.filter(({ endpoint }) => endpoint.access === 'session')
  expect(wanting.map(({ endpoint: { path } }) => path)).toEqual([tokensPath, tokensPath, `${tokensPath}/{id}`])
})

test('an API token is refused for lack of a permission, and sees in its profile what it may do', async () => {
  const limited = withBearer((await newToken(my, { name: 'limited', permissions: ['jobs:read'] })).token)
  expect((await me(limited)).json).toMatchObject({ username: 'admin', permissions: ['jobs:read'] })
  const refused = await ask('clusters', 'GET', '/api/v1/clusters', limited)
  expect(refused).toMatchObject({ status: 403, json: { requiredPermission: 'clusters:read' } })
})

test('signing out with an API token ends nothing', async () => {
  const { token } = await newToken()
  expect((await ask('auth', 'POST', '/api/v1/auth/logout', withBearer(token))).status).toBe(204)
  expect((await me(withBearer(token))).status).toBe(200)
  expect((await me(my)).status).toBe(200)
})

test('a revoked token, one of a removed user, and an expired one answer 401 at the next request', async () => {
  const person = await colleague(platform.caller, 'Viewer')
  const headers = withBearer(person.accessToken)
  const [first, second] = [await newToken(headers), await newToken(headers)]
  for (const { token } of [first, second]) expect((await me(withBearer(token))).status).toBe(200)
  expect((await ask('users', 'DELETE', `${tokensPath}/${first.id}`, headers)).status).toBe(204)
  expect((await me(withBearer(first.token))).json.error).toBe('unauthenticated')
  await UserAdmin.remove(platform.caller, person.id)
  expect((await me(withBearer(second.token))).json.error).toBe('unauthenticated')
  const past = await tell('users', 'POST', tokensPath, { name: 'old', expiresAt: '2020-01-01T00:00:00Z' })
  expect(past.json.details).toMatchObject([{ path: '/expiresAt' }])
})

/** Everything that the table holds. */
async function everything(): Promise<string> {
  const { Items = [], LastEvaluatedKey } = await client.send(new ScanCommand({ TableName: config.PLAT_TABLE }))
  expect(LastEvaluatedKey).toBeUndefined()
  return JSON.stringify(Items)
}

test('with an Idempotency-Key the same token comes again, once made, and the table does not hold it in clear', async () => {
  const headers = { ...withBearer((await colleague(platform.caller, 'Viewer')).accessToken), 'Idempotency-Key': 'once' }
  const answers = await Promise.all([newToken(headers), newToken(headers), newToken(headers)])
  const [first] = answers
  expect(first.token).toMatch(/^plat_/)
  for (const answer of [...answers, await newToken(headers)]) expect(answer).toEqual(first)
  expect((await ask('users', 'GET', tokensPath, headers)).json.items).toHaveLength(1)
  const held = await everything()
  expect(held).toContain(first.id)
  expect(held).not.toContain(first.token)
  expect(held).not.toContain(first.token.slice(-43))
  expect(held).not.toContain(password)
})

test('with an Idempotency-Key a user is created once', async () => {
  const headers = { ...my, 'Idempotency-Key': 'a-user' }
  const request = newUser(['Viewer'])
  const [first, second] = [
    await tell('users', 'POST', '/api/v1/users', request, headers),
    await tell('users', 'POST', '/api/v1/users', request, headers),
  ]
  expect([first.status, second.status]).toEqual([201, 201])
  expect(second.json).toEqual(first.json)
})
