// Imported first, because it sets the outbound allowlist, which core reads when it is imported.
import { newIssuer } from '../../support/oidc-issuers.ts'
import { nowSeconds, shiftClock } from '@platform/core/clock'
import { identityOf, lacksClaims } from '@platform/core/identity-providers/oidc/claims'
import type { ProviderRecord } from '@platform/core/identity-providers/record'
import { SignJWT, UnsecuredJWT } from 'jose'
import { beforeAll, expect, test, vi } from 'vitest'
import { type HostileIssuer, signed, signingKey } from '../../../support/hostile-issuer.ts'
import { readPendingEvents } from '../../support/outbox.ts'
import { clientSecret, newProvider, preparePortal, signInWith } from '../../support/oidc.ts'

beforeAll(preparePortal)

type Claims = Record<string, unknown>
type Forge = (claims: Claims, issuer: HostileIssuer) => Promise<string> | string
const acceptedResult = { code: expect.stringMatching(/^[\w-]{43}$/) }
const rejectedResult = { error: 'answer_invalid', traceId: '' }

async function signIn(change: Claims = {}, forge?: Forge, issuer = newIssuer()) {
  const provider = await newProvider(issuer.url)
  const changeClaims = (claims: Claims) => ({ ...claims, ...change })
  return signInWith(issuer, provider, changeClaims, forge && ((claims) => forge(claims, issuer)))
}

test.each<[string, Claims]>([
  ['valid claims', {}],
  ['several audiences and the client as authorised party', { aud: ['platform', 'x'], azp: 'platform' }],
  ['an issue time half a minute ahead', { iat: nowSeconds() + 30 }],
])('accepts an ID token with %s', async (_, change) => {
  expect(await signIn(change)).toEqual(acceptedResult)
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
  expect(await signIn(change, undefined, sharedIssuer)).toEqual(rejectedResult)
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
  ['with a critical header', (claims, { key }) => withHeader(claims, { kid: key.kid, crit: ['b64'], b64: true }, key)],
  [
    'with changed claims',
    async (claims, { key }) => {
      const [header, , signature] = (await signed(claims, key)).split('.')
      const changedPayload = Buffer.from(JSON.stringify({ ...claims, sub: 'another' })).toString('base64url')
      return `${header}.${changedPayload}.${signature}`
    },
  ],
  ['of four parts', async (claims, { key }) => `${await signed(claims, key)}.x`],
  ['that is not a JWT', () => 'token'],
  ['that is empty', () => ''],
])('rejects an ID token %s', async (_, forge) => {
  shiftClock(11_000)
  expect(await signIn({}, forge, sharedIssuer)).toEqual(rejectedResult)
})

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
test.each<[string, Claims, Forge?]>([
  ['The claim iss of the ID token is "URL/"; expected "URL".', { iss: `${sharedIssuer.url}/` }],
  ['The claim iss of the ID token is "\\u202e', { iss: `\u202e${'\u00e4'.repeat(10_000)}` }],
  ['The claim aud of the ID token is ["a","b"]; expected "platform".', { aud: ['a', 'b'] }],
  ['The claim azp of the ID token is "another"; expected "platform".', { azp: 'another' }],
  ['seconds after the time of the platform.', { iat: nowSeconds() + 1_000_000 }],
  ['seconds before the time of the platform.', { exp: nowSeconds() - 1000 }],
  ['The response is invalid: JWT "exp" (expiration time) claim missing.', { exp: undefined }],
  ['The ID token is signed with "HS256", but the platform', {}, (claims) => hmac(claims, clientSecret)],
  [
    'with "HS512", but the metadata list ["ES256",',
    {},
    (claims) => `${encode({ alg: 'HS512' })}.${encode(claims)}.${'x'.repeat(9)}`,
  ],
  [
    'no applicable keys found. The header of the ID token names the algorithm "ES256" and the key "',
    {},
    (claims) => signed(claims, foreignKey),
  ],
  ['JWT signature verification failed.', {}, (claims, { key }) => signed(claims, { ...foreignKey, kid: key.kid })],
  ['The response is not from a valid OpenID provider.', {}, () => 'c2VjcmV0LXNlY3JldA.c2VjcmV0.c2VjcmV0'],
])('reports a rejected token to administrators, once and without the token: %s', async (text, change, forge) => {
  using output = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  const provider = await newProvider(sharedIssuer.url)
  let token = ''
  const forgeToken: Forge = forge ?? ((claims, { key }) => signed(claims, key))
  const tokenOf = async (claims: Claims) => (token = await forgeToken(claims, sharedIssuer))
  for (const _ of [1, 2])
    expect(await signInWith(sharedIssuer, provider, (claims) => ({ ...claims, ...change }), tokenOf)).toEqual(
      rejectedResult,
    )
  const events = await readPendingEvents(provider, 'identity.provider_failed')
  const detail = expect.stringContaining(text.replaceAll('URL', sharedIssuer.url))
  expect(events.map(({ data }) => data)).toMatchObject([{ problem: 'answer_invalid', detail }])
  const shownText = JSON.stringify(events) + output.mock.calls.join('')
  for (const part of [clientSecret, token, ...token.split('.').slice(1)]) expect(shownText).not.toContain(part)
  expect(JSON.stringify(events)).not.toMatch(/secret-secret|[^ -~]/)
})

