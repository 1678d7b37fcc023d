import { expect } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { expectStatus, invalidFields } from './support/answer.ts'
import { jobFor } from './support/batch.ts'
import { createTenant, newUserBody, type TestUser } from './support/person.ts'
import type { Platform } from './support/platform.ts'
import { test } from './support/test.ts'

const path = '/api/v1/users'

async function listUsers(platform: Platform): Promise<any[]> {
  const admin = await platform.admin
  const users: any[] = []
  for (let page = 1; ; page++) {
    const { items } = expectStatus(await admin.get(`${path}?page=${page}&pageSize=100`), 200)
    if (items.length === 0) return users
    users.push(...items)
  }
}

test('creates, lists, signs in and removes a user', async ({ platform, admin }) => {
  const body = newUserBody(['Operator', 'Auditor'])
  const user = expectStatus(await admin.post(path, body), 201)
  expect([user.username, user.email, user.roles]).toEqual([body.username, body.email, body.roles])
  expect(user.authProvider).toBe('local')
  expect(JSON.stringify(user)).not.toContain(body.password)
  expect(expectStatus(await admin.get(`${path}/${user.id}`), 200)).toEqual(user)
  await waitFor('the user is listed', async () => (await listUsers(platform)).some(({ id }) => id === user.id))
  const { accessToken, refreshToken } = await platform.signIn(body)
  const client = platform.anonymous.withToken(accessToken)
  expect(expectStatus(await client.get('/api/v1/auth/me'), 200)).toEqual(user)

  expectStatus(await admin.delete(`${path}/${user.id}`), 204)
  expectStatus(await admin.get(`${path}/${user.id}`), 404, 'user_not_found')
  expectStatus(await admin.delete(`${path}/${user.id}`), 404, 'user_not_found')
  const { username, password } = body
  expectStatus(await platform.anonymous.post('/api/v1/auth/login', { username, password }), 401, 'invalid_credentials')
  expectStatus(await platform.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 401, 'invalid_refresh_token')
  await waitFor('the user is not listed', async () => (await listUsers(platform)).every(({ id }) => id !== user.id))
})

test('names invalid fields and never returns a password', async ({ admin }) => {
  const validUser = newUserBody(['Viewer'])
  const invalidUsers: [object, string[]][] = [
    [{}, ['body /username', 'body /email', 'body /password', 'body /roles']],
    [{ ...validUser, username: 'line\nbreak' }, ['body /username']],
    [{ ...validUser, email: 'invalid' }, ['body /email']],
    [{ ...validUser, password: '7 chars' }, ['body /password']],
    [{ ...validUser, password: 'Password123' }, ['body /password']],
    [{ ...validUser, password: 'x'.repeat(1025) }, ['body /password']],
    [{ ...validUser, roles: [] }, ['body /roles']],
    [{ ...validUser, roles: ['Viewer', 'Root'] }, ['body /roles/1']],
    [{ ...validUser, roles: 'Viewer' }, ['body /roles']],
  ]
  for (const [json, fields] of invalidUsers) {
    const response = await admin.post(path, json)
    expect(invalidFields(response)).toEqual(fields)
    expect(response.text).not.toContain(validUser.password)
    expect(response.text).not.toContain('7 chars')
  }
  expectStatus(await admin.post(path, { ...validUser, organisationId: 'nothing' }), 404, 'organisation_not_found')
})

test('applies changed roles on the next refresh', async ({ platform, admin }) => {
  const user = await platform.newUser('Viewer')
  const register = { name: platform.newName(), type: 'Hypervisor' }
  const body = { roles: ['ClusterAdmin'], email: 'other@example.com' }
  const changedUser = expectStatus(await admin.patch(`${path}/${user.id}`, body), 200)
  expect([changedUser.roles, changedUser.email]).toEqual([body.roles, body.email])
  const { refreshToken } = user.tokens
  const { accessToken } = expectStatus(await platform.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 200)
  const client = platform.anonymous.withToken(accessToken)
  const { id } = expectStatus(await client.post('/api/v1/clusters', register), 201)
  expectStatus(await client.delete(`/api/v1/clusters/${id}`), 204)
})

test('ends all sessions when an administrator sets a password', async ({ platform, admin }) => {
  const { id, username, password, tokens } = await platform.newUser('Viewer')
  const newPassword = `${password} renewed`
  expectStatus(await admin.patch(`${path}/${id}`, { password: newPassword }), 200)
  const { refreshToken } = tokens
  expectStatus(await platform.anonymous.post('/api/v1/auth/refresh', { refreshToken }), 401, 'invalid_refresh_token')
  expectStatus(await platform.anonymous.post('/api/v1/auth/login', { username, password }), 401, 'invalid_credentials')
  await platform.signIn({ username, password: newPassword })
})

test('refuses changes with the old token of a removed, demoted or signed-out user', async ({ platform, admin }) => {
  const ends: [string, (user: TestUser) => Promise<unknown>, number][] = [
    ['removed', ({ id }) => admin.delete(`${path}/${id}`), 401],
    ['sessions ended', ({ id }) => admin.delete(`${path}/${id}/sessions`), 401],
    ['signed out', ({ client }) => client.post('/api/v1/auth/logout'), 401],
    ['demoted', ({ id }) => admin.patch(`${path}/${id}`, { roles: ['Viewer'] }), 403],
  ]
  const { id: clusterId } = await platform.newCluster()
  for (const [name, end, status] of ends) {
    const user = await platform.newUser('ClusterAdmin')
    await end(user)
    const responses = [
      await user.client.post('/api/v1/jobs', jobFor(clusterId)),
      await user.client.patch(`/api/v1/clusters/${clusterId}`, { name: platform.newName() }),
    ]
    expect([name, ...responses.map((response) => response.status)]).toEqual([name, status, status])
  }
})

test('keeps the last administrator of an organisation', async ({ platform }) => {
  const { id, client } = await createTenant(platform)
  expectStatus(await client.patch(`${path}/${id}`, { roles: ['Viewer'] }), 409, 'last_administrator')
  expectStatus(await client.delete(`${path}/${id}`), 409, 'last_administrator')
  const { id: secondId } = expectStatus(await client.post(path, newUserBody(['OrgAdmin'])), 201)
  expectStatus(await client.patch(`${path}/${secondId}`, { roles: ['Viewer'] }), 200)
})
