// Imported first, because it sets the outbound allowlist, which core reads when it is imported.
import { newIssuer, peer } from '../core/support/oidc-issuers.ts'
import { beforeAll, expect, test } from 'vitest'
import * as ApiToken from '@platform/core/accounts/api-token'
import { verifySession } from '@platform/core/accounts/current-rights'
import * as Session from '@platform/core/accounts/session'
import { now, nowSeconds, shiftClock } from '@platform/core/clock'
import { newId } from '@platform/core/id'
import { testOidc } from '@platform/core/identity-providers/oidc/test'
import { findProvider } from '@platform/core/identity-providers/provider'
import { parseFailures, type ProviderRecord } from '@platform/core/identity-providers/record'
import { handler as auth } from '../../functions/auth.ts'
import { handler } from '../../functions/identity.ts'
import { clientSecret, newProvider, portal, preparePortal } from '../core/support/oidc.ts'
import { Browser } from '../support/browser.ts'
import { BrowserSession, publicPortalHeaders } from '../support/browser-session.ts'
import { advanceClock } from '../support/clock.ts'
import { fastTimers } from '../support/fast-timers.ts'
import { bearer } from '../support/fixtures.ts'
import { signed } from '../support/hostile-issuer.ts'
import { newSigningKey } from '../support/oidc-peer.ts'
import { jsonRequest, send } from '../support/request.ts'

const clientOf = ({ id }: ProviderRecord) => ({
  clientId: 'platform',
  clientSecret,
  redirectUri: `${portal}/api/v1/auth/oidc/${id}/callback`,
})
const roleMappings = [{ group: 'operators', role: 'Operator' as const }]
const settings = { issuer: peer.issuer, clientId: 'platform', scopes: ['profile', 'email', 'groups'] }

let provider: ProviderRecord
beforeAll(async () => {
  await preparePortal()
  provider = await newProvider(peer.issuer, { settings, roleMappings })
  peer.open([clientOf(provider)])
})

const signInPage = /^https:\/\/platform\.example\.com\/sign-in\?/
const authorizeUrl = ({ id }: ProviderRecord, query = '') => `${portal}/api/v1/auth/oidc/${id}/authorize${query}`

async function signIn(signInProvider: ProviderRecord = provider, browser = new Browser(portal, handler)) {
  const page = await browser.follow(
    authorizeUrl(signInProvider, '?returnTo=%2Fclusters%3Fstatus%3DOffline'),
    signInPage,
  )
  const { code, ...parameters } = Object.fromEntries(page.searchParams)
  const { status, json } = await browser.post('/api/v1/auth/oidc/token', { code })
  const headers = { authorization: `Bearer ${json.accessToken}` }
  const profile = status === 200 ? (await send(auth, { target: '/api/v1/auth/me', headers })).json : undefined
  return { status, parameters, browser, json, profile }
}

const manyGroups = Array.from({ length: 600 }, (_, index) => `group-${index}`)

test('issues tokens with the roles of the groups', async () => {
  const claims = { preferred_username: 'ädä', name: 'Ädä Лавлейс', email: 'ädä@bücher.example' }
  peer.present('ada-1', { ...claims, groups: [...manyGroups, 'operators'] })
  const { status, parameters, json, profile } = await signIn()
  expect([status, parameters]).toEqual([200, { returnTo: '/clusters?status=Offline' }])
  expect(json).toMatchObject({ tokenType: 'Bearer', expiresIn: 900 })
  const { organisationId, id: authProvider } = provider
  const { preferred_username: username, name: displayName, email } = claims
  const user = { username, displayName, email, roles: ['Operator'], organisationId, authProvider }
  expect(profile).toMatchObject(user)
  const { refreshToken } = json
  expect((await send(auth, jsonRequest('/api/v1/auth/refresh', { refreshToken }))).status).toBe(200)
})

