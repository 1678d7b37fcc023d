// First: it sets what the platform may reach, which core reads when it is imported.
import { newIssuer } from '../../support/oidc-issuers.ts'
import { SignJWT, UnsecuredJWT } from 'jose'
import { beforeAll, expect, test } from 'vitest'
import { nowSeconds, shiftClock } from '@platform/core/clock'
import { type HostileIssuer, signed, signingKey } from '../../../support/hostile-issuer.ts'
import { clientSecret, newProvider, preparePortal, signInWith } from '../../support/oidc.ts'

beforeAll(preparePortal)

type Claims = Record<string, unknown>
const signedIn = { code: expect.stringMatching(/^[\w-]{43}$/) }
const refused = { error: 'answer_invalid', traceId: '' }

const withClaims = (given: Claims) => (claims: Claims) => ({ ...claims, ...given })
const withTime = (name: string, seconds: number) => (claims: Claims) => ({ ...claims, [name]: nowSeconds() + seconds })
const without = (name: string) => (claims: Claims) =>
  Object.fromEntries(Object.entries(claims).filter(([key]) => key !== name))

test.each<[string, (claims: Claims) => Claims]>([
  ['as it should be', (claims) => claims],
  ['for several parties, the platform among them and named', withClaims({ aud: ['platform', 'x'], azp: 'platform' })],
  ['from a clock half a minute ahead', withTime('iat', 30)],
])('a token %s signs in', async (_, change) => {
  const issuer = newIssuer()
  expect(await signInWith(issuer, await newProvider(issuer.url), change)).toEqual(signedIn)
})

test.each<[string, (claims: Claims) => Claims]>([
  ['of another issuer', withClaims({ iss: 'https://id.example.com' })],
  ['of an issuer with a slash more', (claims) => ({ ...claims, iss: `${String(claims['iss'])}/` })],
  ['for another client', withClaims({ aud: 'another' })],
  ['for nobody', withClaims({ aud: [] })],
  ['for others, too', withClaims({ aud: ['platform', 'another'] })],
  ['for others, by one of them', withClaims({ aud: ['platform', 'another'], azp: 'another' })],
  ['for the platform, by another party', withClaims({ azp: 'another' })],
  ['of another sign-in', withClaims({ nonce: 'another' })],
  ['of no sign-in', without('nonce')],
  ['that has expired', withTime('exp', -31)],
  ['without an end', without('exp')],
  ['whose end is a text', withClaims({ exp: '9999999999' })],
  ['of the future', withTime('iat', 600)],
  ['that is not yet valid', withTime('nbf', 600)],
  ['of no time', without('iat')],
  ['about nobody', without('sub')],
  ['about somebody without a name', withClaims({ sub: '' })],
  ['about somebody with a number for a name', withClaims({ sub: 42 })],
  ['about somebody with a list for a name', withClaims({ sub: ['somebody'] })],
  ['about somebody with an endless name', withClaims({ sub: 's'.repeat(256) })],
])('a token %s is refused', async (_, change) => {
  const issuer = newIssuer()
  const told = await signInWith(issuer, await newProvider(issuer.url), change)
  expect(told).toEqual(refused)
  expect(issuer.asked('/token')).toBe(1)
})

const issuerForForgeries = newIssuer()
const hmac = (claims: Claims, secret: string, header: Claims = {}) =>
  new SignJWT(claims).setProtectedHeader({ ...header, alg: 'HS256' }).sign(Buffer.from(secret))
const other = signingKey()
const b64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

test.each<[string, (claims: Claims, issuer: HostileIssuer) => Promise<string> | string]>([
  ['without a signature', (claims) => new UnsecuredJWT(claims).encode()],
  ['whose signature was cut off', async (claims, { key }) => (await signed(claims, key)).replace(/[^.]+$/, '')],
  ['of the client secret', (claims) => hmac(claims, clientSecret)],
  ['of the public key as a secret', (claims, { key }) => hmac(claims, JSON.stringify(key.wire), { kid: key.kid })],
  ['of a key that nobody knows', (claims) => signed(claims, other)],
  ['of another key under the name of the right one', (claims, { key }) => signed(claims, { ...other, kid: key.kid })],
  [
    'that brings its key along',
    (claims) => new SignJWT(claims).setProtectedHeader({ alg: 'ES256', jwk: other.wire }).sign(other.privateKey),
  ],
  [
    'that asks for an extension',
    (claims, { key }) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: 'ES256', kid: key.kid, crit: ['b64'], b64: true })
        .sign(key.privateKey),
  ],
  [
    'whose claims were changed',
    async (claims, { key }) => {
      const [header, , signature] = (await signed(claims, key)).split('.')
      return `${header}.${b64({ ...claims, sub: 'another' })}.${signature}`
    },
  ],
  ['of four parts', async (claims, { key }) => `${await signed(claims, key)}.x`],
  ['that is none', () => 'token'],
  ['that is empty', () => ''],
])('a token %s is refused', async (_, forge) => {
  shiftClock(11_000)
  const provider = await newProvider(issuerForForgeries.url)
  const told = await signInWith(issuerForForgeries, provider, undefined, (claims) => forge(claims, issuerForForgeries))
  expect(told).toEqual(refused)
})

test('a token endpoint that answers with the token of somebody else’s sign-in signs nobody in', async () => {
  const issuer = newIssuer()
  const provider = await newProvider(issuer.url)
  let token = ''
  const first = await signInWith(
    issuer,
    provider,
    undefined,
    async (claims) => (token = await signed(claims, issuer.key)),
  )
  expect(first).toEqual(signedIn)
  expect(await signInWith(issuer, provider, undefined, () => token)).toEqual(refused)
})

test('keys that were changed are read again, those that are there are not', async () => {
  const issuer = newIssuer()
  const provider = await newProvider(issuer.url)
  for (let count = 0; count < 3; count++) expect(await signInWith(issuer, provider)).toEqual(signedIn)
  expect([issuer.asked('/jwks'), issuer.asked('/.well-known/openid-configuration')]).toEqual([1, 1])
  issuer.key = signingKey()
  issuer.keys = [issuer.key.wire]
  shiftClock(11_000)
  expect(await signInWith(issuer, provider)).toEqual(signedIn)
  expect(issuer.asked('/jwks')).toBe(2)
  shiftClock(300_000)
  expect(await signInWith(issuer, provider)).toEqual(signedIn)
  expect([issuer.asked('/jwks'), issuer.asked('/.well-known/openid-configuration')]).toEqual([3, 2])
})

test('tokens under unknown keys have the keys read again every ten seconds, and not for each of them', async () => {
  const issuer = newIssuer()
  const provider = await newProvider(issuer.url)
  const forge = () => signInWith(issuer, provider, undefined, (claims) => signed(claims, signingKey()))
  for (let count = 0; count < 10; count++) expect(await forge()).toEqual(refused)
  expect(issuer.asked('/jwks')).toBe(1)
  shiftClock(11_000)
  for (let count = 0; count < 10; count++) await forge()
  expect(issuer.asked('/jwks')).toBe(2)
  expect(await signInWith(issuer, provider)).toEqual(signedIn)
})

test('a key that the issuer does not publish any more is not believed for longer than a few minutes', async () => {
  const issuer = newIssuer()
  const provider = await newProvider(issuer.url)
  const withdrawn = issuer.key
  expect(await signInWith(issuer, provider)).toEqual(signedIn)
  issuer.keys = [signingKey().wire]
  shiftClock(300_001)
  expect(await signInWith(issuer, provider, undefined, (claims) => signed(claims, withdrawn))).toEqual(refused)
})
