// Imported first, because it sets the outbound allowlist, which core reads when it is imported.
import { unreachableIssuer, peer } from '../core/support/oidc-issuers.ts'
import { shiftClock } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import { sha256 } from '@platform/core/id'
import { beforeEach, expect, test, vi } from 'vitest'
import { handler } from '../../functions/identity.ts'
import { cloud, ldap, oidc } from '../core/support/identity.ts'
import { readPendingRecords } from '../core/support/outbox.ts'
import { Browser } from '../support/browser.ts'
import { administrator } from '../support/fixtures.ts'
import { jsonRequest, type TestResponse, send } from '../support/request.ts'
import { newUser } from './users.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))

const path = '/api/v1/platform/identity'
const callback = `${path}/consent-callback`
const settingsPage = `${administrator.publicUrl}/settings/identity`
const admin = await newUser('PlatformAdmin')
const { tenantId } = cloud

type QueryParameters = Record<string, string>
type Headers = Record<string, string>

const configure = async (request: object): Promise<any> =>
  (await send(handler, jsonRequest(`${path}/providers`, request, admin.headers))).json
const requestConsent = (providerId: string) =>
  send(handler, jsonRequest(`${path}/providers/${providerId}/consent`, '', admin.headers))
const statusOf = async (providerId: string): Promise<string> => {
  const { json } = await send(handler, { target: `${path}/providers`, headers: admin.headers })
  return json.items.find((each: any) => each.id === providerId).status
}

const encode = (parameters: QueryParameters) => new URLSearchParams(parameters).toString()
const byGet = (parameters: QueryParameters, headers: Headers = {}) =>
  send(handler, { target: `${callback}?${encode(parameters)}`, headers })
const post = (body: string, headers: Headers = {}, search = '') =>
  send(handler, {
    method: 'POST',
    target: `${callback}${search}`,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body,
  })
const byForm = (parameters: QueryParameters, headers: Headers = {}) => post(encode(parameters), headers)
const byPostedQuery = (parameters: QueryParameters, headers: Headers = {}) =>
  send(handler, { method: 'POST', target: `${callback}?${encode(parameters)}`, headers })
const byJson = (parameters: QueryParameters, headers: Headers = {}) =>
  post(JSON.stringify(parameters), { 'content-type': 'application/json', ...headers })
const methods = {
  GET: byGet,
  'POST with a form': byForm,
  'POST with JSON': byJson,
  'POST with a query': byPostedQuery,
}