test('a user whom the provider removes loses sessions and API tokens until the next sign-in', async () => {
  peer.present('ines-1', { preferred_username: 'ines' })
  const { json } = await signIn()
  let { refreshToken } = (await signIn()).json
  const caller = await verifySession(json.accessToken)
  const { token } = await ApiToken.create(caller, { name: 'ci' })
  const renew = async (text: string) => send(auth, jsonRequest('/api/v1/auth/refresh', { refreshToken: text }))
  const callWithToken = () => send(auth, { target: '/api/v1/auth/me', headers: { authorization: `Bearer ${token}` } })
  const uses = () => peer.paths.filter((path) => path === '/token').length
  for (const [minutes, count] of [
    [14, 0],
    [2, 1],
    [14, 0],
    [2, 1],
    [24 * 60, 1],
  ] as const) {
    shiftClock(minutes * 60_000)
    const usesBefore = uses()
    const response = await renew(refreshToken)
    expect([response.status, uses() - usesBefore]).toEqual([200, count])
    refreshToken = response.json.refreshToken
  }
  peer.remove('ines-1')
  shiftClock(16 * 60_000)
  // Simulates a process that died after it sent the refresh token of the provider and before the response arrived.
  refreshToken = (await Session.refresh({ refreshToken })).refreshToken
  expect((await callWithToken()).status).toBe(200)
  shiftClock(16 * 60_000)
  expect((await renew(refreshToken)).status).toBe(200)
  expect((await renew(json.refreshToken)).status).toBe(401)
  expect((await callWithToken()).json.message).toMatch(/does not confirm/)
  peer.present('ines-1', { preferred_username: 'ines' })
  expect((await signIn()).status).toBe(200)
  expect((await callWithToken()).json.username).toBe('ines')
})

test('a code starts one session, in the browser that it was issued to', async () => {
  peer.present('rosa-1', { preferred_username: 'rosa', groups: ['operators'] })
  const browser = new Browser(portal, handler)
  const code = (await browser.follow(authorizeUrl(provider), signInPage)).searchParams.get('code')
  const [page, other] = [new BrowserSession(publicPortalHeaders), new BrowserSession(publicPortalHeaders)]
  for (const [name, value] of browser.jar.get(portal) ?? []) page.cookies.set(name, value)
  for (const [session, status] of [
    [other, 401],
    [page, 200],
    [page, 401],
  ] as const) {
    const response = await session.post(auth, '/api/v1/auth/session', { code })
    expect([response.status, response.cookies.length]).toEqual([status, status === 200 ? 2 : 0])
  }
  const { json } = await page.send(auth, { target: '/api/v1/auth/me' })
  expect(json).toMatchObject({ username: 'rosa', roles: ['Operator'] })
})

test('completes the sign-ins of several tabs in any order, and a used callback only leads to the page of its tab', async () => {
  peer.present('edith-1', { preferred_username: 'edith', groups: ['operators'] })
  const browser = new Browser(portal, handler)
  const starts: [page: string, location: string][] = []
  for (const page of ['/jobs', '/clusters?status=Offline', '/modules']) {
    const target = authorizeUrl(provider, `?returnTo=${encodeURIComponent(page)}`).slice(portal.length)
    starts.push([page, (await browser.send({ target })).headers['location'] ?? ''])
  }
  for (const [page, location] of starts.toReversed()) {
    const { code, returnTo } = Object.fromEntries((await browser.follow(location, signInPage)).searchParams)
    expect(returnTo).toBe(page)
    expect((await browser.post('/api/v1/auth/oidc/token', { code })).status).toBe(200)
  }
  const callback = browser.visited.findLast(({ pathname }) => pathname.endsWith('/callback'))
  const traceId = expect.any(String)
  for (const each of [browser, new Browser(portal, handler)]) {
    const { searchParams } = await each.follow(String(callback), signInPage)
    expect(Object.fromEntries(searchParams)).toEqual({ error: 'sign_in_expired', traceId, returnTo: '/jobs' })
  }
})

