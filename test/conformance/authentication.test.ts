import { expect } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { expectStatus } from './support/answer.ts'
import type { Client } from './support/client.ts'
import { type KeySet, verifyJws } from './support/jws.ts'
import type { TestUser } from './support/person.ts'
import { test } from './support/test.ts'

test('issues a 15-minute token set on login and local-login', async ({ anonymous, platform }) => {
  const { options } = platform
  const { username, password } = options
  for (const path of ['/api/v1/auth/login', '/api/v1/auth/local-login']) {
    const { expiresIn, tokenType } = expectStatus(await anonymous.post(path, { username, password }), 200)
    expect({ expiresIn, tokenType }).toEqual({ expiresIn: 900, tokenType: 'Bearer' })
  }
})

test('gives the same error for a wrong password and an unknown user', async ({ platform }) => {
  const { anonymous, options } = platform
  const invalidCredentials = [
    { username: options.username, password: `${options.password}.` },
    { username: platform.newName(), password: options.password },
  ]
  for (const path of ['/api/v1/auth/login', '/api/v1/auth/local-login']) {
    const rejections = []
    for (const json of invalidCredentials)
      rejections.push(expectStatus(await anonymous.post(path, json), 401, 'invalid_credentials'))
    expect(rejections[0].message).toBe(rejections[1].message)
  }
})

test('publishes the public keys that verify access tokens', async ({ platform }) => {
  const response = await platform.anonymous.get('/.well-known/jwks.json')
  expect(response.headers.get('cache-control')).toBe('public, max-age=60')
  const keySet: KeySet = expectStatus(response, 200)
  for (const key of keySet.keys) expect(key.d).toBe(undefined)
  const { claims } = verifyJws((await platform.signIn()).accessToken, keySet)
  expect(claims.exp - claims.iat).toBe(900)
})

const refresh = (client: Client, refreshToken: string) => client.post('/api/v1/auth/refresh', { refreshToken })
const expectRevoked = async (client: Client, refreshToken: string) =>
  expectStatus(await refresh(client, refreshToken), 401, 'invalid_refresh_token')

test('rotates the refresh token on every refresh', async ({ platform }) => {
  const { anonymous } = platform
  const usedTokens = new Set<string>()
  let { refreshToken } = await platform.signIn()
  for (let round = 0; round < 3; round++) {
    usedTokens.add(refreshToken)
    const tokens = expectStatus(await refresh(anonymous, refreshToken), 200)
    expect(tokens.expiresIn).toBe(900)
    expectStatus(await anonymous.withToken(tokens.accessToken).get('/api/v1/auth/me'), 200)
    refreshToken = tokens.refreshToken
  }
  expect(usedTokens.size).toBe(3)
  expect(usedTokens.has(refreshToken)).toBe(false)
})

test('ends only the session of a reused refresh token', async ({ platform }) => {
  const { anonymous } = platform
  const [{ refreshToken: token }, { refreshToken: otherToken }] = [await platform.signIn(), await platform.signIn()]
  const { refreshToken: newToken } = expectStatus(await refresh(anonymous, token), 200)
  await expectRevoked(anonymous, token)
  await expectRevoked(anonymous, newToken)
  expectStatus(await refresh(anonymous, otherToken), 200)
})

test('at most one of 16 concurrent refreshes succeeds, and its token is revoked', async ({ platform }) => {
  const { anonymous } = platform
  const { refreshToken } = await platform.signIn()
  const responses = await Promise.all(Array.from({ length: 16 }, () => refresh(anonymous, refreshToken)))
  const successors = responses.filter(({ status }) => status === 200)
  expect(successors.length, `${successors.length} succeeded`).toBeLessThanOrEqual(1)
  for (const { body } of successors) await expectRevoked(anonymous, body.refreshToken)
})

test('logout revokes the refresh token and keeps the access token', async ({ platform }) => {
  const { anonymous } = platform
  const { accessToken, refreshToken } = await platform.signIn()
  const client = anonymous.withToken(accessToken)
  expectStatus(await client.post('/api/v1/auth/logout'), 204)
  await expectRevoked(anonymous, refreshToken)
  expectStatus(await client.get('/api/v1/auth/me'), 200)
  expectStatus(await client.post('/api/v1/auth/logout'), 204)
})

const sessionsPath = '/api/v1/users/me/sessions'
const passwordPath = '/api/v1/users/me/password'

/** Waits for a number of open sessions: lists may lag behind writes. */
const sessionsOf = ({ client }: TestUser, count: number): Promise<any[]> =>
  waitFor(`${count} sessions are listed`, async () => {
    const { items } = expectStatus(await client.get(sessionsPath), 200)
    return items.length === count && items
  })

test('lists sessions, newest first, and marks the current one', async ({ platform }) => {
  const user = await platform.newUser('Viewer')
  await platform.signIn(user)
  const [newestSession, oldestSession] = await sessionsOf(user, 2)
  expect([newestSession.isCurrent, oldestSession.isCurrent]).toEqual([false, true])
  expect(Date.parse(newestSession.createdAt)).toBeGreaterThanOrEqual(Date.parse(oldestSession.createdAt))
  for (const { address } of [newestSession, oldestSession]) expect(address).toMatch(/^[0-9a-f.:]+$/)
})

test('ends one session and keeps the others', async ({ platform }) => {
  const user = await platform.newUser('Viewer')
  const otherTokens = await platform.signIn(user)
  const otherSession = (await sessionsOf(user, 2)).find(({ isCurrent }) => !isCurrent)
  expectStatus(await user.client.delete(`${sessionsPath}/${otherSession.id}`), 204)
  await expectRevoked(platform.anonymous, otherTokens.refreshToken)
  expectStatus(await user.client.delete(`${sessionsPath}/${otherSession.id}`), 404, 'session_not_found')
  await sessionsOf(user, 1)
  expectStatus(await refresh(platform.anonymous, user.tokens.refreshToken), 200)
})

test('ends all other sessions when the password changes', async ({ platform }) => {
  const user = await platform.newUser('Viewer')
  const { username, password: currentPassword } = user
  const otherTokens = await platform.signIn(user)
  const newPassword = `${currentPassword} and more`
  expectStatus(await user.client.put(passwordPath, { currentPassword, newPassword }), 204)
  await expectRevoked(platform.anonymous, otherTokens.refreshToken)
  expectStatus(await refresh(platform.anonymous, user.tokens.refreshToken), 200)
  expect((await sessionsOf(user, 1))[0].isCurrent).toBe(true)
  const oldCredentials = { username, password: currentPassword }
  expectStatus(await platform.anonymous.post('/api/v1/auth/login', oldCredentials), 401, 'invalid_credentials')
  await platform.signIn({ username, password: newPassword })
})