test.each<[string, Claims, (() => undefined)?]>([
  ['another nonce', { nonce: 'another' }],
  ['an empty nonce', { nonce: '' }],
  ['a number as nonce', { nonce: 7 }],
  ['no nonce', { nonce: undefined }],
  ['no ID token', {}, () => undefined],
])('does not report %s, because the browser may have changed the request', async (_, change, noToken) => {
  const provider = await newProvider(sharedIssuer.url)
  expect(await signInWith(sharedIssuer, provider, (claims) => ({ ...claims, ...change }), noToken)).toEqual(
    rejectedResult,
  )
  expect(await readPendingEvents(provider, 'identity.provider_failed')).toEqual([])
})

test('rejects the ID token of another sign-in', async () => {
  const issuer = newIssuer()
  let token = ''
  expect(await signIn({}, async (claims) => (token = await signed(claims, issuer.key)), issuer)).toEqual(acceptedResult)
  expect(await signIn({}, () => token, issuer)).toEqual(rejectedResult)
})

test('reloads keys for an unknown key id, and all metadata after five minutes', async () => {
  const issuer = newIssuer()
  const provider = await newProvider(issuer.url)
  const requestCounts = () => [issuer.countRequests('/jwks'), issuer.countRequests('/.well-known/openid-configuration')]
  for (let count = 0; count < 3; count++) expect(await signInWith(issuer, provider)).toEqual(acceptedResult)
  expect(requestCounts()).toEqual([1, 1])
  const revokedKey = issuer.key
  issuer.key = signingKey()
  issuer.keys = [issuer.key.wire]
  shiftClock(11_000)
  expect(await signInWith(issuer, provider)).toEqual(acceptedResult)
  expect(requestCounts()).toEqual([2, 1])
  shiftClock(300_001)
  expect(await signInWith(issuer, provider, undefined, (claims) => signed(claims, revokedKey))).toEqual(rejectedResult)
  expect(await signInWith(issuer, provider)).toEqual(acceptedResult)
  expect(requestCounts()).toEqual([3, 2])
})

test('reloads keys for unknown key ids at most every ten seconds', async () => {
  const issuer = newIssuer()
  const provider = await newProvider(issuer.url)
  const forge = () => signInWith(issuer, provider, undefined, (claims) => signed(claims, signingKey()))
  for (let count = 0; count < 5; count++) expect(await forge()).toEqual(rejectedResult)
  expect(issuer.countRequests('/jwks')).toBe(1)
  shiftClock(11_000)
  for (let count = 0; count < 5; count++) await forge()
  expect(issuer.countRequests('/jwks')).toBe(2)
  expect(await signInWith(issuer, provider)).toEqual(acceptedResult)
})

const provider = (settings: ProviderRecord['settings'] = {}, hasRoles = true) =>
  ({ settings, roleMappings: hasRoles ? [{ group: 'ops', role: 'Operator' }] : [] }) as unknown as ProviderRecord

test.each([
  [{ sub: 's', preferred_username: 'ada', email: 'ada@example.com' }, {}, 'ada'],
  [{ sub: 's', email: 'ada@example.com' }, {}, 'ada@example.com'],
  [{ sub: 's' }, {}, 's'],
  [{ sub: 's', preferred_username: '', email: 7 }, {}, 's'],
  [{ sub: 's', preferred_username: 'ada', upn: 'lovelace' }, { usernameClaim: 'upn' }, 'lovelace'],
  [{ sub: 's', preferred_username: 'ada' }, { usernameClaim: 'upn' }, 's'],
  [{ sub: 's', mail: 'ada@example.com' }, { emailClaim: 'mail' }, 'ada@example.com'],
])('derives the username from claims %j and settings %j: %s', (claims, settings, username) => {
  expect(identityOf(provider(settings), claims)?.username).toBe(username)
})

