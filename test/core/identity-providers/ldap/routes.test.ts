// First: it sets what the platform may reach, which core reads when it is imported.
import { acme, signInAs, credentialsOf, directory, skipReason } from '../../support/acme.ts'
import { ports } from '../../support/directories.ts'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { expect, test } from 'vitest'
import { handler } from '../../../../functions/auth.ts'
import { jsonRequest, send } from '../../../support/request.ts'
import { userRequest, password } from '../../../support/fixtures.ts'
import { removeProvider } from '../../support/providers.ts'

const login = (route: string, credentials: object) =>
  send(handler, jsonRequest(`/api/v1/auth/${route}`, credentials, { 'sec-fetch-site': 'same-origin' }))

test.skipIf(skipReason !== '')(
  `/auth/login knows the people of a directory, /auth/local-login does not${skipReason}`,
  async () => {
    const idp = await directory()
    const { status, json } = await login('login', credentialsOf('ada'))
    expect(status).toBe(200)
    const { accessToken } = json
    const me = await send(handler, { target: '/api/v1/auth/me', headers: { authorization: `Bearer ${accessToken}` } })
    expect(me.json).toMatchObject({ username: 'ada', authProvider: idp.id, email: 'ada@acme.test' })
    expect(await login('local-login', credentialsOf('ada'))).toMatchObject({
      status: 401,
      json: { error: 'invalid_credentials' },
    })
  },
)

test.skipIf(skipReason !== '')(
  `a directory that is down is 503 with Retry-After, and leaves local accounts alone${skipReason}`,
  async () => {
    await directory({ url: `ldaps://localhost:${ports.dead}` })
    expect(await login('login', credentialsOf('ada'))).toMatchObject({
      status: 503,
      json: { error: 'directory_unreachable' },
      headers: { 'retry-after': '5' },
    })
    expect(await login('local-login', credentialsOf('ada'))).toMatchObject({ status: 401 })
    const local = { username: acme.platform.username, password }
    expect(await login('login', local)).toMatchObject({ status: 200 })
    expect(await login('login', { ...local, password: 'wrong' })).toMatchObject({ status: 401 })
  },
)

test.skipIf(skipReason !== '')(
  `an empty or endless name or password is refused before anybody is asked${skipReason}`,
  async () => {
    await directory()
    for (const credentials of [
      { username: 'ada', password: '' },
      { username: '', password: 'x' },
      { username: 'a'.repeat(255), password: 'x' },
      { username: 'ada', password: 'x'.repeat(1025) },
      { username: ['ada'], password: 'x' },
    ]) {
      expect(await login('login', credentials)).toMatchObject({ status: 400, json: { error: 'validation_failed' } })
    }
  },
)

/** Signs in by name; the user goes, and its name becomes somebody else's. */
async function displace(): Promise<void> {
  const { id, username } = await signInAs('grace')
  await UserAdmin.remove(acme.caller, id)
  await UserAdmin.create(acme.caller, userRequest(['Viewer'], username))
}

test.skipIf(skipReason !== '')(
  `whoever cannot have any name here hears of it on both ways in${skipReason}`,
  async () => {
    const first = await directory()
    expect((await login('login', credentialsOf('grace'))).status).toBe(200)
    await removeProvider(first)
    await directory()
    await displace()
    await displace()
    for (const way of ['login', 'session'])
      expect(await login(way, credentialsOf('grace'))).toMatchObject({ status: 409, json: { error: 'username_taken' } })
  },
)
