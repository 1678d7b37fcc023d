import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import { type KeySet, signJws, verifyJws } from './support/jws.ts'
import type { Journeys, Platform } from './support/platform.ts'
import { newRelayKey } from './support/relay.ts'

const me = '/api/v1/auth/me'

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = (part: string): any => JSON.parse(Buffer.from(part, 'base64url').toString())

/** What somebody might send in place of a good token. */
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

export const authentication: Journeys = {
  'login and local-login answer a token set of 15 minutes': async ({ anonymous, options }) => {
    const { username, password } = options
    for (const path of ['/api/v1/auth/login', '/api/v1/auth/local-login']) {
      const { expiresIn, tokenType } = answered(await anonymous.post(path, { username, password }), 200)
      assert.deepEqual({ expiresIn, tokenType }, { expiresIn: 900, tokenType: 'Bearer' })
    }
  },

  'a wrong password and an unknown user are refused alike': async (platform) => {
    const { anonymous, options } = platform
    const wrong = [
      { username: options.username, password: `${options.password}.` },
      { username: platform.newName(), password: options.password },
    ]
    for (const path of ['/api/v1/auth/login', '/api/v1/auth/local-login']) {
      const refusals = []
      for (const json of wrong) refusals.push(answered(await anonymous.post(path, json), 401, 'invalid_credentials'))
      assert.equal(refusals[0].message, refusals[1].message)
    }
  },

  'fields that are missing or of another type are named': async ({ anonymous }) => {
    assert.deepEqual(refusedFields(await anonymous.post('/api/v1/auth/login', { username: 7 })), [
      'body /username',
      'body /password',
    ])
    assert.deepEqual(refusedFields(await anonymous.post('/api/v1/auth/refresh', {})), ['body /refreshToken'])
  },

  'me tells who is signed in and what they may do': async ({ admin, options }) => {
    const { username, roles, authProvider, permissions } = answered(await (await admin).get(me), 200)
    assert.equal(username, options.username)
    assert.equal(authProvider, 'local')
    assert.ok(roles.includes('PlatformAdmin'))
    for (const permission of ['clusters:admin', 'jobs:write', 'platform:admin']) {
      assert.ok(permissions.includes(permission), permission)
    }
  },

  'access tokens verify with the published keys, which hold no private part': async (platform) => {
    const published: KeySet = answered(await platform.anonymous.get('/.well-known/jwks.json'), 200)
    for (const key of published.keys) assert.equal(key.d, undefined)
    const { claims } = verifyJws((await platform.signIn()).accessToken, published)
    assert.equal(claims.exp - claims.iat, 900)
  },

  'whatever is not a good token is answered with 401': async (platform) => {
    for (const [what, credential] of Object.entries(await badCredentials(platform))) {
      const answer = await platform.anonymous.get(me, credential === '' ? {} : { authorization: credential })
      assert.equal(answer.status, 401, what)
      answered(answer, 401, 'unauthenticated')
    }
  },
}
