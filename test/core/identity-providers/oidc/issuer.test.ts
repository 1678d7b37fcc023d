// Imported first, because it sets the outbound allowlist, which core reads when it is imported.
import { newIssuer, unreachableIssuer } from '../../support/oidc-issuers.ts'
import { now, nowSeconds, shiftClock } from '@platform/core/clock'
import * as Oidc from '@platform/core/identity-providers/oidc/oidc'
import { testOidc } from '@platform/core/identity-providers/oidc/test'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fastTimers } from '../../../support/fast-timers.ts'
import { type HostileIssuer, json, signed } from '../../../support/hostile-issuer.ts'
import type { Respond } from '../../../support/http-server.ts'
import { readPendingEvents } from '../../support/outbox.ts'
import { clientSecret, completeSignIn, newProvider, portal, preparePortal } from '../../support/oidc.ts'
import { signInWith, startSignIn, validCallback } from '../../support/oidc.ts'

beforeAll(preparePortal)
// No test may cause a request to an address that is not on the allowlist.
afterAll(() => expect(unreachableIssuer.server.requests).toEqual([]))

const discovery = '/.well-known/openid-configuration'
const failure = (error: string) => ({ error, traceId: '' })
const anyFailure = failure(expect.stringMatching(/^(?:answer_invalid|provider_unreachable)$/))

async function startFailure(issuer: string, fields = {}): Promise<Record<string, string>> {
  const provider = await newProvider(issuer, fields)
  const { location, browser } = await Oidc.startSignIn(provider.id, {})
  expect(browser).toBeUndefined()
  expect(location.startsWith(`${portal}/sign-in?`)).toBe(true)
  const parameters = Object.fromEntries(new URL(location).searchParams)
  const problem = parameters['error'] === 'answer_invalid' ? 'answer_invalid' : 'unreachable'
  const events = await readPendingEvents(provider, 'identity.provider_failed')
  expect(events.map(({ data }) => data)).toMatchObject([{ problem, detail: expect.stringMatching(/\.$/) }])
  return parameters
}

const privateUrl = unreachableIssuer.url
const localUrl = `http://localhost:${new URL(privateUrl).port}`

test.each([
  privateUrl,
  privateUrl.replace('http:', 'https:'),
  localUrl,
  localUrl.replace('http:', 'https:'),
  `https://2130706433:${new URL(privateUrl).port}`,
  'https://10.0.0.1',
  'https://169.254.169.254/latest',
  'https://[::1]',
  'https://[::ffff:127.0.0.1]',
  'http://id.example.com',
  'ftp://id.example.com',
  'https://user:password@id.example.com',
  'no address',
  '',
])('does not call an issuer with a private or invalid URL (%#)', async (url) => {
  expect(await startFailure(url)).toEqual(failure('provider_unreachable'))
})

const noResponse: Respond = () => undefined
const slowResponse: Respond = (_, outgoing) => {
  const timer = setInterval(() => outgoing.write(' '), 50)
  outgoing.on('close', () => clearInterval(timer))
  return undefined
}
const invalidResponses: [string, Respond, string][] = [
  [
    'an HTML page',
    () => ({ status: 200, headers: { 'content-type': 'text/html' }, body: '<h1>Sign in</h1>' }),
    'answer_invalid',
  ],
  ['10 MB', () => json(`{"issuer":"${'x'.repeat(10_000_000)}"}`), 'answer_invalid'],
  ['a redirect to a private URL', () => ({ status: 307, headers: { location: `${privateUrl}/` } }), 'answer_invalid'],
  ['status 500', () => ({ status: 500 }), 'answer_invalid'],
  ['status 204', () => ({ status: 204 }), 'answer_invalid'],
  ['null', () => json('null'), 'answer_invalid'],
  ['a list', () => json([]), 'answer_invalid'],
  ['truncated JSON', () => json('{"issuer":'), 'answer_invalid'],
  ['status 401', () => ({ status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } }), 'answer_invalid'],
  ['a closed connection', (_, outgoing) => void outgoing.destroy(), 'provider_unreachable'],
]

test.each(invalidResponses)('rejects %s as metadata', async (_, respond, error) => {
  const issuer = newIssuer()
  issuer.overrides.set(discovery, respond)
  expect(await startFailure(issuer.url)).toEqual(failure(error))
})

async function signInWithResponse(issuer: HostileIssuer, path: string, respond: Respond) {
  issuer.metadata = { userinfo_endpoint: `${issuer.url}/userinfo` }
  issuer.overrides.set(path, respond)
  return signInWith(issuer, await newProvider(issuer.url))
}

