// Imported first, because it sets the outbound allowlist, which core reads when it is imported.
import { newIssuer } from '../../support/oidc-issuers.ts'
import { nowSeconds } from '@platform/core/clock'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { batchPut, query } from '@platform/core/db/table'
import { exchange } from '@platform/core/identity-providers/oidc/code'
import * as Oidc from '@platform/core/identity-providers/oidc/oidc'
import type { ProviderRecord } from '@platform/core/identity-providers/record'
import { verifyAccessToken } from '@platform/core/signing/access-token'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { advanceClock } from '../../../support/clock.ts'
import { errorCodeOf, expectError, newCaller } from '../../../support/fixtures.ts'
import { json, signed } from '../../../support/hostile-issuer.ts'
import { captureLog } from '../../../support/log.ts'
import { onStoreCall, type StoreCall } from '../../../support/store-calls.ts'
import * as oidc from '../../support/oidc.ts'
import { readPendingEvents } from '../../support/outbox.ts'
import { removeProvider } from '../../support/providers.ts'

const { completeSignIn, newProvider, replaceProvider, startSignIn, validCallback } = oidc

beforeAll(async () => {
  await oidc.preparePortal()
  // Hides log lines, because failed sign-ins are logged.
  vi.spyOn(process.stdout, 'write').mockReturnValue(true)
})
const origin = { address: '192.0.2.1' }
const sharedIssuer = newIssuer()

async function beginSignIn(issuer = newIssuer(), existing?: ProviderRecord, returnTo?: string) {
  const provider = existing ?? (await newProvider(issuer.url))
  const signIn = await startSignIn(provider, returnTo)
  issuer.token = () => signed(issuer.claims('platform', signIn.nonce, nowSeconds()), issuer.key)
  const callback: Parameters<typeof completeSignIn>[1] = validCallback(issuer, signIn)
  const { state, browser } = signIn
  return { issuer, provider, state, browser, callback, complete: () => completeSignIn(provider.id, callback, browser) }
}
type Started = Awaited<ReturnType<typeof beginSignIn>>

async function finishSignIn(issuer = newIssuer(), existing?: ProviderRecord) {
  const signIn = await beginSignIn(issuer, existing)
  const { code = '' } = await signIn.complete()
  return { ...signIn, code, exchange: () => exchange(code, [signIn.browser], origin) }
}

const signInTo = async (provider: ProviderRecord, issuer = sharedIssuer) =>
  verifyAccessToken((await (await finishSignIn(issuer, provider)).exchange()).accessToken)

type Forgery = Partial<Started['callback']> & { providerId?: string; browser?: string }
type Forge = (signIn: Started) => Forgery | Promise<Forgery>
const expiredForgeries: [string, Forge][] = [
  ['without a state', () => ({ state: undefined })],
  ['with an unknown state', () => ({ state: 'x'.repeat(43) })],
  ['with the state of another sign-in', async ({ provider }) => ({ state: (await startSignIn(provider)).state })],
  ['without the cookie', () => ({ browser: '' })],
  ['with the cookie of another browser', async ({ provider }) => ({ browser: (await startSignIn(provider)).browser })],
  ['with the state as cookie', ({ state }) => ({ browser: state })],
  ['at the path of another provider', async ({ issuer }) => ({ providerId: (await newProvider(issuer.url)).id })],
  ['at the path of an unknown provider', () => ({ providerId: 'idp_0' })],
  ['after ten minutes', () => (advanceClock(600_001), {})],
]
test.each<[string, string, Forge]>([
  ...expiredForgeries.map(([name, forge]): [string, string, Forge] => [name, 'sign_in_expired', forge]),
  [
    'of a disabled provider',
    'provider_unavailable',
    async ({ provider }) => (await replaceProvider({ ...provider, isEnabled: false, revision: 2 }), {}),
  ],
  ['of a removed provider', 'provider_unavailable', async ({ provider }) => (await removeProvider(provider), {})],
  ['of another issuer', 'answer_invalid', () => ({ iss: 'https://id.example.com' })],
  ['without an issuer', 'answer_invalid', () => ({ iss: undefined })],
  ['without a code', 'answer_invalid', () => ({ code: undefined })],
  ['with an error of the issuer', 'provider_error', () => ({ error: 'server_error' })],
  ['with a denial', 'access_denied', () => ({ error: 'access_denied' })],
])('rejects a callback %s as %s, keeps its page and sends no code to the issuer', async (_, error, forge) => {
  const signIn = await beginSignIn(undefined, undefined, '/jobs?status=Failed')
  const { providerId = signIn.provider.id, browser = signIn.browser, ...callback } = await forge(signIn)
  const outcome = await completeSignIn(providerId, { ...signIn.callback, ...callback }, browser)
  const isKnown = !('state' in callback) && providerId === signIn.provider.id
  expect(outcome).toEqual({ error, traceId: '', ...(isKnown && { returnTo: '/jobs?status=Failed' }) })
  expect(signIn.issuer.countRequests('/token')).toBe(0)
  expect(await readPendingEvents(signIn.provider, 'identity.provider_failed')).toEqual([])
})