const manyObjects = Array.from({ length: 10_000 }, () => ({}))
const invalidGroups = [undefined, null, 0, 1e308, true, {}, { sub: 'x' }, [], [[['ops']]], ['a', null], manyObjects]

test.each(invalidGroups)('ignores claims of an invalid type (%#)', (value) => {
  const claims = { sub: 's', preferred_username: value, email: value, groups: value }
  expect(identityOf(provider(), claims)).toMatchObject({ subject: 's', username: 's', email: '' })
})

test.each([...invalidGroups, '', 's'.repeat(256)])('rejects an invalid subject (%#)', (sub) => {
  expect(identityOf(provider(), { sub, preferred_username: 'ada' })).toBeUndefined()
})

test('converts names to one short line of well-formed text', () => {
  const nameOf = (name: string) => identityOf(provider(), { sub: 's', preferred_username: name })?.username ?? ''
  expect(nameOf('  a\u0000d\r\na\u2028\u001b[31m ')).toBe('ada[31m')
  expect(nameOf('\ud800ada').isWellFormed()).toBe(true)
  expect(nameOf('😀'.repeat(400_000)).length).toBeLessThanOrEqual(254)
  expect(nameOf('😀'.repeat(400_000)).isWellFormed()).toBe(true)
})

const manyGroups = Array.from({ length: 20_000 }, (_, index) => `group-${index}`)

test.each([
  [['ops', 'dev'], 'ops'],
  ['ops', 'ops'],
  [['ops', 'ops', 7, null, ['dev'], { a: 1 }], 'ops'],
  [['x'.repeat(501), 'ops'], 'ops'],
  [{ ops: true }, ''],
  [manyGroups, ''],
  [[...manyGroups, 'ops'], 'ops'],
])('reads the mapped groups of any number of texts (%#)', (groups, expected) => {
  const identity = identityOf(provider(), { sub: 's', groups })
  expect([identity?.groups.join(' '), identity?.missingGroups]).toEqual([expected, undefined])
})

test.each<[Claims, boolean]>([
  [{ _claim_names: { groups: 'src1' }, _claim_sources: { src1: { endpoint: 'https://graph.example.com' } } }, true],
  [{ hasgroups: true }, true],
  [{ hasgroups: 'true', groups: ['ops'] }, true],
  [{ _claim_names: { address: 'src1' } }, false],
  [{ _claim_names: 'groups', hasgroups: false }, false],
  [{}, false],
])('detects that the claims %j lack groups: %s', (claims, isIncomplete) => {
  const isMissing = (record: ProviderRecord) => identityOf(record, { sub: 's', ...claims })?.missingGroups !== undefined
  expect(isMissing(provider())).toBe(isIncomplete)
  expect([isMissing(provider({}, false)), isMissing(provider({ groupsClaim: 'roles' }))]).toEqual([false, false])
})

test('rejects a first sign-in with an incomplete list of groups', async () => {
  const issuer = newIssuer()
  const record = await newProvider(issuer.url, { roleMappings: [{ group: 'ops', role: 'Operator' }] })
  const claims = (claims: Claims) => ({ ...claims, hasgroups: true })
  expect(await signInWith(issuer, record, claims)).toEqual({ error: 'groups_incomplete', traceId: '' })
})

test.each(['constructor', 'toString', 'hasOwnProperty'])(
  'does not read the inherited property %s as a claim',
  (name) => {
    const settings = provider({ usernameClaim: name, emailClaim: name, groupsClaim: name })
    expect(identityOf(settings, { sub: 's' })).toMatchObject({ subject: 's', username: 's', email: '', groups: [] })
    expect(lacksClaims(settings, { sub: 's' })).toBe(true)
  },
)

test('requires userinfo only if a claim in use is missing', () => {
  const claims = { sub: 's', preferred_username: 'ada', email: 'ada@example.com' }
  expect(lacksClaims(provider({}, false), claims)).toBe(false)
  expect(lacksClaims(provider(), claims)).toBe(true)
  expect(lacksClaims(provider(), { ...claims, groups: [] })).toBe(false)
  expect(lacksClaims(provider(), { ...claims, email: undefined, groups: [] })).toBe(true)
})