const sharedIssuer = newIssuer()
const laterPaths = ['/token', '/jwks', '/userinfo']
test.each(laterPaths.flatMap((path) => invalidResponses.map(([name, respond]) => [name, path, respond] as const)))(
  'rejects %s from %s',
  async (_, path, respond) => {
    sharedIssuer.overrides.clear()
    expect(await signInWithResponse(sharedIssuer, path, respond)).toEqual(anyFailure)
    expect(sharedIssuer.countRequests(path)).toBeGreaterThan(0)
  },
)

test('stops waiting for a slow response after five seconds', async () => {
  using _ = fastTimers(5000)
  const outcomes = [discovery, ...laterPaths].flatMap((path) =>
    [noResponse, slowResponse].map((respond) => {
      const issuer = newIssuer()
      if (path !== discovery) return signInWithResponse(issuer, path, respond)
      issuer.overrides.set(path, respond)
      return startFailure(issuer.url)
    }),
  )
  for (const outcome of await Promise.all(outcomes)) expect(outcome).toEqual(failure('provider_unreachable'))
})

test('caches a failed discovery for five seconds', async () => {
  const issuer = newIssuer()
  issuer.overrides.set(discovery, () => ({ status: 500 }))
  const provider = await newProvider(issuer.url)
  await Promise.all([1, 2, 3].map(() => Oidc.startSignIn(provider.id, {})))
  for (let count = 0; count < 5; count++) await Oidc.startSignIn(provider.id, {})
  expect(issuer.countRequests(discovery)).toBe(1)
  issuer.overrides.clear()
  shiftClock(5001)
  expect((await startSignIn(provider)).address.origin).toBe(issuer.url)
})

test.each<[object | ((url: string) => object), string]>([
  [{ issuer: 'https://id.example.com' }, 'answer_invalid'],
  [(url) => ({ issuer: `${url}/below` }), 'answer_invalid'],
  [{ issuer: undefined }, 'answer_invalid'],
  [{ issuer: 7 }, 'answer_invalid'],
  [{ authorization_endpoint: privateUrl }, 'provider_unreachable'],
  [{ authorization_endpoint: 'javascript:alert(1)' }, 'provider_unreachable'],
  [{ authorization_endpoint: 'data:text/html,x' }, 'provider_unreachable'],
  [{ authorization_endpoint: undefined }, 'answer_invalid'],
  [{ authorization_endpoint: [privateUrl] }, 'provider_unreachable'],
  [(url) => ({ authorization_endpoint: `${url}/${'x'.repeat(7000)}` }), 'answer_invalid'],
])('rejects metadata with an invalid issuer or authorization endpoint (%#)', async (metadata, error) => {
  const issuer = newIssuer()
  issuer.metadata = { ...(typeof metadata === 'function' ? metadata(issuer.url) : metadata) }
  const { location } = await Oidc.startSignIn((await newProvider(issuer.url)).id, {})
  expect(Object.fromEntries(new URL(location).searchParams)).toEqual(failure(error))
})

test.each(['token_endpoint', 'jwks_uri', 'userinfo_endpoint'])(
  'does not call a private or invalid %s',
  async (name) => {
    const issuer = newIssuer()
    for (const url of [privateUrl, localUrl, 'file:///etc/passwd', 'https://10.0.0.1/', 5, null]) {
      issuer.metadata = { [name]: url }
      expect([url, await signInWith(issuer, await newProvider(issuer.url))]).toEqual([url, anyFailure])
      shiftClock(5001)
    }
  },
)

test('rejects metadata larger than 1 MiB', async () => {
  const issuer = newIssuer()
  issuer.overrides.set(discovery, () => json(JSON.stringify(issuer.defaultMetadata()).padEnd(1024 * 1024 + 1)))
  expect(await startFailure(issuer.url)).toEqual(failure('answer_invalid'))
})

test('rejects the URL of the metadata as the issuer', async () => {
  const issuer = newIssuer()
  expect(await startFailure(`${issuer.url}${discovery}`)).toEqual(failure('answer_invalid'))
  expect(issuer.countRequests(discovery)).toBe(1)
})

test('rejects a cloud directory that accepts users of any tenant', async () => {
  const issuer = newIssuer()
  issuer.overrides.set(`/common/v2.0${discovery}`, () =>
    json({ issuer: `${issuer.url}/{tenantid}/v2.0`, authorization_endpoint: `${issuer.url}/authorize` }),
  )
  const settings = { authorityHost: issuer.url, tenantId: 'common', clientId: 'platform' }
  expect(await startFailure('', { type: 'CloudDirectory', settings })).toEqual(failure('answer_invalid'))
})

