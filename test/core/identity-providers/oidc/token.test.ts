// First, because it sets the outbound allowlist, which core reads when it is imported.
import { newIssuer } from '../../support/oidc-issuers.ts'
import { nowSeconds, shiftClock } from '@platform/core/clock'
import { SignJWT, UnsecuredJWT } from 'jose'
import { beforeAll, expect, test } from 'vitest'
import { type HostileIssuer, signed, signingKey } from '../../../support/hostile-issuer.ts'
import { clientSecret, newProvider, preparePortal, signInWith } from '../../support/oidc.ts'

beforeAll(preparePortal)

type Claims = Record<string, unknown>
type Forge = (claims: Claims, issuer: HostileIssuer) => Promise<string> | string
const accepted = { code: expect.stringMatching(/^[\w-]{43}$/) }
const rejected = { error: 'answer_invalid', traceId: '' }

/** Signs in with changed claims, or with another token. */
async function signIn(change: Claims = {}, forge?: Forge, issuer = newIssuer()) {
  const provider = await newProvider(issuer.url)
  const changed = (claims: Claims) => ({ ...claims, ...change })
  return signInWith(issuer, provider, changed, forge && ((claims) => forge(claims, issuer)))
}

test.each<[string, Claims]>([
  ['valid claims', {}],
  ['several audiences and the client as authorised party', { aud: ['platform', 'x'], azp: 'platform' }],
  ['an issue time half a minute ahead', { iat: nowSeconds() + 30 }],
])('accepts an ID token with %s', async (_, change) => {
  expect(await signIn(change)).toEqual(accepted)
})

const sharedIssuer = newIssuer()

test.each<[string, Claims]>([
  ['another issuer', { iss: 'https://id.example.com' }],
  ['a trailing slash after the issuer', { iss: `${sharedIssuer.url}/` }],
  ['another client', { aud: 'another' }],
  ['no audience', { aud: [] }],
  ['an untrusted additional audience', { aud: ['platform', 'another'] }],
  ['an untrusted additional audience as authorised party', { aud: ['platform', 'another'], azp: 'another' }],
  ['another authorised party', { azp: 'another' }],
  ['the nonce of another sign-in', { nonce: 'another' }],
  ['no nonce', { nonce: undefined }],
  ['a past expiry', { exp: nowSeconds() - 31 }],
  ['no expiry', { exp: undefined }],
  ['a text as expiry', { exp: '9999999999' }],
  ['a future issue time', { iat: nowSeconds() + 600 }],
  ['a future start time', { nbf: nowSeconds() + 600 }],
  ['no issue time', { iat: undefined }],
  ['no subject', { sub: undefined }],
  ['an empty subject', { sub: '' }],
  ['a number as subject', { sub: 42 }],
  ['a list as subject', { sub: ['user'] }],
  ['a subject of 256 characters', { sub: 's'.repeat(256) }],
])('rejects an ID token with %s', async (_, change) => {
  const requests = sharedIssuer.countRequests('/token')
  expect(await signIn(change, undefined, sharedIssuer)).toEqual(rejected)
  expect(sharedIssuer.countRequests('/token')).toBe(requests + 1)
})

const hmac = (claims: Claims, secret: string, header: Claims = {}) =>
  new SignJWT(claims).setProtectedHeader({ ...header, alg: 'HS256' }).sign(Buffer.from(secret))
const withHeader = (claims: Claims, header: Claims, key: HostileIssuer['key']) =>
  new SignJWT(claims).setProtectedHeader({ ...header, alg: 'ES256' }).sign(key.privateKey)
const foreignKey = signingKey()

test.each<[string, Forge]>([
  ['without a signature', (claims) => new UnsecuredJWT(claims).encode()],
  ['with an empty signature', async (claims, { key }) => (await signed(claims, key)).replace(/[^.]+$/, '')],
  ['signed with the client secret', (claims) => hmac(claims, clientSecret)],
  [
    'signed with the public key as a secret',
    (claims, { key }) => hmac(claims, JSON.stringify(key.wire), { kid: key.kid }),
  ],
  ['signed by an unknown key', (claims) => signed(claims, foreignKey)],
  ['signed by another key with a known key id', (claims, { key }) => signed(claims, { ...foreignKey, kid: key.kid })],
  ['with an embedded key', (claims) => withHeader(claims, { jwk: foreignKey.wire }, foreignKey)],
  [
    'with a critical extension',
    (claims, { key }) => withHeader(claims, { kid: key.kid, crit: ['b64'], b64: true }, key),
  ],
  [
    'with changed claims',
    async (claims, { key }) => {
      const [header, , signature] = (await signed(claims, key)).split('.')
      const changed = Buffer.from(JSON.stringify({ ...claims, sub: 'another' })).toString('base64url')
      return `${header}.${changed}.${signature}`
    },
  ],
  ['of four parts', async (claims, { key }) => `${await signed(claims, key)}.x`],
  ['that is not a JWT', () => 'token'],
  ['that is empty', () => ''],
])('rejects an ID token %s', async (_, forge) => {
  shiftClock(11_000)
  expect(await signIn({}, forge, sharedIssuer)).toEqual(rejected)
})

test('rejects the ID token of another sign-in', async () => {
  const issuer = newIssuer()
  let token = ''
  expect(await signIn({}, async (claims) => (token = await signed(claims, issuer.key)), issuer)).toEqual(accepted)
  expect(await signIn({}, () => token, issuer)).toEqual(rejected)
})

test('reloads keys for an unknown key id, and all metadata after five minutes', async () => {
  const issuer = newIssuer()
  const provider = await newProvider(issuer.url)
  const requests = () => [issuer.countRequests('/jwks'), issuer.countRequests('/.well-known/openid-configuration')]
  for (let count = 0; count < 3; count++) expect(await signInWith(issuer, provider)).toEqual(accepted)
  expect(requests()).toEqual([1, 1])
  const revoked = issuer.key
  issuer.key = signingKey()
  issuer.keys = [issuer.key.wire]
  shiftClock(11_000)
  expect(await signInWith(issuer, provider)).toEqual(accepted)
  expect(requests()).toEqual([2, 1])
  shiftClock(300_001)
  expect(await signInWith(issuer, provider, undefined, (claims) => signed(claims, revoked))).toEqual(rejected)
  expect(await signInWith(issuer, provider)).toEqual(accepted)
  expect(requests()).toEqual([3, 2])
})

test('reloads keys for unknown key ids at most every ten seconds', async () => {
  const issuer = newIssuer()
  const provider = await newProvider(issuer.url)
  const forge = () => signInWith(issuer, provider, undefined, (claims) => signed(claims, signingKey()))
  for (let count = 0; count < 5; count++) expect(await forge()).toEqual(rejected)
  expect(issuer.countRequests('/jwks')).toBe(1)
  shiftClock(11_000)
  for (let count = 0; count < 5; count++) await forge()
  expect(issuer.countRequests('/jwks')).toBe(2)
  expect(await signInWith(issuer, provider)).toEqual(accepted)
})
