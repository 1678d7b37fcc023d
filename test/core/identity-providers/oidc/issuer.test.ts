// First: it sets what the platform may reach, which core reads when it is imported.
import { unreachableIssuer, newIssuer } from '../../support/oidc-issuers.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nowSeconds, shiftClock } from '@platform/core/clock'
import * as Oidc from '@platform/core/identity-providers/oidc/oidc'
import { testOidc } from '@platform/core/identity-providers/oidc/test'
import { type HostileIssuer, json, signed } from '../../../support/hostile-issuer.ts'
import { type Respond } from '../../../support/http-server.ts'
import {
  clientSecret,
  completeSignIn,
  startSignIn,
  newProvider,
  portal,
  validCallback,
  preparePortal,
  signInWith,
} from '../../support/oidc.ts'
import { fastTimers } from '../../../support/fast-timers.ts'

beforeAll(preparePortal)
// The last word: whatever an issuer says, nobody was led to where nobody may come.
afterAll(() => expect(unreachableIssuer.server.requests).toEqual([]))

const discovery = '/.well-known/openid-configuration'

/** What the sign-in page is told of a sign-in that ends before it has left. */
async function beginWith(issuer: string): Promise<Record<string, string>> {
  const provider = await newProvider(issuer)
  const { location, browser } = await Oidc.startSignIn(provider.id, {})
  expect(browser).toBeUndefined()
  expect(location.startsWith(`${portal}/sign-in?`)).toBe(true)
  return Object.fromEntries(new URL(location).searchParams)
}

const inward = () => `http://localhost:${new URL(unreachableIssuer.url).port}`

test.each([
  () => unreachableIssuer.url,
  () => unreachableIssuer.url.replace('http:', 'https:'),
  inward,
  () => inward().replace('http:', 'https:'),
  () => `https://2130706433:${new URL(unreachableIssuer.url).port}`,
  () => 'https://10.0.0.1',
  () => 'https://169.254.169.254/latest',
  () => 'https://[::1]',
  () => 'https://[::ffff:127.0.0.1]',
  () => 'http://id.example.com',
  () => 'ftp://id.example.com',
  () => 'https://user:password@id.example.com',
  () => 'no address',
  () => '',
])('an issuer whose address leads inward, or is none, is not called (%#)', async (address) => {
  expect(await beginWith(address())).toEqual({ error: 'provider_unreachable', traceId: '' })
})

const html: Respond = () => ({ status: 200, headers: { 'content-type': 'text/html' }, body: '<h1>Sign in</h1>' })
const huge: Respond = () => json(`{"issuer":"${'x'.repeat(10_000_000)}"}`)
const redirecting: Respond = () => ({ status: 307, headers: { location: `${unreachableIssuer.url}/` } })
const hanging: Respond = () => undefined
const dripping: Respond = (_, outgoing) => {
  const timer = setInterval(() => outgoing.write(' '), 50)
  outgoing.on('close', () => clearInterval(timer))
  return undefined
}
const strange: [string, Respond, string][] = [
  ['serves a page', html, 'answer_invalid'],
  ['serves 10 MB', huge, 'answer_invalid'],
  ['redirects inward', redirecting, 'answer_invalid'],
  ['is broken', () => ({ status: 500 }), 'answer_invalid'],
  ['says nothing', () => ({ status: 204 }), 'answer_invalid'],
  ['says null', () => json('null'), 'answer_invalid'],
  ['says a list', () => json([]), 'answer_invalid'],
  ['says half of it', () => json('{"issuer":'), 'answer_invalid'],
  [
    'asks for a password',
    () => ({ status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } }),
    'answer_invalid',
  ],
  ['hangs up', (_, outgoing) => void outgoing.destroy(), 'provider_unreachable'],
]

test.each(strange)('an issuer that %s when it is asked what it is signs nobody in', async (_, answer, error) => {
  const issuer = newIssuer()
  issuer.instead.set(discovery, answer)
  expect(await beginWith(issuer.url)).toEqual({ error, traceId: '' })
})