function redirectParameters({ status, headers, text }: TestResponse): QueryParameters {
  expect([status, text]).toEqual([302, ''])
  const location = new URL(headers['location'] ?? '')
  expect(location.origin + location.pathname).toBe(settingsPage)
  expect(headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  return Object.fromEntries(location.searchParams)
}

async function expectUnauthenticated(call: Promise<TestResponse>): Promise<void> {
  const { status, json, headers } = await call
  expect([status, json.error, headers['location']]).toEqual([401, 'unauthenticated', undefined])
}

let id = ''
let state = ''

const newState = async () => new URL((await requestConsent(id)).json.url).searchParams.get('state') ?? ''
const grantedResponse = () => ({ state, tenant: tenantId, admin_consent: 'True', scope: 'openid' })

beforeEach(async () => {
  ;({ id } = await configure(cloud))
  state = await newState()
})

test('requests consent from the tenant with a state that is stored as a hash only', async () => {
  const { status, json } = await requestConsent(id)
  expect(status).toBe(200)
  const url = new URL(json.url)
  expect(url.origin + url.pathname).toBe(`https://login.microsoftonline.com/${tenantId}/v2.0/adminconsent`)
  expect(Object.fromEntries(url.searchParams)).toEqual({
    client_id: 'platform',
    redirect_uri: `${administrator.publicUrl}${callback}`,
    scope: 'openid profile email offline_access',
    state: expect.stringMatching(/^[\w-]{43}$/),
  })
  expect(await statusOf(id)).toBe('ConsentPending')
  const { items } = await query(keys.consentRequest(sha256(state)))
  expect(items).toHaveLength(1)
  expect(JSON.stringify([items, await query(keys.identityProviders())])).not.toContain(state)
})

test('rejects a consent request for a directory', async () => {
  const { id: directoryId } = await configure(ldap)
  expect((await requestConsent(directoryId)).json.error).toBe('consent_not_applicable')
})

test.each(Object.entries(methods))('accepts a granted or denied consent by %s once', async (_, call) => {
  expect(redirectParameters(await call(grantedResponse()))).toEqual({ provider: id, consent: 'granted' })
  expect(await statusOf(id)).toBe('ConsentGranted')
  for (const other of Object.values(methods))
    await expectUnauthenticated(other({ ...grantedResponse(), error: 'access_denied' }))
  expect(await statusOf(id)).toBe('ConsentGranted')
  state = await newState()
  const denial = { state, error: 'access_denied', error_description: 'no' }
  expect(redirectParameters(await call(denial))).toEqual({ provider: id, consent: 'denied' })
  expect(await statusOf(id)).toBe('ConsentDenied')
})

test.each([
  [{ admin_consent: 'False' }, { consent: 'denied' }],
  [{ admin_consent: 'yes' }, { consent: 'denied' }],
  [{ admin_consent: 'true' }, { consent: 'granted' }],
  [{ tenant: tenantId.toUpperCase() }, { consent: 'granted' }],
  [{ iss: `https://login.microsoftonline.com/${tenantId}/v2.0` }, { consent: 'granted' }],
  [{ error: 'permission_denied', error_description: 'The admin cancelled' }, { consent: 'denied' }],
])('interprets %o as %o', async (change, expected) => {
  expect(redirectParameters(await byGet({ ...grantedResponse(), ...change }))).toEqual({ provider: id, ...expected })
})

test('combines query and form', async () => {
  const { state: query, ...form } = grantedResponse()
  const response = await post(encode(form), {}, `?state=${query}`)
  expect(redirectParameters(response)).toEqual({ provider: id, consent: 'granted' })
})

test('accepts a response without a state from a platform administrator, for the named tenant', async () => {
  const { state: _, ...response } = grantedResponse()
  for (const call of Object.values(methods)) {
    expect(redirectParameters(await call(response, admin.headers))).toEqual({ provider: id, consent: 'granted' })
    const denial = { ...response, error: 'access_denied' }
    expect(redirectParameters(await call(denial, admin.headers))).toMatchObject({ consent: 'denied' })
  }
  for (const unknownResponse of [{ ...response, tenant: 'unknown' }, {}]) {
    const parameters = redirectParameters(await byGet(unknownResponse, admin.headers))
    expect(parameters).toEqual({ consent: 'error', error: 'provider_unknown' })
  }
})

test('records a response with its address', async () => {
  await byGet({ ...grantedResponse(), tenant: 'other' })
  const records = await readPendingRecords(admin.organisationId)
  expect(records.slice(-1)).toMatchObject([
    {
      actor: { kind: 'system' },
      address: '192.0.2.1',
      audit: { action: 'identity_provider.consent_received', resource: id, detail: 'tenant_mismatch' },
      events: [{ name: 'identity.consent_received', data: { providerId: id, consent: 'error' } }],
    },
  ])
})

test.each(['', '/'])('requests consent from a real OpenID provider whose issuer ends in %j', async (suffix) => {
  const redirectUri = `${administrator.publicUrl}${callback}`
  peer.open([{ clientId: 'platform', clientSecret: 'first secret', redirectUri }])
  const provider = await configure({ ...oidc, issuer: `${peer.issuer}${suffix}` })
  for (const [subject, consent, status] of [
    ['ada', 'granted', 'ConsentGranted'],
    ['', 'denied', 'ConsentDenied'],
  ] as const) {
    peer.present(subject)
    const { url } = (await requestConsent(provider.id)).json
    expect(new URL(url).origin).toBe(peer.issuer)
    const page = await new Browser(administrator.publicUrl, handler).follow(url, /\/settings\/identity\?/)
    expect(page.href).toBe(`${settingsPage}?provider=${provider.id}&consent=${consent}`)
    expect(await statusOf(provider.id)).toBe(status)
  }
})

test('reports an unreachable issuer without details of the network', async () => {
  const issuer = `https://localhost:${unreachableIssuer.server.host.split(':')[1]}/inner`
  const provider = await configure({ ...oidc, issuer })
  const { status, json, text } = await requestConsent(provider.id)
  expect([status, json.error, json.details]).toMatchObject([422, 'idp_config_invalid', [{ path: '/issuer' }]])
  expect(text).not.toMatch(/ECONN|127\.0\.0\.1|\.ts:/)
})

test.each([
  ['another tenant', { tenant: '11111111-1111-4111-8111-111111111111' }, 'tenant_mismatch'],
  ['another tenant and an error', { tenant: 'other', error: 'access_denied' }, 'tenant_mismatch'],
  ['a longer tenant', { tenant: `${tenantId}.evil.example` }, 'tenant_mismatch'],
  ['an empty tenant', { tenant: '' }, 'tenant_mismatch'],
  ['another issuer', { iss: 'https://evil.example' }, 'issuer_mismatch'],
  ['an unknown error', { error: 'server_error' }, 'provider_error'],
  ['an error with markup', { error: '"><script>alert(1)</script>' }, 'provider_error'],
  ['an error with line breaks', { error: 'x\r\nSet-Cookie: a=b' }, 'provider_error'],
])('rejects a response with %s', async (_, change, error) => {
  for (const call of Object.values(methods)) {
    state = await newState()
    const response = await call({ ...grantedResponse(), ...change })
    expect(redirectParameters(response)).toEqual({ provider: id, consent: 'error', error })
    expect(await statusOf(id)).toBe('ConsentPending')
    await expectUnauthenticated(call(grantedResponse()))
  }
})

test('rejects a response without a consent', async () => {
  const response = await byGet({ state, tenant: tenantId })
  expect(redirectParameters(response)).toEqual({ provider: id, consent: 'error', error: 'incomplete' })
})

test('rejects a consent for another client, another provider or a removed one', async () => {
  const otherProvider = await configure({ ...cloud, tenantId: '22222222-2222-4222-8222-222222222222' })
  const mismatch = redirectParameters(await byGet({ ...grantedResponse(), tenant: otherProvider.tenantId }))
  expect(mismatch).toEqual({ provider: id, consent: 'error', error: 'tenant_mismatch' })
  expect(await statusOf(otherProvider.id)).toBe('Configured')
  state = await newState()
  await configure({ ...cloud, clientId: 'another' })
  const redirect = redirectParameters(await byGet(grantedResponse()))
  expect(redirect).toEqual({ provider: id, consent: 'error', error: 'provider_changed' })
  await configure(cloud)
  state = await newState()
  await send(handler, { method: 'DELETE', target: `${path}/providers/${id}`, headers: admin.headers })
  await expectUnauthenticated(byGet(grantedResponse()))
})

test.each(Object.entries(methods))('rejects a missing or forged state by %s', async (_, call) => {
  const { state: __, ...stateless } = grantedResponse()
  const forgedStates = ['', 'x', id, sha256(state), state.toLowerCase(), ` ${state}`, state.slice(0, -1), `${state}A`]
  for (const each of [stateless, {}, ...forgedStates.map((value) => ({ ...grantedResponse(), state: value }))]) {
    await expectUnauthenticated(call(each))
  }
  expect(await statusOf(id)).toBe('ConsentPending')
  expect(redirectParameters(await call(grantedResponse()))).toEqual({ provider: id, consent: 'granted' })
})

test('accepts one of eight concurrent responses', async () => {
  const calls = Object.values(methods).flatMap((call) => [call, call, call])
  const responses = await Promise.all(calls.slice(0, 8).map((call) => call(grantedResponse())))
  expect(responses.filter(({ status }) => status === 302)).toHaveLength(1)
  expect(responses.filter(({ status }) => status === 401)).toHaveLength(7)
})

const hostileTexts = [
  'https://evil.example/',
  '//evil.example',
  '/\\evil.example',
  '@evil.example',
  '.evil.example',
  'javascript:alert(1)',
  'x\r\nLocation: https://evil.example',
  'x\r\nSet-Cookie: session=1',
  '%0d%0aSet-Cookie:%20a=b',
  '\u0000',
  '\u2028',
  '<script>alert(1)</script>',
  '../../..',
  '&consent=granted',
  '#consent=granted',
  '😀\ud800',
]
const parameters = ['tenant', 'admin_consent', 'scope', 'error', 'error_description', 'code', 'iss']
const unknownNames = ['returnTo', 'redirect_uri', 'url', 'provider', 'consent', '__proto__', 'constructor']

test.each(hostileTexts.map((value) => [value]))('never redirects to or repeats %j, in any parameter', async (value) => {
  for (const name of [...parameters, ...unknownNames]) {
    const call = Object.values(methods)[(name.length + value.length) % 3] ?? byGet
    state = await newState()
    const response = await call({ ...grantedResponse(), [name]: value })
    if (response.status === 400) {
      expect(response.text).not.toContain(value)
      continue
    }
    const { provider, consent, error = '', ...others } = redirectParameters(response)
    expect([provider, others]).toEqual([id, {}])
    expect(`${consent} ${error}`).toMatch(/^(granted |denied |error [a-z_]+)$/)
    expect(Object.keys(response.headers)).not.toContain('set-cookie')
    expect(response.headers['location']).toMatch(/^https:\/\/platform\.example\.com\/settings\/identity\?[\w=&-]+$/)
  }
})

test('redirects to the public URL regardless of the Host header', async () => {
  const forwardedHeaders = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'http' }
  const response = await byForm(grantedResponse(), { host: 'evil.example', origin: 'null', ...forwardedHeaders })
  expect(redirectParameters(response)).toEqual({ provider: id, consent: 'granted' })
})

