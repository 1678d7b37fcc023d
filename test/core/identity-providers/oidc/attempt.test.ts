// First: it sets settings that core reads when it is imported.
import { newIssuer } from '../../support/oidc-issuers.ts'
import { beforeAll, expect, test } from 'vitest'
import { nowSeconds, shiftClock } from '@platform/core/clock'
import * as Oidc from '@platform/core/identity-providers/oidc/oidc'
import { exchange } from '@platform/core/identity-providers/oidc/code'
import { type ProviderRecord } from '@platform/core/identity-providers/record'
import { verifyAccessToken } from '@platform/core/signing/access-token'
import { type HostileIssuer, signed } from '../../../support/hostile-issuer.ts'
import { newCaller, errorCodeOf, expectError } from '../../../support/fixtures.ts'
import {
  completeSignIn,
  removeProvider,
  startSignIn,
  type StartedSignIn,
  newProvider,
  validCallback,
  preparePortal,
  replaceProvider,
} from '../../support/oidc.ts'

beforeAll(preparePortal)
const origin = { address: '192.0.2.1' }

interface World {
  issuer: HostileIssuer
  provider: ProviderRecord
  /** A sign-in that has left, and whose code the issuer would trade. */
  left: StartedSignIn
}

async function world(): Promise<World> {
  const issuer = newIssuer()
  const provider = await newProvider(issuer.url)
  const left = await startSignIn(provider)
  issuer.token = () => signed(issuer.claims('platform', left.nonce, nowSeconds()), issuer.key)
  return { issuer, provider, left }
}

const finish = ({ issuer, provider, left }: World) =>
  completeSignIn(provider.id, validCallback(issuer, left), left.browser)
const proper = (each: World) => validCallback(each.issuer, each.left)

/** What is wrong with an answer, how it is refused, and whether the provider hears of its code. */
const attacks: [string, string, (each: World) => Promise<Record<string, string>>][] = [
  [
    'without a state',
    'sign_in_expired',
    (w) => completeSignIn(w.provider.id, { ...proper(w), state: undefined }, w.left.browser),
  ],
  [
    'with a state that nobody gave out',
    'sign_in_expired',
    (w) => completeSignIn(w.provider.id, { ...proper(w), state: 'x'.repeat(43) }, w.left.browser),
  ],
  [
    'with the state of another sign-in',
    'sign_in_expired',
    async (w) =>
      completeSignIn(w.provider.id, { ...proper(w), state: (await startSignIn(w.provider)).state }, w.left.browser),
  ],
  ['without the cookie', 'sign_in_expired', (w) => completeSignIn(w.provider.id, proper(w), '')],
  [
    'from another browser',
    'sign_in_expired',
    async (w) => completeSignIn(w.provider.id, proper(w), (await startSignIn(w.provider)).browser),
  ],
  ['with the state for a cookie', 'sign_in_expired', (w) => completeSignIn(w.provider.id, proper(w), w.left.state)],
  [
    'at the path of another provider',
    'sign_in_expired',
    async (w) => completeSignIn((await newProvider(w.issuer.url)).id, proper(w), w.left.browser),
  ],
  ['at a path of no provider', 'sign_in_expired', (w) => completeSignIn('idp_0', proper(w), w.left.browser)],
  [
    'after ten minutes',
    'sign_in_expired',
    async (w) => {
      shiftClock(600_001)
      return finish(w)
    },
  ],
  [
    'of a provider that was disabled meanwhile',
    'provider_unavailable',
    async (w) => {
      await replaceProvider({ ...w.provider, isEnabled: false, revision: 2 })
      return finish(w)
    },
  ],
  [
    'of a provider that was removed meanwhile',
    'provider_unavailable',
    async (w) => {
      await removeProvider(w.provider)
      return finish(w)
    },
  ],
  [
    'of another issuer',
    'answer_invalid',
    (w) => completeSignIn(w.provider.id, { ...proper(w), iss: 'https://id.example.com' }, w.left.browser),
  ],
  [
    'that does not say of which issuer',
    'answer_invalid',
    (w) => completeSignIn(w.provider.id, { ...proper(w), iss: undefined }, w.left.browser),
  ],
  [
    'without a code',
    'answer_invalid',
    (w) => completeSignIn(w.provider.id, { ...proper(w), code: undefined }, w.left.browser),
  ],
  [
    'of an issuer that fails',
    'provider_error',
    (w) => completeSignIn(w.provider.id, { ...proper(w), error: 'server_error' }, w.left.browser),
  ],
  [
    'of somebody who refuses',
    'access_denied',
    (w) => completeSignIn(w.provider.id, { ...proper(w), error: 'access_denied' }, w.left.browser),
  ],
]