test('completes a sign-in after callbacks with a wrong cookie and a wrong path', async () => {
  const { issuer, provider, callback, browser, complete } = await beginSignIn()
  await completeSignIn(provider.id, callback, 'x'.repeat(43))
  await completeSignIn((await newProvider(issuer.url)).id, callback, browser)
  expect(await complete()).toEqual({ code: expect.any(String) })
})

test('accepts one of several concurrent callbacks', async () => {
  const { issuer, complete } = await beginSignIn(undefined, undefined, '/jobs')
  const outcomes = await Promise.all([1, 2, 3, 4, 5].map(complete))
  expect(outcomes.filter(({ code }) => code !== undefined)).toHaveLength(1)
  expect(outcomes.filter(({ error, returnTo }) => error === 'sign_in_expired' && returnTo === '/jobs')).toHaveLength(4)
  expect(await complete()).toMatchObject({ error: 'sign_in_expired' })
  expect(issuer.countRequests('/token')).toBe(1)
})

test.each([
  ['invalid_client', 'It rejects the client or its secret', 1],
  ['unauthorized_client', 'Check clientId, and allow', 1],
  ['invalid_grant', 'The code or refresh token has expired', 0],
  ['invalid_request', 'Register the client', 0],
])(
  'logs the advice for %s, and reports it to administrators if no browser can cause it',
  async (error, advice, count) => {
    const { issuer, provider, complete } = await beginSignIn()
    issuer.overrides.set('/token', () => json({ error }, 400))
    const { PLAT_LOG_LEVEL } = config
    onTestFinished(() => void Object.assign(config, { PLAT_LOG_LEVEL }))
    Object.assign(config, { PLAT_LOG_LEVEL: 'info' })
    const lines = await captureLog(async () =>
      expect(await complete()).toEqual({ error: 'provider_error', traceId: '' }),
    )
    const detail = expect.stringContaining(`The provider responded with the error ${error}. ${advice}`)
    expect(lines).toContainEqual(expect.objectContaining({ detail }))
    const events = await readPendingEvents(provider, 'identity.provider_failed')
    const reports = Array.from({ length: count }, () => ({ problem: 'answer_invalid', detail }))
    expect(events.map(({ data }) => data)).toMatchObject(reports)
  },
)

test('starts sign-ins only with enabled OpenID Connect providers', async () => {
  const [disabledProvider, ldapProvider] = [
    await newProvider('', { isEnabled: false }),
    await newProvider('', { type: 'LDAP' }),
  ]
  for (const id of [disabledProvider.id, ldapProvider.id, 'idp_0', (await newCaller()).userId, '../x']) {
    expect([id, await errorCodeOf(Oidc.startSignIn(id, {}))]).toEqual([id, 'identity_provider_not_found'])
  }
})

test('exchanges a code once, also among concurrent requests', async () => {
  const signIn = await finishSignIn()
  const outcomes = await Promise.all([1, 2, 3, 4].map(() => errorCodeOf(signIn.exchange())))
  expect(outcomes.toSorted()).toEqual(['no error', ...Array(3).fill('sign_in_code_invalid')])
  await expectError(signIn.exchange(), 'sign_in_code_invalid')
})

test('rejects a wrong code and a code of another browser without consuming it', async () => {
  const signIn = await finishSignIn()
  const { code, browser, provider, state } = signIn
  for (const otherBrowser of [(await startSignIn(provider)).browser, '', code]) {
    await expectError(exchange(code, [otherBrowser], origin), 'sign_in_code_invalid')
  }
  for (const wrongCode of [state, code.toUpperCase(), `${code}x`, 'x']) {
    await expectError(exchange(wrongCode, [browser], origin), 'sign_in_code_invalid')
  }
  await expectError(signIn.exchange(), 'no error')
})

