import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import { newUserBody } from './support/person.ts'
import type { Journeys, Platform } from './support/platform.ts'
import { until } from './support/until.ts'

const path = '/api/v1/users'

/** All users of the organisation. */
async function listed(platform: Platform): Promise<any[]> {
  const admin = await platform.admin
  const users: any[] = []
  for (let page = 1; ; page++) {
    const { items } = answered(await admin.get(`${path}?page=${page}&pageSize=100`), 200)
    if (items.length === 0) return users
    users.push(...items)
  }
}

export const users: Journeys = {
  'a user is created, listed, signs in, and is gone once removed': async (platform) => {
    const admin = await platform.admin
    const body = newUserBody(['Operator', 'Auditor'])
    const user = answered(await admin.post(path, body), 201)
    assert.deepEqual([user.username, user.email, user.roles], [body.username, body.email, body.roles])
    assert.equal(user.authProvider, 'local')
    assert.ok(!JSON.stringify(user).includes(body.password))
    assert.deepEqual(answered(await admin.get(`${path}/${user.id}`), 200), user)
    await until('the user is listed', async () => (await listed(platform)).some(({ id }) => id === user.id))
    const { accessToken, refreshToken } = await platform.signIn(body)
    const client = platform.anonymous.withToken(accessToken)
    assert.deepEqual(answered(await client.get('/api/v1/auth/me'), 200), user)

    answered(await admin.delete(`${path}/${user.id}`), 204)
    answered(await admin.get(`${path}/${user.id}`), 404, 'user_not_found')
    answered(await admin.delete(`${path}/${user.id}`), 404, 'user_not_found')
    answered(await platform.anonymous.post('/api/v1/auth/login', body), 401, 'invalid_credentials')
    answered(await platform.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 401, 'invalid_refresh_token')
    await until('the user is not listed', async () => (await listed(platform)).every(({ id }) => id !== user.id))
  },

  'a name is taken whatever its case, and on the whole platform; once its user is removed it is free': async (
    platform,
  ) => {
    const admin = await platform.admin
    const tenant = await platform.tenant
    const body = newUserBody(['Viewer'])
    const first = answered(await admin.post(path, body), 201)
    const shouted = { ...newUserBody(['Viewer']), username: body.username.toUpperCase() }
    answered(await admin.post(path, shouted), 409, 'username_taken')
    answered(await tenant.client.post(path, shouted), 409, 'username_taken')
    answered(await admin.delete(`${path}/${first.id}`), 204)
    const again = answered(await tenant.client.post(path, shouted), 201)
    answered(await tenant.client.delete(`${path}/${again.id}`), 204)
  },

  'fields that are wrong are named, and no password is echoed': async (platform) => {
    const admin = await platform.admin
    const good = newUserBody(['Viewer'])
    const wrong: [object, string[]][] = [
      [{}, ['body /username', 'body /email', 'body /password', 'body /roles']],
      [{ ...good, username: 'line\nbreak' }, ['body /username']],
      [{ ...good, email: 'nobody' }, ['body /email']],
      [{ ...good, password: '7 chars' }, ['body /password']],
      [{ ...good, password: 'x'.repeat(1025) }, ['body /password']],
      [{ ...good, roles: [] }, ['body /roles']],
      [{ ...good, roles: ['Viewer', 'Root'] }, ['body /roles/1']],
      [{ ...good, roles: 'Viewer' }, ['body /roles']],
    ]
    for (const [json, fields] of wrong) {
      const answer = await admin.post(path, json)
      assert.deepEqual(refusedFields(answer), fields)
      assert.ok(!answer.text.includes(good.password) && !answer.text.includes('7 chars'))
    }
    answered(await admin.post(path, { ...good, organisationId: 'nothing' }), 404, 'organisation_not_found')
  },

  'nobody grants what they may not do themselves, and nobody touches a user who may do more': async (platform) => {
    const orgAdmin = await platform.newPerson('OrgAdmin')
    const viewer = await platform.newPerson('Viewer')
    const { id: adminId } = answered(await (await platform.admin).get('/api/v1/auth/me'), 200)
    const { client } = orgAdmin
    answered(await client.post(path, newUserBody(['PlatformAdmin'])), 422, 'role_not_grantable')
    for (const id of [viewer.id, orgAdmin.id]) {
      answered(await client.patch(`${path}/${id}`, { roles: ['PlatformAdmin'] }), 422, 'role_not_grantable')
    }
    for (const answer of [
      await client.patch(`${path}/${adminId}`, { password: 'another password' }),
      await client.patch(`${path}/${adminId}`, { roles: ['Viewer'] }),
      await client.delete(`${path}/${adminId}/sessions`),
    ]) {
      answered(answer, 403, 'forbidden')
    }
    answered(await client.patch(`${path}/${viewer.id}`, { roles: ['Operator'] }), 200)
  },

  'other roles count from the next refresh on': async (platform) => {
    const person = await platform.newPerson('Viewer')
    const register = { name: platform.newName(), type: 'Hypervisor' }
    const body = { roles: ['ClusterAdmin'], email: 'other@example.com' }
    const changed = answered(await (await platform.admin).patch(`${path}/${person.id}`, body), 200)
    assert.deepEqual([changed.roles, changed.email], [body.roles, body.email])
    const { refreshToken } = person.tokens
    const { accessToken } = answered(await platform.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 200)
    const client = platform.anonymous.withToken(accessToken)
    const { id } = answered(await client.post('/api/v1/clusters', register), 201)
    answered(await client.delete(`/api/v1/clusters/${id}`), 204)
  },

  'a password that an administrator sets ends all sessions of the user': async (platform) => {
    const { id, username, password, tokens } = await platform.newPerson('Viewer')
    const admin = await platform.admin
    const renewed = `${password} renewed`
    answered(await admin.patch(`${path}/${id}`, { password: renewed }), 200)
    const { refreshToken } = tokens
    answered(await platform.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 401, 'invalid_refresh_token')
    answered(await platform.anonymous.post('/api/v1/auth/login', { username, password }), 401, 'invalid_credentials')
    await platform.signIn({ username, password: renewed })
  },

  'the last administrator of the platform cannot be demoted': async (platform, report) => {
    const admin = await platform.admin
    const { id, roles } = answered(await admin.get('/api/v1/auth/me'), 200)
    const administrators = (await listed(platform)).filter((user) => user.roles.includes('PlatformAdmin'))
    if (administrators.length > 1) return report.skip('the platform has further administrators')
    // Removing is not tried: a platform that fails here would have no administrator any more.
    const answer = await admin.patch(`${path}/${id}`, { roles: ['OrgAdmin'] })
    if (answer.status === 200) await admin.patch(`${path}/${id}`, { roles })
    answered(answer, 409, 'last_administrator')
  },
}
