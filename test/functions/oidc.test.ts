// First: it sets what the platform may reach, which core reads when it is imported.
import { peer } from '../core/support/oidc-issuers.ts'
import { beforeAll, expect, test } from 'vitest'
import { projectOrganisation } from '@platform/core/background/projections'
import { shiftClock } from '@platform/core/clock'
import { type ProviderRecord } from '@platform/core/identity-providers/record'
import { handler as auth } from '../../functions/auth.ts'
import { handler } from '../../functions/identity.ts'
import { Browser } from '../support/browser.ts'
import { BrowserSession, publicPortalHeaders } from '../support/browser-session.ts'
import { send } from '../support/request.ts'
import { newSigningKey } from '../support/oidc-peer.ts'
import { clientSecret, newProvider, portal, preparePortal } from '../core/support/oidc.ts'

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
const authorizeAt = ({ id }: ProviderRecord, query = '') => `${portal}/api/v1/auth/oidc/${id}/authorize${query}`

/** Signs in as a person does, from the list of providers to the profile. */
async function signIn(by: ProviderRecord = provider, browser = new Browser(portal, handler)) {
  const page = await browser.follow(authorizeAt(by, '?returnTo=%2Fclusters%3Fstatus%3DOffline'), signInPage)
  const { code, ...told } = Object.fromEntries(page.searchParams)
  const { status, json } = await browser.post('/api/v1/auth/oidc/token', { code })
  if (status !== 200) return { status, told, browser, json, profile: undefined }
  const headers = { authorization: `Bearer ${json.accessToken}` }
  const { json: profile } = await send(auth, { target: '/api/v1/auth/me', headers })
  return { status, told, browser, json, profile }
}

test('whoever a provider signs in gets tokens, and is a user with the roles of its groups', async () => {
  peer.present('ada-1', { preferred_username: 'ada', email: 'ada@example.com', groups: ['operators', 'others'] })
  const { status, told, json, profile } = await signIn()
  expect([status, told]).toEqual([200, { returnTo: '/clusters?status=Offline' }])
  expect(json).toMatchObject({ tokenType: 'Bearer', expiresIn: 900 })
  const { organisationId } = provider
  expect(profile).toMatchObject({ username: 'ada', email: 'ada@example.com', roles: ['Operator'], organisationId })
  expect(profile.authProvider).toBe(provider.id)
  const refreshed = await send(auth, {
    method: 'POST',
    target: '/api/v1/auth/refresh',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ refreshToken: json.refreshToken }),
  })
  expect(refreshed.status).toBe(200)
  await projectOrganisation(organisationId)
})

test('the code that a browser comes back with begins its session, once, and in no other browser', async () => {
  peer.present('rosa-1', { preferred_username: 'rosa', groups: ['operators'] })
  const browser = new Browser(portal, handler)
  const code = (await browser.follow(authorizeAt(provider), signInPage)).searchParams.get('code')
  const pages = [new BrowserSession(publicPortalHeaders), new BrowserSession(publicPortalHeaders)] as const
  for (const [name, value] of browser.jar.get(portal) ?? []) pages[0].cookies.set(name, value)
  const begin = (page: BrowserSession) => page.post(auth, '/api/v1/auth/session', { code })
  for (const [page, status] of [
    [pages[1], 401],
    [pages[0], 200],
    [pages[0], 401],
  ] as const) {
    const answer = await begin(page)
    expect([answer.status, answer.cookies.length]).toEqual([status, status === 200 ? 2 : 0])
  }
  expect((await pages[0].send(auth, { target: '/api/v1/auth/me' })).json).toMatchObject({
    username: 'rosa',
    roles: ['Operator'],
  })
})

test('the address that a browser leaves for holds state, nonce and challenge of 256 bits, and no secret', async () => {
  const browser = new Browser(portal, handler)
  const received = await browser.send({ target: `/api/v1/auth/oidc/${provider.id}/authorize` })
  const address = new URL(received.headers['location'] ?? '')
  const { state, nonce, code_challenge: challenge, ...rest } = Object.fromEntries(address.searchParams)
  expect(received.status).toBe(302)
  expect(received.headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  for (const value of [state, nonce, challenge]) expect(value).toMatch(/^[\w-]{43}$/)
  expect(new Set([state, nonce, challenge]).size).toBe(3)
  expect(rest).toEqual({
    client_id: 'platform',
    response_type: 'code',
    redirect_uri: clientOf(provider).redirectUri,
    scope: 'openid profile email groups',
    code_challenge_method: 'S256',
  })
  expect(received.cookies).toEqual([
    expect.stringMatching(/^__Host-plat_sign_in=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=600$/),
  ])
  expect(received.headers).not.toHaveProperty('set-cookie')
})

test('the browser is led to the provider and back, and meets no token on its way', async () => {
  peer.present('mary-1', { preferred_username: 'mary' })
  const browser = new Browser(portal, handler)
  const { json } = await signIn(provider, browser)
  const addresses = browser.went.map(String).join('\n')
  for (const secret of [json.accessToken, json.refreshToken, clientSecret]) expect(addresses).not.toContain(secret)
})

test('a provider that has changed its keys is believed, and a page that is reloaded is told to begin again', async () => {
  peer.present('joan-1', { preferred_username: 'joan' })
  expect((await signIn()).status).toBe(200)
  shiftClock(11_000)
  peer.open([clientOf(provider)], [newSigningKey(), newSigningKey()])
  const { status, browser } = await signIn()
  expect(status).toBe(200)
  const callback = browser.went.find(({ pathname }) => pathname.endsWith('/callback'))
  const { searchParams } = await browser.follow(String(callback), signInPage)
  expect(searchParams.get('error')).toBe('sign_in_expired')
})

test('a provider that takes the secret in the body, and tells claims in the token, is served as well', async () => {
  const other = await newProvider(peer.issuer, { settings: { ...settings, usernameClaim: 'groups' }, roleMappings })
  peer.open([{ ...clientOf(other), method: 'client_secret_post' }], undefined, false)
  peer.present('emmy-1', { preferred_username: 'x', email: 'emmy@example.com', groups: ['operators'] })
  peer.paths.length = 0
  const { status, profile } = await signIn(other)
  expect([status, profile.username, profile.roles]).toEqual([200, 'emmy@example.com', ['Operator']])
  expect(peer.paths).not.toContain('/me')
  peer.open([clientOf(provider)])
})

test('whoever refuses at the provider hears so, and nothing of what the provider says', async () => {
  peer.present('')
  const browser = new Browser(portal, handler)
  const { searchParams } = await browser.follow(authorizeAt(provider), signInPage)
  expect(Object.fromEntries(searchParams)).toEqual({
    error: 'access_denied',
    traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
  })
})
