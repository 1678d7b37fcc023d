import assert from 'node:assert/strict'
import { answered } from './support/answer.ts'
import type { Client } from './support/client.ts'
import type { Journeys } from './support/platform.ts'

const refresh = (client: Client, refreshToken: string) => client.post('/api/v1/auth/refresh', { refreshToken })
const isDead = async (client: Client, refreshToken: string) =>
  answered(await refresh(client, refreshToken), 401, 'invalid_refresh_token')

export const sessions: Journeys = {
  'a refresh token is traded for a new set, again and again': async (platform) => {
    const { anonymous } = platform
    const tokens = new Set<string>()
    let { refreshToken } = await platform.signIn()
    for (let round = 0; round < 3; round++) {
      tokens.add(refreshToken)
      const set = answered(await refresh(anonymous, refreshToken), 200)
      assert.equal(set.expiresIn, 900)
      answered(await anonymous.withToken(set.accessToken).get('/api/v1/auth/me'), 200)
      refreshToken = set.refreshToken
    }
    assert.equal(tokens.size, 3)
    assert.ok(!tokens.has(refreshToken))
  },

  'a refresh token that is used twice ends its session, and no other': async (platform) => {
    const { anonymous } = platform
    const [{ refreshToken: first }, { refreshToken: other }] = [await platform.signIn(), await platform.signIn()]
    const { refreshToken: second } = answered(await refresh(anonymous, first), 200)
    await isDead(anonymous, first)
    await isDead(anonymous, second)
    answered(await refresh(anonymous, other), 200)
  },

  'of sixteen uses of one refresh token at once at most one succeeds, and its successor is dead': async (platform) => {
    const { anonymous } = platform
    const { refreshToken } = await platform.signIn()
    const answers = await Promise.all(Array.from({ length: 16 }, () => refresh(anonymous, refreshToken)))
    const successors = answers.filter(({ status }) => status === 200)
    assert.ok(successors.length <= 1, `${successors.length} succeeded`)
    for (const { body } of successors) await isDead(anonymous, body.refreshToken)
  },

  'logout revokes the refresh token; the access token lives on': async (platform) => {
    const { anonymous } = platform
    const { accessToken, refreshToken } = await platform.signIn()
    const client = anonymous.withToken(accessToken)
    answered(await client.post('/api/v1/auth/logout'), 204)
    await isDead(anonymous, refreshToken)
    answered(await client.get('/api/v1/auth/me'), 200)
    answered(await client.post('/api/v1/auth/logout'), 204)
  },

  'what is no refresh token is refused': async (platform) => {
    const { refreshToken } = await platform.signIn()
    const wrong = ['text', '..', `${refreshToken}x`, refreshToken.slice(0, -1), refreshToken.toUpperCase()]
    for (const text of wrong) await isDead(platform.anonymous, text)
  },
}
