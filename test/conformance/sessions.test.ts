import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus } from './support/answer.ts'
import type { Client } from './support/client.ts'

const refresh = (client: Client, refreshToken: string) => client.post('/api/v1/auth/refresh', { refreshToken })
const isDead = async (client: Client, refreshToken: string) =>
  expectStatus(await refresh(client, refreshToken), 401, 'invalid_refresh_token')

test('rotates the refresh token on every refresh', async ({ platform }) => {
  const { anonymous } = platform
  const tokens = new Set<string>()
  let { refreshToken } = await platform.signIn()
  for (let round = 0; round < 3; round++) {
    tokens.add(refreshToken)
    const set = expectStatus(await refresh(anonymous, refreshToken), 200)
    expect(set.expiresIn).toBe(900)
    expectStatus(await anonymous.withToken(set.accessToken).get('/api/v1/auth/me'), 200)
    refreshToken = set.refreshToken
  }
  expect(tokens.size).toBe(3)
  expect(tokens.has(refreshToken)).toBe(false)
})

test('ends only the session of a reused refresh token', async ({ platform }) => {
  const { anonymous } = platform
  const [{ refreshToken: first }, { refreshToken: other }] = [await platform.signIn(), await platform.signIn()]
  const { refreshToken: second } = expectStatus(await refresh(anonymous, first), 200)
  await isDead(anonymous, first)
  await isDead(anonymous, second)
  expectStatus(await refresh(anonymous, other), 200)
})

test('at most one of 16 concurrent refreshes succeeds, and its token is revoked', async ({ platform }) => {
  const { anonymous } = platform
  const { refreshToken } = await platform.signIn()
  const answers = await Promise.all(Array.from({ length: 16 }, () => refresh(anonymous, refreshToken)))
  const successors = answers.filter(({ status }) => status === 200)
  expect(successors.length, `${successors.length} succeeded`).toBeLessThanOrEqual(1)
  for (const { body } of successors) await isDead(anonymous, body.refreshToken)
})

test('logout revokes the refresh token and keeps the access token', async ({ platform }) => {
  const { anonymous } = platform
  const { accessToken, refreshToken } = await platform.signIn()
  const client = anonymous.withToken(accessToken)
  expectStatus(await client.post('/api/v1/auth/logout'), 204)
  await isDead(anonymous, refreshToken)
  expectStatus(await client.get('/api/v1/auth/me'), 200)
  expectStatus(await client.post('/api/v1/auth/logout'), 204)
})

test('rejects malformed refresh tokens', async ({ platform }) => {
  const { refreshToken } = await platform.signIn()
  const wrong = ['text', '..', `${refreshToken}x`, refreshToken.slice(0, -1), refreshToken.toUpperCase()]
  for (const text of wrong) await isDead(platform.anonymous, text)
})
