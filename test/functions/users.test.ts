import { permissionsOf } from '@platform/contract/permission'
import type { FunctionName } from '@platform/contract/index'
import { newId } from '@platform/core/id'
import { expect, test, vi } from 'vitest'
import { setUpPlatform, userRequest } from '../support/fixtures.ts'
import { jsonRequest, send } from '../support/request.ts'
import { handlerOf } from './table.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))

const platform = await setUpPlatform()
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const call = (name: FunctionName, method: string, target: string, body: object, token = platform.accessToken) =>
  send(handlerOf(name), { ...jsonRequest(target, body, bearer(token)), method })

test('ignores fields that a request cannot set: id, organisation, name, provider and rights', async () => {
  const more = {
    id: newId('user'),
    createdAt: '2020-01-01T00:00:00.000Z',
    authProvider: 'ldap',
    permissions: ['platform:admin'],
    version: 7,
    epoch: 7,
    tokenIds: ['x'],
  }
  const { json } = await call('users', 'POST', '/api/v1/users', { ...userRequest(['Viewer']), ...more })
  expect(json).toMatchObject({ authProvider: 'local', permissions: permissionsOf(['Viewer']) })
  expect(json.id).not.toBe(more.id)
  const change = { ...more, username: 'other', organisationId: newId('org') }
  expect((await call('users', 'PATCH', `/api/v1/users/${json.id}`, change)).json).toEqual(json)
})

test('rejects the removal of the last platform administrator', async () => {
  const { status, json } = await call('users', 'DELETE', `/api/v1/users/${platform.id}`, {})
  expect([status, json.error]).toEqual([409, 'last_administrator'])
})

test('signing out with an API token ends nothing', async () => {
  const { token } = (await call('users', 'POST', '/api/v1/users/me/tokens', { name: 'nightly' })).json
  expect((await call('auth', 'POST', '/api/v1/auth/logout', {}, token)).status).toBe(204)
  const me = (accessToken: string) =>
    send(handlerOf('auth'), { target: '/api/v1/auth/me', headers: bearer(accessToken) })
  expect([(await me(token)).status, (await me(platform.accessToken)).status]).toEqual([200, 200])
})
