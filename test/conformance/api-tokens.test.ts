import { expect } from 'vitest'
import { expectStatus, invalidFields } from './support/answer.ts'
import { createTenant, type TestUser } from './support/person.ts'
import type { Platform } from './support/platform.ts'
import { test } from './support/test.ts'

const path = '/api/v1/users/me/tokens'
const mePath = '/api/v1/auth/me'

async function newToken(platform: Platform, { client }: TestUser, fields: object = {}) {
  const token = expectStatus(await client.post(path, { name: platform.newName(), ...fields }), 201)
  return { ...token, client: platform.anonymous.withToken(token.token) }
}

test('shows an API token once and accepts it as its user', async ({ platform }) => {
  const user = await platform.newUser('Operator')
  const { id, token, client, ...created } = await newToken(platform, user)
  expect(token).toMatch(/^plat_[0-9a-z]+_\S+$/)
  expect(created.lastUsedAt).toBe(null)
  const account = expectStatus(await user.client.get(mePath), 200)
  expect(expectStatus(await client.get(mePath), 200)).toEqual(account)
  expect(created.permissions.toSorted()).toEqual(account.permissions.toSorted())
  const list = await user.client.get(path)
  expect(expectStatus(list, 200).items.map((item: any) => item.id)).toEqual([id])
  expect(list.text).not.toContain(token)
})

test('limits a token to its own permissions', async ({ platform }) => {
  const user = await platform.newUser('ClusterAdmin')
  const { client } = await newToken(platform, user, { permissions: ['clusters:read'] })
  expect(expectStatus(await client.get(mePath), 200).permissions).toEqual(['clusters:read'])
  expectStatus(await client.get('/api/v1/clusters'), 200)
  const rejection = expectStatus(await client.post('/api/v1/clusters', {}), 403, 'forbidden')
  expect(rejection.requiredPermission).toBe('clusters:write')
  expectStatus(await client.get('/api/v1/jobs'), 403, 'forbidden')
})

test('limits a token to the current permissions of its user', async ({ platform, admin }) => {
  const user = await platform.newUser('ClusterAdmin')
  const { client } = await newToken(platform, user)
  expectStatus(await client.post('/api/v1/clusters', {}), 400, 'validation_failed')
  const viewerRoles = { roles: ['Viewer'] }
  expectStatus(await admin.patch(`/api/v1/users/${user.id}`, viewerRoles), 200)
  expectStatus(await client.post('/api/v1/clusters', {}), 403, 'forbidden')
  expectStatus(await client.get('/api/v1/clusters'), 200)
})

test('rejects a revoked token and the tokens of a removed user', async ({ platform, admin }) => {
  const user = await platform.newUser('Viewer')
  const [first, second] = [await newToken(platform, user), await newToken(platform, user)]
  for (const { client } of [first, second]) expectStatus(await client.get(mePath), 200)
  expectStatus(await user.client.delete(`${path}/${first.id}`), 204)
  expectStatus(await first.client.get(mePath), 401, 'unauthenticated')
  expectStatus(await user.client.delete(`${path}/${first.id}`), 404, 'token_not_found')
  expectStatus(await second.client.get(mePath), 200)
  expectStatus(await admin.delete(`/api/v1/users/${user.id}`), 204)
  expectStatus(await second.client.get(mePath), 401, 'unauthenticated')
})

test('does not let a token list, create or revoke tokens', async ({ platform }) => {
  const user = await platform.newUser('Viewer')
  const { id, client } = await newToken(platform, user)
  expectStatus(await client.get(path), 403, 'forbidden')
  expectStatus(await client.post(path, { name: 'another' }), 403, 'forbidden')
  expectStatus(await client.delete(`${path}/${id}`), 403, 'forbidden')
  expectStatus(await client.get(mePath), 200)
})

test('keeps a token valid after logout and a password change', async ({ platform }) => {
  const user = await platform.newUser('Viewer')
  const { client } = await newToken(platform, user)
  const { password: currentPassword } = user
  const change = { currentPassword, newPassword: `${currentPassword}.` }
  expectStatus(await user.client.put('/api/v1/users/me/password', change), 204)
  expectStatus(await user.client.post('/api/v1/auth/logout'), 204)
  expectStatus(await client.get(mePath), 200)
})

test('stores the settings of the organisation and limits the lifetime of new tokens to them', async ({ platform }) => {
  const tenant = await createTenant(platform)
  const settings = { maxTokenLifetimeDays: 30, defaultTokenLifetimeDays: 7, jobRetentionDays: 1 }
  const settingsPath = '/api/v1/organisation/settings'
  expect(expectStatus(await tenant.client.patch(settingsPath, settings), 200)).toEqual(settings)
  expect(invalidFields(await tenant.client.patch(settingsPath, { jobRetentionDays: 0 }))).toEqual([
    'body /jobRetentionDays',
  ])
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
  const { expiresAt } = await newToken(platform, tenant)
  expect(Math.abs(Date.parse(expiresAt) - Date.parse(inDays(7)))).toBeLessThan(3_600_000)
  await newToken(platform, tenant, { expiresAt: inDays(29) })
  const rejection = await tenant.client.post(path, { name: 'too long', expiresAt: inDays(31) })
  expect(invalidFields(rejection)).toEqual(['body /expiresAt'])
})