/** How a sign-in ends whose issuer answers strangely at one of its addresses. */
async function endOf(issuer: HostileIssuer, path: string, answer: Respond): Promise<Record<string, string>> {
  issuer.metadata = { userinfo_endpoint: `${issuer.url}/userinfo` }
  issuer.instead.set(path, answer)
  return signInWith(issuer, await newProvider(issuer.url))
}

const reused = newIssuer()
const later = ['/token', '/jwks', '/userinfo']
test.each(later.flatMap((path) => strange.map(([name, answer]) => [path, name, answer] as const)))(
  'an issuer whose %s %s signs nobody in',
  async (path, _, answer) => {
    reused.instead.clear()
    expect(await endOf(reused, path, answer)).toEqual({
      error: expect.stringMatching(/^(?:answer_invalid|provider_unreachable)$/),
      traceId: '',
    })
    expect(reused.asked(path)).toBeGreaterThan(0)
  },
)

test('an issuer that hangs or drips at any of its addresses is given up after five seconds', async () => {
  using patience = fastTimers(5000)
  const startedAtMs = performance.now()
  const cases = [discovery, ...later].flatMap((path) => [hanging, dripping].map((answer) => ({ path, answer })))
  const ends = cases.map(async ({ path, answer }) => {
    const issuer = newIssuer()
    if (path !== discovery) return endOf(issuer, path, answer)
    issuer.instead.set(path, answer)
    return beginWith(issuer.url)
  })
  for (const end of await Promise.all(ends)) expect(end).toEqual({ error: 'provider_unreachable', traceId: '' })
  expect(performance.now() - startedAtMs).toBeLessThan(patience.ms + 3000)
})

test('an issuer that does not answer is not asked at every click', async () => {
  const issuer = newIssuer()
  issuer.instead.set(discovery, () => ({ status: 500 }))
  const provider = await newProvider(issuer.url)
  await Promise.all([1, 2, 3].map(() => Oidc.startSignIn(provider.id, {})))
  for (let count = 0; count < 5; count++) await Oidc.startSignIn(provider.id, {})
  expect(issuer.asked(discovery)).toBe(1)
  issuer.instead.clear()
  shiftClock(5001)
  expect((await startSignIn(provider)).address.origin).toBe(issuer.url)
})

test.each<[string, (issuer: HostileIssuer) => Record<string, unknown>, string]>([
  ['of another issuer', () => ({ issuer: 'https://id.example.com' }), 'answer_invalid'],
  ['of an issuer below', ({ url }) => ({ issuer: `${url}/below` }), 'answer_invalid'],
  ['of no issuer', () => ({ issuer: undefined }), 'answer_invalid'],
  ['of a numbered issuer', () => ({ issuer: 7 }), 'answer_invalid'],
  ['that send people inward', () => ({ authorization_endpoint: unreachableIssuer.url }), 'provider_unreachable'],
  ['that run a script', () => ({ authorization_endpoint: 'javascript:alert(1)' }), 'provider_unreachable'],
  ['that send people to a document', () => ({ authorization_endpoint: 'data:text/html,x' }), 'provider_unreachable'],
  ['that send people nowhere', () => ({ authorization_endpoint: undefined }), 'answer_invalid'],
  ['that send people to a list', () => ({ authorization_endpoint: [unreachableIssuer.url] }), 'provider_unreachable'],
  ['that send people far', ({ url }) => ({ authorization_endpoint: `${url}/${'x'.repeat(7000)}` }), 'answer_invalid'],
])('metadata %s are refused before anybody is sent anywhere', async (_, metadata, error) => {
  const issuer = newIssuer()
  issuer.metadata = metadata(issuer)
  const { location } = await Oidc.startSignIn((await newProvider(issuer.url)).id, {})
  expect(Object.fromEntries(new URL(location).searchParams)).toEqual({ error, traceId: '' })
})