test.each([
  ['CloudDirectory' as const, '/tenant-1/v2.0', (url: string) => ({ authorityHost: url, tenantId: 'tenant-1' })],
  ['OpenSourceIdp' as const, '/realms/acme', (url: string) => ({ baseUrl: `${url}/`, realm: 'acme' })],
])('derives the issuer of a %s provider from its settings', async (type, path, settings) => {
  const issuer = newIssuer()
  const iss = `${issuer.url}${path}`
  issuer.overrides.set(`${path}${discovery}`, () => json({ ...issuer.defaultMetadata(), issuer: iss }))
  const provider = await newProvider('', { type, settings: { ...settings(issuer.url), clientId: 'platform' } })
  const signIn = await startSignIn(provider)
  issuer.token = () => signed({ ...issuer.claims('platform', signIn.nonce, nowSeconds()), iss }, issuer.key)
  const callback = { ...validCallback(issuer, signIn), iss }
  expect(await completeSignIn(provider.id, callback, signIn.browser)).toEqual({ code: expect.any(String) })
})

const testedIssuer = newIssuer()
const rejectCode = (timeMs = now()) =>
  testedIssuer.overrides.set('/token', () => {
    const reply = json({ error: 'invalid_grant' }, 400)
    return { ...reply, headers: { ...reply.headers, date: new Date(timeMs).toUTCString() } }
  })
const failedChecks = async (issuer = testedIssuer.url) =>
  (await testOidc(await newProvider(issuer), { clientSecret })).filter(({ ok }) => !ok)

test.each<[unknown, string, string]>([
  [['HS256'], 'algorithms', 'The issuer signs ID tokens with HS256. Configure a public-key algorithm there'],
  [['none', 'HS512', '<b>', 7], 'algorithms', 'with none, HS512. '],
  [[], 'algorithms', 'with no known algorithm. '],
  [['RS256', 'EdDSA'], 'keys', 'The issuer publishes no key for an accepted algorithm.'],
  [undefined, 'keys', 'The issuer publishes no key for an accepted algorithm.'],
])('a provider test rejects the algorithms %j', async (algorithms, name, message) => {
  rejectCode()
  testedIssuer.metadata = { id_token_signing_alg_values_supported: algorithms }
  const [failedCheck] = await failedChecks()
  expect(failedCheck).toMatchObject({ name, message: expect.stringContaining(message) })
})

test.each([
  ['/', '', 'issuer'],
  ['', '/', 'issuer'],
  ['/app', '/app/', 'discovery'],
  ['/app/', '/app', 'discovery'],
])('a provider test names both spellings of an issuer: settings %j, metadata %j', async (configured, named, check) => {
  rejectCode()
  testedIssuer.metadata = { issuer: testedIssuer.url + named }
  testedIssuer.overrides.set(`/app${discovery}`, () =>
    json({ ...testedIssuer.defaultMetadata(), ...testedIssuer.metadata }),
  )
  const text = `The metadata name the issuer ${testedIssuer.url}${named}, the settings ${testedIssuer.url}${configured}.`
  const checks = await failedChecks(testedIssuer.url + configured)
  expect(checks).toMatchObject([{ name: check, message: expect.stringContaining(text) }])
})

test.each([
  [3600, '3600 seconds ahead of'],
  [90, '90 seconds ahead of'],
  [-90, '90 seconds behind'],
  [30, undefined],
  [-30, undefined],
])('a provider test compares the clocks: %d seconds', async (seconds, message) => {
  testedIssuer.metadata = {}
  rejectCode(now() + seconds * 1000)
  const checks = await failedChecks()
  const clock = {
    name: 'clock',
    message: expect.stringMatching(/^The issuer's clock is \d+ seconds (ahead of|behind) /),
  }
  expect(checks).toMatchObject(message === undefined ? [] : [clock])
  const [, difference] = /(\d+) seconds/.exec(checks[0]?.message ?? '') ?? []
  if (message) expect(Math.abs(Number(difference) - Math.abs(seconds))).toBeLessThan(30)
})

test('reports the failed check of a provider test without addresses', async () => {
  const issuer = newIssuer()
  const cases: [Record<string, unknown>, string][] = [
    [{ issuer: 'https://id.example.com' }, 'discovery'],
    [{ token_endpoint: undefined }, 'endpoints'],
    [{ token_endpoint: privateUrl }, 'endpoints'],
    [{ jwks_uri: `${issuer.url}/nothing` }, 'keys'],
  ]
  for (const [metadata, name] of cases) {
    issuer.metadata = metadata
    const checks = await testOidc(await newProvider(issuer.url), { clientSecret })
    expect([metadata, checks.find(({ ok }) => !ok)?.name]).toEqual([metadata, name])
    expect(JSON.stringify(checks)).not.toMatch(/127\.0\.0\.1|localhost|example\.com/)
  }
  for (const url of [privateUrl, localUrl, 'https://10.0.0.1']) {
    const [first, ...others] = await testOidc(await newProvider(url), { clientSecret })
    expect([first?.name, first?.ok, others]).toEqual(['discovery', false, []])
  }
})
