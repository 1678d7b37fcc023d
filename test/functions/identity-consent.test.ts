// First: it sets what the platform may reach, which core reads when it is imported.
import { unreachableIssuer, peer } from '../core/support/oidc-issuers.ts'
import * as keys from '@platform/core/db/keys'
import { shiftClock } from '@platform/core/clock'
import { query } from '@platform/core/db/table'
import { sha256 } from '@platform/core/id'
import { parseRecord } from '@platform/core/outbox/record'
import { beforeEach, expect, test, vi } from 'vitest'
import { handler } from '../../functions/identity.ts'
import { cloud, ldap, oidc } from '../core/support/identity.ts'
import { Browser } from '../support/browser.ts'
import { administrator } from '../support/fixtures.ts'
import {
  back,
  settings,
  admin,
  configure,
  ask,
  statusOf,
  byGet,
  post,
  ways,
  sentTo,
  id,
  state,
  askCloud,
  granted,
  expectUnauthenticated,
} from './consent-world.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))

beforeEach(askCloud)

const tenant = cloud.tenantId

test('a cloud directory is asked at its own tenant, in a way that only its answer fits', async () => {
  const { status, json } = await ask(id)
  expect(status).toBe(200)
  const url = new URL(json.url)
  expect(url.origin + url.pathname).toBe(`https://login.microsoftonline.com/${tenant}/v2.0/adminconsent`)
  expect(Object.fromEntries(url.searchParams)).toEqual({
    client_id: 'platform',
    redirect_uri: `${administrator.publicUrl}${back}`,
    scope: 'openid profile email',
    state: expect.stringMatching(/^[\w-]{43}$/),
  })
  expect(await statusOf(id)).toBe('ConsentPending')
})

test('the state stands in the table as its hash only', async () => {
  expect((await query(keys.consentRequest(sha256(state)))).items).toHaveLength(1)
  const { items } = await query(keys.identityProviders())
  expect(JSON.stringify([items, await query(keys.consentRequest(sha256(state)))])).not.toContain(state)
})

test('a directory that speaks LDAP asks for no consent', async () => {
  const { json } = await configure(ldap).then((provider) => ask(provider.id))
  expect(json.error).toBe('consent_not_applicable')
})

test.each(Object.entries(ways))('consent that was given is heard by %s, once', async (_, call) => {
  expect(sentTo(await call(granted()))).toEqual({ provider: id, consent: 'granted' })
  expect(await statusOf(id)).toBe('ConsentGranted')
  await expectUnauthenticated(call(granted()))
  for (const other of Object.values(ways)) await expectUnauthenticated(other({ ...granted(), error: 'access_denied' }))
  expect(await statusOf(id)).toBe('ConsentGranted')
})

test.each(Object.entries(ways))('consent that was denied is heard by %s, once', async (_, call) => {
  expect(sentTo(await call({ state, error: 'access_denied', error_description: 'no' }))).toEqual({
    provider: id,
    consent: 'denied',
  })
  expect(await statusOf(id)).toBe('ConsentDenied')
  await expectUnauthenticated(call(granted()))
})

test.each([
  [{ admin_consent: 'False' }, { consent: 'denied' }],
  [{ admin_consent: 'yes' }, { consent: 'denied' }],
  [{ admin_consent: 'true' }, { consent: 'granted' }],
  [{ tenant: tenant.toUpperCase() }, { consent: 'granted' }],
  [{ iss: `https://login.microsoftonline.com/${tenant}/v2.0` }, { consent: 'granted' }],
  [{ error: 'permission_denied', error_description: 'The admin cancelled' }, { consent: 'denied' }],
])('%o reads as %o', async (change, expected) => {
  expect(sentTo(await byGet({ ...granted(), ...change }))).toEqual({ provider: id, ...expected })
})

test('a query and a form may share what they say', async () => {
  const { state: mine, ...rest } = granted()
  expect(sentTo(await post(new URLSearchParams(rest).toString(), {}, `?state=${mine}`))).toEqual({
    provider: id,
    consent: 'granted',
  })
})

test('a platform administrator may bring an answer without a state; it is about the tenant it names', async () => {
  const { state: _, ...answer } = granted()
  for (const call of Object.values(ways)) {
    expect(sentTo(await call(answer, admin.headers))).toEqual({ provider: id, consent: 'granted' })
    expect(sentTo(await call({ ...answer, error: 'access_denied' }, admin.headers)).consent).toBe('denied')
  }
  const elsewhere = { consent: 'error', error: 'provider_unknown' }
  expect(sentTo(await byGet({ ...answer, tenant: 'nobody' }, admin.headers))).toEqual(elsewhere)
  expect(sentTo(await byGet({}, admin.headers))).toEqual(elsewhere)
})

test('what was answered is told and on record, with the address it came from', async () => {
  await byGet({ ...granted(), tenant: 'other' })
  const { items } = await query({ pk: keys.outbox(admin.organisationId, '').pk, newestFirst: true, limit: 1 })
  expect(items.map(parseRecord)).toMatchObject([
    {
      actor: { kind: 'system' },
      address: '192.0.2.1',
      audit: { action: 'identity_provider.consent_received', resource: id, detail: 'tenant_mismatch' },
      events: [{ name: 'identity.consent_received', data: { providerId: id, consent: 'error' } }],
    },
  ])
})

test.each(['', '/'])(
  'a real OpenID provider, given with %j at its end, is asked for consent and answers',
  async (end) => {
    const redirectUri = `${administrator.publicUrl}${back}`
    peer.open([{ clientId: 'platform', clientSecret: 'first secret', redirectUri }])
    const provider = await configure({ ...oidc, issuer: `${peer.issuer}${end}` })
    for (const [subject, consent, status] of [
      ['ada', 'granted', 'ConsentGranted'],
      ['', 'denied', 'ConsentDenied'],
    ] as const) {
      peer.present(subject)
      const { url } = (await ask(provider.id)).json
      const asked = new URL(url)
      expect(asked.origin).toBe(peer.issuer)
      expect(Object.fromEntries(asked.searchParams)).toMatchObject({ prompt: 'consent', redirect_uri: redirectUri })
      const page = await new Browser(administrator.publicUrl, handler).follow(url, /\/settings\/identity\?/)
      expect(page.href).toBe(`${settings}?provider=${provider.id}&consent=${consent}`)
      expect(await statusOf(provider.id)).toBe(status)
    }
  },
)

test('an issuer that does not say where to ask is told to whoever asks, and nothing else of it', async () => {
  const near = await configure({
    ...oidc,
    issuer: `https://localhost:${unreachableIssuer.server.host.split(':')[1]}/inner`,
  })
  const { status, json, text } = await ask(near.id)
  expect([status, json.error]).toEqual([422, 'idp_config_invalid'])
  expect(json.details).toMatchObject([{ path: '/issuer' }])
  expect(text).not.toMatch(/ECONN|127\.0\.0\.1|\.ts:/)
})

test('a state works for ten minutes', async () => {
  const first = granted()
  const later = { ...first, state: new URL((await ask(id)).json.url).searchParams.get('state') ?? '' }
  shiftClock(10 * 60_000 - 5000)
  expect(sentTo(await byGet(first)).consent).toBe('granted')
  shiftClock(5000)
  await expectUnauthenticated(byGet(later))
})