test('rejects repeated parameters and keeps the state valid', async () => {
  const form = encode(grantedResponse())
  const repeatedParameters = [
    send(handler, { target: `${callback}?${form}&state=${state}` }),
    post(`${form}&state=${state}`),
    post(form, {}, `?state=${state}`),
    post(form, {}, '?tenant=other'),
  ]
  for (const call of repeatedParameters) expect((await call).json).toMatchObject({ error: 'validation_failed' })
  expect(redirectParameters(await post(form))).toEqual({ provider: id, consent: 'granted' })
})

test.each(['application/jsonp', 'text/plain', 'application/x-www-form-urlencoded; charset=utf-16'])(
  'rejects a body of the type %s',
  async (type) => {
    const { status, json } = await post('state=x', { 'content-type': type })
    expect([status, json.error]).toEqual([400, 'unsupported_media_type'])
  },
)

test('rejects long forms', async () => {
  expect((await post(`state=${'x'.repeat(40_000)}`)).status).toBe(413)
  expect((await post(`state=${'x'.repeat(600)}`)).status).toBe(400)
})

test('rejects a response without a state from other callers', async () => {
  const { state: _, ...response } = grantedResponse()
  for (const role of ['OrgAdmin', 'Auditor'] as const) {
    await expectUnauthenticated(byForm(response, (await newUser(role)).headers))
  }
  const { authorization = '' } = admin.headers
  for (const invalid of ['', 'Bearer x', authorization.replace('Bearer', 'Relay'), `${authorization}x`]) {
    await expectUnauthenticated(byGet(response, { authorization: invalid }))
  }
  expect(await statusOf(id)).toBe('ConsentPending')
})

// Last, because it advances the clock.
test('accepts a state for ten minutes', async () => {
  const firstResponse = grantedResponse()
  const secondResponse = { ...firstResponse, state: await newState() }
  shiftClock(10 * 60_000 - 5000)
  expect(redirectParameters(await byGet(firstResponse))).toMatchObject({ consent: 'granted' })
  shiftClock(5000)
  await expectUnauthenticated(byGet(secondResponse))
})