test('redirects to the provider with state, nonce and challenge of 256 bits, and no secret', async () => {
  const browser = new Browser(portal, handler)
  const response = await browser.send({ target: `/api/v1/auth/oidc/${provider.id}/authorize` })
  const location = new URL(response.headers['location'] ?? '')
  const { state, nonce, code_challenge: challenge, ...rest } = Object.fromEntries(location.searchParams)
  expect(response.status).toBe(302)
  expect(response.headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  for (const value of [state, nonce, challenge]) expect(value).toMatch(/^[\w-]{43}$/)
  expect(new Set([state, nonce, challenge]).size).toBe(3)
  expect(rest).toEqual({
    client_id: 'platform',
    response_type: 'code',
    redirect_uri: clientOf(provider).redirectUri,
    scope: 'openid profile email groups',
    code_challenge_method: 'S256',
  })
  expect(response.cookies).toEqual([
    expect.stringMatching(
      /^__Host-plat_sign_in_[\w-]{21}=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=600$/,
    ),
  ])
})

test('requests a refresh token by default, if the provider supports it', async () => {
  const { id } = await newProvider(peer.issuer, { settings: { issuer: peer.issuer, clientId: 'platform' } })
  const { headers } = await new Browser(portal, handler).send({ target: `/api/v1/auth/oidc/${id}/authorize` })
  const scope = new URL(headers['location'] ?? '').searchParams.get('scope')
  expect(scope).toBe('openid profile email offline_access')
})

test('no URL in the browser contains a token or secret', async () => {
  peer.present('mary-1', { preferred_username: 'mary' })
  const browser = new Browser(portal, handler)
  const { json } = await signIn(provider, browser)
  const addresses = browser.visited.map(String).join('\n')
  for (const secret of [json.accessToken, json.refreshToken, clientSecret]) expect(addresses).not.toContain(secret)
})

test('accepts rotated keys of the provider, and rejects a repeated callback', async () => {
  peer.present('joan-1', { preferred_username: 'joan' })
  expect((await signIn()).status).toBe(200)
  shiftClock(11_000)
  peer.open([clientOf(provider)], [newSigningKey(), newSigningKey()])
  const { status, browser } = await signIn()
  expect(status).toBe(200)
  const callback = browser.visited.find(({ pathname }) => pathname.endsWith('/callback'))
  const { searchParams } = await browser.follow(String(callback), signInPage)
  expect(searchParams.get('error')).toBe('sign_in_expired')
})

test('supports a secret in the body and claims in the token', async () => {
  const other = await newProvider(peer.issuer, { settings: { ...settings, usernameClaim: 'groups' }, roleMappings })
  peer.open([{ ...clientOf(other), method: 'client_secret_post' }], undefined, false)
  peer.present('emmy-1', { preferred_username: 'x', email: 'emmy@example.com', groups: ['operators'] })
  peer.paths.length = 0
  const { status, profile } = await signIn(other)
  expect([status, profile.username, profile.roles]).toEqual([200, 'emmy@example.com', ['Operator']])
  expect(peer.paths).not.toContain('/me')
  peer.open([clientOf(provider)])
})

test('reports a denial at the provider without its text', async () => {
  peer.present('')
  const { searchParams } = await new Browser(portal, handler).follow(authorizeUrl(provider), signInPage)
  const traceId = expect.stringMatching(/^[0-9a-f]{32}$/)
  expect(Object.fromEntries(searchParams)).toEqual({ error: 'access_denied', traceId })
})

const unsafeUrls = [
  'https://evil.example',
  'http:evil.example',
  'javascript:alert(1)',
  'data:text/html,x',
  '//evil.example',
  '/\\evil.example',
  '\\\\evil.example',
  '/%2fevil.example',
  '/%5cevil.example',
  '/%252fevil.example',
  '/clusters//evil.example',
  '/.//evil.example',
  '/../evil',
  '/clusters/..//evil.example',
  '/\t/evil.example',
  '\t//evil.example',
  ' //evil.example',
  '/\r\nlocation: https://evil.example',
  '/a\u0000b',
  '/a\u2028b',
  '/@evil.example',
  '@evil.example',
  'user:password@evil.example',
  '/:80',
  '/;/evil.example',
  '/\u3002evil.example',
  '/<script>',
  '/"onload=',
  '?',
  'clusters',
  '',
]

test.each(unsafeUrls)('rejects the return path %j', async (returnTo) => {
  const { id } = await newProvider('')
  const target = `/api/v1/auth/oidc/${id}/authorize?returnTo=${encodeURIComponent(returnTo)}`
  const { status, json, headers, cookies, text } = await send(handler, { target })
  expect([status, json.error, headers['location'], cookies]).toEqual([400, 'validation_failed', undefined, []])
  if (returnTo.length > 3) expect(text).not.toContain(returnTo)
})

const issuer = newIssuer()

test.each(['/', '/clusters/clus_01?tab=nodes&next=//x', '/jobs?from=%2F%2Fx#top', '/modules/hello/', '/#/x'])(
  'returns to the portal path %s',
  async (returnTo) => {
    const { id } = await newProvider(issuer.url)
    const browser = new Browser(portal, handler)
    const query = new URLSearchParams({ returnTo }).toString()
    const { headers } = await browser.send({ target: `/api/v1/auth/oidc/${id}/authorize?${query}` })
    const { state = '', nonce = '' } = Object.fromEntries(new URL(headers['location'] ?? '').searchParams)
    issuer.token = () => signed(issuer.claims('platform', nonce, nowSeconds()), issuer.key)
    const parameters = new URLSearchParams({ state, code: 'code', iss: issuer.url, session_state: 'x', any: 'other' })
    const response = await browser.send({ target: `/api/v1/auth/oidc/${id}/callback?${parameters.toString()}` })
    const page = new URL(response.headers['location'] ?? '')
    expect([response.status, page.origin, page.pathname]).toEqual([302, portal, '/sign-in'])
    expect(Object.fromEntries(page.searchParams)).toEqual({ code: expect.any(String), returnTo })
  },
)

const names = ['state', 'code', 'iss', 'error', 'error_description', 'session_state', 'returnTo', 'redirect_uri']
const hostileTexts = ['//evil.example', '<script>alert(1)</script>', '"\r\nlocation: //evil.example', '&error=x#']

test.each(names.flatMap((name) => hostileTexts.map((value) => [name, value] as const)))(
  'redirects a callback with the %s %j to the sign-in page without repeating it',
  async (name, value) => {
    const { id } = await newProvider(issuer.url)
    const target = `/api/v1/auth/oidc/${id}/callback?${new URLSearchParams({ [name]: value }).toString()}`
    const { status, headers, text } = await send(handler, { target })
    const page = new URL(headers['location'] ?? '')
    expect([status, `${page.origin}${page.pathname}`, text]).toEqual([302, `${portal}/sign-in`, ''])
    const expected = { error: 'sign_in_expired', traceId: headers['x-trace-id'] }
    expect(Object.fromEntries(page.searchParams)).toEqual(expected)
  },
)

test('rejects long and repeated callback parameters without a redirect', async () => {
  const { id } = await newProvider(issuer.url)
  for (const query of [`state=${'x'.repeat(501)}`, 'state=a&state=b']) {
    const { status, json, headers } = await send(handler, { target: `/api/v1/auth/oidc/${id}/callback?${query}` })
    expect([status, json.error, headers['location']]).toEqual([400, 'validation_failed', undefined])
  }
})

const cookieName = `__Host-plat_sign_in_${'0'.repeat(21)}`
test.each(['', cookieName, '=;;=', `${cookieName}=x; ${cookieName}=y`])(
  'rejects an unknown code with the cookie %j',
  async (cookie) => {
    const { status, json } = await send(handler, jsonRequest('/api/v1/auth/oidc/token', { code: 'x' }, { cookie }))
    expect([status, json.error]).toEqual([401, 'sign_in_code_invalid'])
  },
)

test('a provider test detects a wrong secret and clock', async () => {
  const testedProvider = await newProvider(peer.issuer)
  peer.open([clientOf(testedProvider)])
  advanceClock(Date.now() - now())
  const checks = await testOidc(testedProvider, { clientSecret })
  const names = ['discovery', 'issuer', 'endpoints', 'algorithms', 'keys', 'client', 'clock']
  expect(checks.map(({ name, ok }) => [name, ok])).toEqual(names.map((name) => [name, true]))
  for (const secret of [{ clientSecret: 'wrong' }, {}]) {
    const failedChecks = (await testOidc(testedProvider, secret)).filter(({ ok }) => !ok)
    const message = expect.stringMatching(/ invalid_client\. It rejects the client or its secret/)
    expect(failedChecks).toMatchObject([{ name: 'client', message }])
  }
  advanceClock(-90_000)
  const failedChecks = (await testOidc(testedProvider, { clientSecret })).filter(({ ok }) => !ok)
  expect(failedChecks).toMatchObject([
    { name: 'clock', message: expect.stringMatching(/clock is \d+ seconds ahead of/) },
  ])
})

test('shows administrators why a response is rejected', async () => {
  const record = await newProvider(peer.issuer, { settings })
  peer.open([{ ...clientOf(record), algorithm: 'HS256' }])
  peer.present('hedy-1', { preferred_username: 'hedy' })
  const { message } = (await testOidc(record, { clientSecret })).find(({ name }) => name === 'algorithms') ?? {}
  expect(message).toBe('The issuer can sign ID tokens with ES256. Tokens with HS256 are rejected.')
  const { searchParams } = await new Browser(portal, handler).follow(authorizeUrl(record), signInPage)
  expect(Object.fromEntries(searchParams)).toEqual({ error: 'answer_invalid', traceId: expect.any(String) })
  const headers = await bearer(['PlatformAdmin'], record.organisationId)
  const { json } = await send(handler, { target: '/api/v1/platform/identity/providers', headers })
  const detail = expect.stringMatching(/^The ID token is signed with "HS256", but /)
  expect(json.items[0].lastFailure).toMatchObject({ problem: 'answer_invalid', detail })
})

test('shows administrators that the provider rejects the secret when a session is refreshed', async () => {
  const record = await newProvider(peer.issuer, { settings })
  peer.open([clientOf(record)])
  peer.present('lise-1', { preferred_username: 'lise' })
  const { refreshToken } = (await signIn(record)).json
  peer.open([{ ...clientOf(record), clientSecret: 'a new secret' }])
  advanceClock(16 * 60_000)
  expect((await send(auth, jsonRequest('/api/v1/auth/refresh', { refreshToken }))).status).toBe(200)
  const detail = expect.stringMatching(/^A signed-in user could not be checked\. .* invalid_client\. /)
  expect(parseFailures((await findProvider(record.id))?.failures)).toMatchObject({ answer_invalid: { detail } })
})

test('a hanging provider delays only its own tests', async () => {
  using _ = fastTimers(5000)
  const silentIssuer = newIssuer()
  silentIssuer.overrides.set('/.well-known/openid-configuration', () => new Promise(() => undefined))
  const organisationId = newId('org')
  const { id } = await newProvider(silentIssuer.url, { organisationId })
  const headers = await bearer(['PlatformAdmin'], organisationId)
  const providers = '/api/v1/platform/identity/providers'
  const pending = ['test', 'test', 'test', 'consent', 'consent'].map((action) =>
    send(handler, jsonRequest(`${providers}/${id}/${action}`, {}, headers)),
  )
  const firstResponse = await Promise.race([send(handler, { target: providers, headers }), ...pending])
  expect([firstResponse.status, firstResponse.json.items?.length]).toEqual([200, 1])
  expect((await Promise.all(pending)).map(({ status }) => status)).toEqual([200, 200, 200, 422, 422])
})
