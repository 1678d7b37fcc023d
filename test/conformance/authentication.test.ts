import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, invalidFields } from './support/answer.ts'
import { type KeySet, signJws, verifyJws } from './support/jws.ts'
import type { Platform } from './support/platform.ts'
import { newRelayKey } from './support/relay.ts'

const me = '/api/v1/auth/me'

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = (part: string): any => JSON.parse(Buffer.from(part, 'base64url').toString())

/** Invalid `Authorization` headers. */
async function badCredentials(platform: Platform): Promise<Record<string, string>> {
  const { accessToken, refreshToken } = await platform.signIn()
  const [header, claims, signature] = accessToken.split('.')
  const changed = encode({ ...decode(claims), exp: decode(claims).exp + 1 })
  const unsigned = encode({ ...decode(header), alg: 'none' })
  const { privateKey } = newRelayKey()
  return {
    'no token': '',
    'an empty token': 'Bearer ',
    'another scheme': `Basic ${Buffer.from('admin:admin').toString('base64')}`,
    'a text that is no token': 'Bearer text',
    'a refresh token': `Bearer ${refreshToken}`,
    'two tokens': `Bearer ${accessToken}, Bearer ${accessToken}`,
    'changed claims': `Bearer ${header}.${changed}.${signature}`,
    'no signature': `Bearer ${unsigned}.${claims}.`,
    'the signature of another key': `Bearer ${signJws(decode(header), decode(claims), privateKey)}`,
    'a token of the relay scheme': `Relay ${accessToken}`,
  }
}

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
  const wrong = [
    { username: options.username, password: `${options.password}.` },
    { username: platform.newName(), password: options.password },
  ]
  for (const path of ['/api/v1/auth/login', '/api/v1/auth/local-login']) {
    const refusals = []
    for (const json of wrong) refusals.push(expectStatus(await anonymous.post(path, json), 401, 'invalid_credentials'))
    expect(refusals[0].message).toBe(refusals[1].message)
  }
})

test('names missing and mistyped fields', async ({ anonymous }) => {
  expect(invalidFields(await anonymous.post('/api/v1/auth/login', { username: 7 }))).toEqual([
    'body /username',
    'body /password',
  ])
  expect(invalidFields(await anonymous.post('/api/v1/auth/refresh', {}))).toEqual(['body /refreshToken'])
})

test('returns the signed-in user and its permissions', async ({ admin, platform }) => {
  const { options } = platform
  const { username, roles, authProvider, permissions } = expectStatus(await admin.get(me), 200)
  expect(username).toBe(options.username)
  expect(authProvider).toBe('local')
  expect(roles).toContain('PlatformAdmin')
  for (const permission of ['clusters:admin', 'jobs:write', 'platform:admin']) {
    expect(permissions, permission).toContain(permission)
  }
})

test('publishes the public keys that verify access tokens', async ({ platform }) => {
  const published: KeySet = expectStatus(await platform.anonymous.get('/.well-known/jwks.json'), 200)
  for (const key of published.keys) expect(key.d).toBe(undefined)
  const { claims } = verifyJws((await platform.signIn()).accessToken, published)
  expect(claims.exp - claims.iat).toBe(900)
})

test('rejects invalid credentials with 401', async ({ platform }) => {
  for (const [what, credential] of Object.entries(await badCredentials(platform))) {
    const answer = await platform.anonymous.get(me, credential === '' ? {} : { authorization: credential })
    expect(answer.status, what).toBe(401)
    expectStatus(answer, 401, 'unauthenticated')
  }
})