test.each<[string, (signIn: Started) => unknown]>([
  ['after a minute', () => advanceClock(60_001)],
  ['of a disabled provider', ({ provider }) => replaceProvider({ ...provider, isEnabled: false })],
  ['of a removed provider', ({ provider }) => removeProvider(provider)],
])('rejects a code %s', async (_, invalidate) => {
  const signIn = await finishSignIn()
  await invalidate(signIn)
  await expectError(signIn.exchange(), 'sign_in_code_invalid')
})

const userIdsOf = async ({ organisationId }: ProviderRecord) =>
  (await query({ pk: keys.user(organisationId, '').pk })).items.map((user) => String(user['id']))
const sessionsOf = async (userId: string) => (await query({ index: 'gsi1', pk: keys.userSessions(userId) })).items

/** Fails the n-th store call or loses its response. Returns whether the call was reached. */
async function runWithFailureAt(nth: number, when: 'before' | 'after', work: () => Promise<unknown>): Promise<boolean> {
  let calls = 0
  const fail = async () => {
    if (++calls === nth) throw new Error('lost')
  }
  using _ = onStoreCall({ [when]: fail })
  await work().catch(() => undefined)
  return calls >= nth
}

test.each(['before', 'after'] as const)(
  'leaves at most one user and no session if a sign-in fails %s any store call',
  async (when) => {
    for (let [nth, isReached] = [1, true]; isReached; nth++) {
      const { provider, complete } = await beginSignIn(sharedIssuer)
      isReached = await runWithFailureAt(nth, when, complete)
      const users = await userIdsOf(provider)
      expect([nth, users.length]).toEqual([nth, Math.min(users.length, 1)])
      for (const user of users) expect(await sessionsOf(user)).toEqual([])
      const { userId } = await signInTo(provider)
      expect(await userIdsOf(provider)).toEqual([userId])
    }
  },
)

test.each(['before', 'after'] as const)(
  'opens one session if an exchange fails %s any store call and is retried',
  async (when) => {
    for (let [nth, isReached] = [1, true]; isReached; nth++) {
      const signIn = await finishSignIn(sharedIssuer)
      isReached = await runWithFailureAt(nth, when, signIn.exchange)
      await signIn.exchange().catch(() => undefined)
      const [user = ''] = await userIdsOf(signIn.provider)
      expect([nth, (await sessionsOf(user)).length]).toEqual([nth, 1])
    }
  },
)

test.each(['oidc.attemptConsumed', 'oidc.userKnown'])(
  'signs in the same user after a failure at %s',
  async (failpoint) => {
    const { provider, callback, browser, complete } = await beginSignIn(sharedIssuer)
    vi.stubEnv('PLAT_FAILPOINT', `${failpoint}=throw`)
    vi.resetModules()
    const crashingOidc = await import('@platform/core/identity-providers/oidc/oidc')
    vi.unstubAllEnvs()
    const location = await crashingOidc.completeSignIn(provider.id, callback, { browsers: [browser], origin })
    expect(new URL(location).searchParams.get('error')).toBe('internal_error')
    expect(await complete()).toMatchObject({ error: 'sign_in_expired' })
    const [firstSignIn, secondSignIn] = [await signInTo(provider), await signInTo(provider)]
    expect(secondSignIn.userId).toBe(firstSignIn.userId)
    expect(await userIdsOf(provider)).toHaveLength(1)
  },
)

test('keeps the code valid if the session cannot be stored', async () => {
  const signIn = await finishSignIn(sharedIssuer)
  const occupySessionKey = async ({ command, input }: StoreCall) => {
    if (!command.startsWith('TransactWrite')) return
    const session = input.TransactItems.find(({ Put }: any) => Put?.Item.sk === keys.session('').sk).Put.Item
    await batchPut([{ pk: session.pk, sk: session.sk }])
  }
  {
    using _ = onStoreCall({ before: occupySessionKey })
    await expectError(signIn.exchange(), 'conflict')
  }
  expect(await signIn.exchange()).toMatchObject({ tokenType: 'Bearer' })
})
