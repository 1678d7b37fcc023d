import { sha256 } from '@platform/core/id'
import { beforeEach, expect, test, vi } from 'vitest'
import { handler } from '../../functions/identity.ts'
import { cloud } from '../core/support/identity.ts'
import { send } from '../support/request.ts'
import { personOf } from './person.ts'
import {
  path,
  back,
  admin,
  configure,
  statusOf,
  byGet,
  post,
  byForm,
  ways,
  sentTo,
  id,
  state,
  askAgain,
  askCloud,
  granted,
  expectUnauthenticated,
} from './consent-world.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))

beforeEach(askCloud)

const tenant = cloud.tenantId

test.each([
  ['another tenant', { tenant: '11111111-1111-4111-8111-111111111111' }, 'tenant_mismatch'],
  ['another tenant and an error', { tenant: 'other', error: 'access_denied' }, 'tenant_mismatch'],
  ['a tenant that only begins alike', { tenant: `${tenant}.evil.example` }, 'tenant_mismatch'],
  ['an empty tenant', { tenant: '' }, 'tenant_mismatch'],
  ['another issuer', { iss: 'https://evil.example' }, 'issuer_mismatch'],
  ['an error nobody knows', { error: 'server_error' }, 'provider_error'],
  ['an error with markup', { error: '"><script>alert(1)</script>' }, 'provider_error'],
  ['an error with line ends', { error: 'x\r\nSet-Cookie: a=b' }, 'provider_error'],
])('%s is no consent, whatever else is said', async (_, change, error) => {
  for (const call of Object.values(ways)) {
    await askAgain()
    expect(sentTo(await call({ ...granted(), ...change }))).toEqual({ provider: id, consent: 'error', error })
    expect(await statusOf(id)).toBe('ConsentPending')
    await expectUnauthenticated(call(granted()))
  }
})

test('an answer that says nothing of consent gives none', async () => {
  expect(sentTo(await byGet({ state, tenant }))).toEqual({ provider: id, consent: 'error', error: 'incomplete' })
})

test('consent that was asked for one client is none for another', async () => {
  await configure({ ...cloud, clientId: 'another' })
  expect(await statusOf(id)).toBe('Configured')
  expect(sentTo(await byGet(granted()))).toEqual({ provider: id, consent: 'error', error: 'provider_changed' })
  await configure(cloud)
})

test.each(Object.entries(ways))(
  'nobody is believed by %s without a state, or with one that is not ours',
  async (_, call) => {
    const { state: __, ...stateless } = granted()
    await expectUnauthenticated(call(stateless))
    await expectUnauthenticated(call({}))
    const forged = ['', 'x', id, sha256(state), state.toLowerCase(), ` ${state}`, state.slice(0, -1), `${state}A`]
    for (const each of forged) await expectUnauthenticated(call({ ...granted(), state: each }))
    expect(await statusOf(id)).toBe('ConsentPending')
    expect(sentTo(await call(granted()))).toEqual({ provider: id, consent: 'granted' })
  },
)

test('the state of one provider says nothing of another one', async () => {
  const other = await configure({ ...cloud, tenantId: '22222222-2222-4222-8222-222222222222' })
  const answer = { ...granted(), tenant: other.tenantId }
  expect(sentTo(await byGet(answer))).toEqual({ provider: id, consent: 'error', error: 'tenant_mismatch' })
  expect(await statusOf(other.id)).toBe('Configured')
})

test('the state of a provider that was removed is worth nothing', async () => {
  await send(handler, { method: 'DELETE', target: `${path}/providers/${id}`, headers: admin.headers })
  await expectUnauthenticated(byGet(granted()))
  await configure(cloud)
})

test('of eight that bring one answer at once one is heard', async () => {
  const calls = Object.values(ways).flatMap((call) => [call, call, call])
  const answers = await Promise.all(calls.slice(0, 8).map((call) => call(granted())))
  const statuses = answers.map(({ status }) => status)
  expect(statuses.toSorted((a, b) => a - b)).toEqual([302, ...Array(7).fill(401)])
})

const hostile = [
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
  '"><img src=x onerror=alert(1)>',
  '../../..',
  '&consent=granted',
  '#consent=granted',
  '😀\ud800',
]
const parameters = ['tenant', 'admin_consent', 'scope', 'error', 'error_description', 'code', 'iss']
const unknown = ['returnTo', 'redirect_uri', 'url', 'provider', 'consent', '__proto__', 'constructor']

test.each(hostile.map((value) => [value]))(
  '%j leads nowhere else and comes back nowhere, in any parameter',
  async (value) => {
    for (const name of [...parameters, ...unknown]) {
      const [, call = byGet] = Object.entries(ways)[(name.length + value.length) % 3] ?? []
      await askAgain()
      const received = await call({ ...granted(), [name]: value })
      // Longer than any answer may be: no answer of a provider at all.
      if (received.status === 400) {
        expect(received.text).not.toContain(value)
        continue
      }
      const told = sentTo(received)
      expect(Object.keys(told).every((key) => ['provider', 'consent', 'error'].includes(key))).toBe(true)
      expect(told['provider']).toBe(id)
      expect(`${told['consent']} ${told['error'] ?? ''}`).toMatch(/^(granted |denied |error [a-z_]+)$/)
      expect(Object.keys(received.headers)).not.toContain('set-cookie')
      expect(received.headers['location']).toMatch(/^https:\/\/platform\.example\.com\/settings\/identity\?[\w=&-]+$/)
    }
  },
)

test('hosts and schemes that a request claims make no difference to where the browser goes', async () => {
  const claims = {
    host: 'evil.example',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'http',
    origin: 'null',
  }
  expect(sentTo(await byForm(granted(), claims))).toEqual({ provider: id, consent: 'granted' })
})

test('what is given twice is refused, in the query, in the form, or in both; and is still good for once', async () => {
  const form = new URLSearchParams(granted()).toString()
  const twice = [
    byGet({}).then(() => send(handler, { target: `${back}?${form}&state=${state}` })),
    post(`${form}&state=${state}`),
    post(form, {}, `?state=${state}`),
    post(form, {}, '?tenant=other'),
  ]
  for (const call of twice) expect((await call).json).toMatchObject({ error: 'validation_failed' })
  expect(sentTo(await post(form))).toEqual({ provider: id, consent: 'granted' })
})

test.each([
  ['application/json', '{"state":"x"}'],
  ['text/plain', 'state=x'],
  ['multipart/form-data; boundary=x', '--x--'],
  ['application/x-www-form-urlencoded; charset=utf-16', 'state=x'],
])('a body of the type %s is no form', async (type, body) => {
  const { status, json } = await post(body, { 'content-type': type })
  expect([status, json.error]).toEqual([400, 'unsupported_media_type'])
})

test('a form that is longer than any of ours is refused unread', async () => {
  expect((await post(`state=${'x'.repeat(40_000)}`)).status).toBe(413)
  expect((await post(`state=${'x'.repeat(600)}`)).status).toBe(400)
})

test('nobody else may: not with another role, another scheme, or a token that is none', async () => {
  const { state: _, ...answer } = granted()
  for (const role of ['OrgAdmin', 'Auditor'] as const) {
    await expectUnauthenticated(byForm(answer, (await personOf(role)).headers))
  }
  const { authorization = '' } = admin.headers
  const wrong = [
    '',
    'Bearer',
    'Bearer x',
    authorization.replace('Bearer', 'Relay'),
    `${authorization}x`,
    `${authorization}, x`,
  ]
  for (const each of wrong) await expectUnauthenticated(byGet(answer, { authorization: each }))
  expect(await statusOf(id)).toBe('ConsentPending')
})