test.each(['token_endpoint', 'jwks_uri', 'userinfo_endpoint'])(
  'metadata whose %s leads inward are not followed',
  async (name) => {
    const issuer = newIssuer()
    for (const address of [unreachableIssuer.url, inward(), 'file:///etc/passwd', 'https://10.0.0.1/', 5, null]) {
      issuer.metadata = { [name]: address }
      const told = await signInWith(issuer, await newProvider(issuer.url))
      expect([address, told['error']]).toEqual([
        address,
        expect.stringMatching(/^(?:provider_unreachable|answer_invalid)$/),
      ])
      shiftClock(5001)
    }
  },
)

test('metadata with a megabyte of nothing behind them are not read', async () => {
  const issuer = newIssuer()
  issuer.instead.set(discovery, () => json(JSON.stringify(issuer.usual()).padEnd(1024 * 1024 + 1)))
  expect(await beginWith(issuer.url)).toEqual({ error: 'answer_invalid', traceId: '' })
})

test('an issuer that is named by the address of its metadata is another one', async () => {
  const issuer = newIssuer()
  expect(await beginWith(`${issuer.url}${discovery}`)).toEqual({ error: 'answer_invalid', traceId: '' })
  expect(issuer.asked(discovery)).toBe(1)
})

test('a cloud directory that would sign in people of any tenant is refused', async () => {
  const issuer = newIssuer()
  issuer.instead.set(`/common/v2.0${discovery}`, () =>
    json({ issuer: `${issuer.url}/{tenantid}/v2.0`, authorization_endpoint: `${issuer.url}/authorize` }),
  )
  const settings = { authorityHost: issuer.url, tenantId: 'common', clientId: 'platform' }
  const provider = await newProvider('', { type: 'CloudDirectory', settings })
  const { location } = await Oidc.startSignIn(provider.id, {})
  expect(new URL(location).searchParams.get('error')).toBe('answer_invalid')
})

test.each([
  ['CloudDirectory' as const, '/tenant-1/v2.0', (url: string) => ({ authorityHost: url, tenantId: 'tenant-1' })],
  ['OpenSourceIdp' as const, '/realms/acme', (url: string) => ({ baseUrl: `${url}/`, realm: 'acme' })],
])('a provider of the type %s is asked as the issuer that its settings name', async (type, path, settings) => {
  const issuer = newIssuer()
  const own = { issuer: `${issuer.url}${path}`, authorization_endpoint: `${issuer.url}/authorize` }
  const more = { token_endpoint: `${issuer.url}/token`, jwks_uri: `${issuer.url}/jwks` }
  issuer.instead.set(`${path}${discovery}`, () =>
    json({ ...own, ...more, id_token_signing_alg_values_supported: ['ES256'] }),
  )
  const provider = await newProvider('', { type, settings: { ...settings(issuer.url), clientId: 'platform' } })
  const left = await startSignIn(provider)
  issuer.token = () => signed({ ...issuer.claims('platform', left.nonce, nowSeconds()), iss: own.issuer }, issuer.key)
  const answer = { ...validCallback(issuer, left), iss: own.issuer }
  expect(await completeSignIn(provider.id, answer, left.browser)).toEqual({ code: expect.any(String) })
})

test('a try of a provider that does not work tells why, and nothing of what it met', async () => {
  const issuer = newIssuer()
  const cases: [Record<string, unknown>, string][] = [
    [{ issuer: 'https://id.example.com' }, 'discovery'],
    [{ token_endpoint: undefined }, 'endpoints'],
    [{ token_endpoint: unreachableIssuer.url }, 'endpoints'],
    [{ jwks_uri: `${issuer.url}/nothing` }, 'keys'],
  ]
  for (const [metadata, name] of cases) {
    issuer.metadata = metadata
    const checks = await testOidc(await newProvider(issuer.url), { clientSecret })
    const first = checks.find(({ ok }) => !ok)
    expect([metadata, first?.name]).toEqual([metadata, name])
    expect(JSON.stringify(checks)).not.toMatch(/127\.0\.0\.1|localhost|example\.com/)
  }
  for (const address of [unreachableIssuer.url, inward(), 'https://10.0.0.1']) {
    const [only, ...others] = await testOidc(await newProvider(address), { clientSecret })
    expect([only?.name, only?.ok, others]).toEqual(['discovery', false, []])
  }
})