test.each(attacks)('an answer %s ends as %s, and its code is traded with nobody', async (_, error, attack) => {
  const each = await world()
  expect(await attack(each)).toEqual({ error, traceId: '' })
  expect(each.issuer.asked('/token')).toBe(0)
})

test('an attack with a wrong cookie or at a wrong path does not end the sign-in of whoever began it', async () => {
  const each = await world()
  await completeSignIn(each.provider.id, proper(each), 'x'.repeat(43))
  await completeSignIn((await newProvider(each.issuer.url)).id, proper(each), each.left.browser)
  expect(await finish(each)).toEqual({ code: expect.any(String) })
})

test('an answer counts once, also when it comes many times at once', async () => {
  const each = await world()
  const told = await Promise.all([1, 2, 3, 4, 5].map(() => finish(each)))
  expect(told.filter(({ code }) => code !== undefined)).toHaveLength(1)
  expect(told.filter(({ error }) => error === 'sign_in_expired')).toHaveLength(4)
  expect(await finish(each)).toMatchObject({ error: 'sign_in_expired' })
  expect(each.issuer.asked('/token')).toBe(1)
})

test('a code of the issuer that it has traded before signs nobody in', async () => {
  const each = await world()
  await finish(each)
  const again = await startSignIn(each.provider)
  each.issuer.instead.set('/token', () => ({
    status: 400,
    headers: { 'content-type': 'application/json' },
    body: '{"error":"invalid_grant","error_description":"<b>used</b>"}',
  }))
  const told = await completeSignIn(each.provider.id, validCallback(each.issuer, again), again.browser)
  expect(told).toEqual({ error: 'provider_error', traceId: '' })
})

test('a sign-in begins with providers only that are there, enabled, and speak OpenID Connect', async () => {
  const [off, directory] = [await newProvider('', { isEnabled: false }), await newProvider('', { type: 'LDAP' })]
  for (const id of [off.id, directory.id, 'idp_0', (await newCaller()).userId, '../x']) {
    expect([id, await errorCodeOf(Oidc.startSignIn(id, {}))]).toEqual([id, 'identity_provider_not_found'])
  }
})

/** A code of the platform that fetches tokens, and its browser. */
async function codeOf() {
  const each = await world()
  const { code = '' } = await finish(each)
  return { ...each, code, browser: each.left.browser }
}

test('a code of the platform fetches tokens once, for whichever of many callers comes first', async () => {
  const { code, browser } = await codeOf()
  const tried = await Promise.all([1, 2, 3, 4].map(() => errorCodeOf(exchange(code, browser, origin))))
  expect(tried.toSorted()).toEqual(['no error', ...Array(3).fill('sign_in_code_invalid')])
  await expectError(exchange(code, browser, origin), 'sign_in_code_invalid')
})

test('a code fetches nothing for another browser, and still fetches the tokens for its own', async () => {
  const { code, browser, provider } = await codeOf()
  const { browser: other } = await startSignIn(provider)
  for (const wrong of [other, '', code]) {
    await expectError(exchange(code, wrong, origin), 'sign_in_code_invalid')
  }
  await expectError(exchange(code, browser, origin), 'no error')
})

test.each<[string, (each: Awaited<ReturnType<typeof codeOf>>) => Promise<unknown>]>([
  ['after a minute', async () => shiftClock(60_001)],
  ['once its provider is disabled', ({ provider }) => replaceProvider({ ...provider, isEnabled: false })],
  ['once its provider is removed', ({ provider }) => removeProvider(provider)],
])('a code fetches nothing %s', async (_, happens) => {
  const each = await codeOf()
  await happens(each)
  await expectError(exchange(each.code, each.browser, origin), 'sign_in_code_invalid')
})

test('neither a state nor a code that was never given out fetches tokens', async () => {
  const { left, code, browser } = await codeOf()
  for (const wrong of [left.state, code.toUpperCase(), `${code}x`, 'x']) {
    await expectError(exchange(wrong, browser, origin), 'sign_in_code_invalid')
  }
})

test('one subject is two users where two organisations have the same issuer', async () => {
  const issuer = newIssuer()
  const providers = [await newProvider(issuer.url), await newProvider(issuer.url)]
  const callerOfSignIn = async (provider: ProviderRecord) => {
    const left = await startSignIn(provider)
    issuer.token = () => signed(issuer.claims('platform', left.nonce, nowSeconds()), issuer.key)
    const { code = '' } = await completeSignIn(provider.id, validCallback(issuer, left), left.browser)
    return verifyAccessToken((await exchange(code, left.browser, origin)).accessToken)
  }
  const callers = []
  for (const provider of providers) callers.push(await callerOfSignIn(provider))
  expect(callers.map(({ organisationId }) => organisationId)).toEqual(
    providers.map(({ organisationId }) => organisationId),
  )
  expect(new Set(callers.map(({ userId }) => userId)).size).toBe(2)
})
