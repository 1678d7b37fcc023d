// First: it sets what the platform may reach, which core reads when it is imported.
import { newIssuer, peer } from '../core/support/oidc-issuers.ts'
import { beforeAll, expect, test } from 'vitest'
import { nowSeconds } from '@platform/core/clock'
import { newId } from '@platform/core/id'
import { testOidc } from '@platform/core/identity-providers/oidc/test'
import { handler } from '../../functions/identity.ts'
import { Browser } from '../support/browser.ts'
import { jsonRequest, send } from '../support/request.ts'
import { signed } from '../support/hostile-issuer.ts'
import { bearer } from '../support/fixtures.ts'
import { clientSecret, newProvider, portal, preparePortal } from '../core/support/oidc.ts'
import { fastTimers } from '../support/fast-timers.ts'

beforeAll(preparePortal)

/** Addresses that lead away from the portal, or could once something has decoded, joined or resolved them. */
const away = [
  'https://evil.example',
  'http:evil.example',
  'javascript:alert(1)',
  'data:text/html,x',
  '//evil.example',
  '///evil.example',
  '/\\evil.example',
  '\\\\evil.example',
  '/%2fevil.example',
  '/%2Fevil.example',
  '/%5cevil.example',
  '/%252fevil.example',
  '/clusters//evil.example',
  '/./evil',
  '/.//evil.example',
  '/../evil',
  '/clusters/..//evil.example',
  '/\tevil.example',
  '/\t/evil.example',
  '\t//evil.example',
  ' //evil.example',
  '/\r\nlocation: https://evil.example',
  '/a\nb',
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

test.each(away)('nobody can be led to %j after signing in', async (returnTo) => {
  const { id } = await newProvider('')
  const target = `/api/v1/auth/oidc/${id}/authorize?returnTo=${encodeURIComponent(returnTo)}`
  const { status, json, headers, cookies, text } = await send(handler, { target })
  expect([status, json.error, headers['location'], cookies]).toEqual([400, 'validation_failed', undefined, []])
  if (returnTo.length > 3) expect(text).not.toContain(returnTo)
})

const within = [
  '/',
  '/clusters',
  '/clusters/clus_01?tab=nodes&next=//x',
  '/jobs?from=%2F%2Fx#top',
  '/modules/hello/',
  '/#/x',
]
const issuer = newIssuer()

test.each(within)('the path %s of the portal is gone back to', async (returnTo) => {
  const { id } = await newProvider(issuer.url)
  const browser = new Browser(portal, handler)
  const query = new URLSearchParams({ returnTo }).toString()
  const { headers } = await browser.send({ target: `/api/v1/auth/oidc/${id}/authorize?${query}` })
  const { state = '', nonce = '' } = Object.fromEntries(new URL(headers['location'] ?? '').searchParams)
  issuer.token = () => signed(issuer.claims('platform', nonce, nowSeconds()), issuer.key)
  const answer = new URLSearchParams({ state, code: 'code', iss: issuer.url, session_state: 'x', anything: 'else' })
  const back = await browser.send({ target: `/api/v1/auth/oidc/${id}/callback?${answer.toString()}` })
  const page = new URL(back.headers['location'] ?? '')
  expect([back.status, page.origin, page.pathname]).toEqual([302, portal, '/sign-in'])
  expect(Object.fromEntries(page.searchParams)).toEqual({ code: expect.any(String), returnTo })
})

const evil = [
  'https://evil.example',
  '//evil.example',
  '<script>alert(1)</script>',
  '"\r\nlocation: //evil.example',
  '&error=x#',
]
const parameters = ['state', 'code', 'iss', 'error', 'error_description', 'session_state', 'returnTo', 'redirect_uri']

test.each(parameters.flatMap((name) => evil.map((value) => [name, value] as const)))(
  'a callback whose %s is %j leads to the sign-in page, and repeats nothing of it',
  async (name, value) => {
    const { id } = await newProvider(issuer.url)
    const target = `/api/v1/auth/oidc/${id}/callback?${new URLSearchParams({ [name]: value }).toString()}`
    const { status, headers, text } = await send(handler, { target })
    const page = new URL(headers['location'] ?? '')
    expect([status, `${page.origin}${page.pathname}`, text]).toEqual([302, `${portal}/sign-in`, ''])
    const told = { error: 'sign_in_expired', traceId: headers['x-trace-id'] }
    expect(Object.fromEntries(page.searchParams)).toEqual(told)
  },
)

test('a callback that is too long, or says something twice, is refused without a way on', async () => {
  const { id } = await newProvider(issuer.url)
  for (const query of [`state=${'x'.repeat(501)}`, 'state=a&state=b']) {
    const { status, headers, json } = await send(handler, { target: `/api/v1/auth/oidc/${id}/callback?${query}` })
    expect([status, json.error, headers['location']]).toEqual([400, 'validation_failed', undefined])
  }
})

test('an exchange of a code that is none answers 401, whatever cookies come with it', async () => {
  for (const cookie of [
    '',
    '__Host-plat_sign_in',
    '__Host-plat_sign_in=',
    '=;;=',
    '__Host-plat_sign_in=x; __Host-plat_sign_in=y',
  ]) {
    const { status, json } = await send(handler, jsonRequest('/api/v1/auth/oidc/token', { code: 'x' }, { cookie }))
    expect([cookie, status, json.error]).toEqual([cookie, 401, 'sign_in_code_invalid'])
  }
})

test('a try of a real provider tells what works, and that a secret is wrong', async () => {
  const provider = await newProvider(peer.issuer)
  const redirectUri = `${portal}/api/v1/auth/oidc/${provider.id}/callback`
  peer.open([{ clientId: 'platform', clientSecret, redirectUri }])
  const right = await testOidc(provider, { clientSecret })
  expect(right.map(({ name, ok }) => [name, ok])).toEqual(
    ['discovery', 'endpoints', 'keys', 'client'].map((name) => [name, true]),
  )
  for (const secret of [{ clientSecret: 'wrong' }, {}]) {
    const [only, ...others] = (await testOidc(provider, secret)).filter(({ ok }) => !ok)
    expect([only?.name, only?.message, others]).toEqual(['client', 'The issuer rejects the client or its secret.', []])
  }
})

test('a provider that hangs keeps its test waiting, and nobody else of the organisation', async () => {
  using _ = fastTimers(5000)
  const silent = newIssuer()
  silent.instead.set('/.well-known/openid-configuration', () => new Promise(() => undefined))
  const organisationId = newId('org')
  const { id } = await newProvider(silent.url, { organisationId })
  const headers = await bearer(['PlatformAdmin'], organisationId)
  const providers = '/api/v1/platform/identity/providers'
  const waiting = ['test', 'test', 'test', 'consent', 'consent'].map((what) =>
    send(handler, jsonRequest(`${providers}/${id}/${what}`, {}, headers)),
  )
  const first = await Promise.race([send(handler, { target: providers, headers }), ...waiting])
  expect([first.status, first.json.items?.length]).toEqual([200, 1])
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200, 422, 422])
})
