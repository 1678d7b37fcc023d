// First: it sets what the platform may reach, which core reads when it is imported.
import { newIssuer } from '../../support/oidc-issuers.ts'
import { beforeAll, expect, test, vi } from 'vitest'
import { nowSeconds } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { batchPut, query } from '@platform/core/db/table'
import { exchange } from '@platform/core/identity-providers/oidc/code'
import { verifyAccessToken } from '@platform/core/signing/access-token'
import { signed } from '../../../support/hostile-issuer.ts'
import { onStoreCall, type StoreCall } from '../../../support/store-calls.ts'
import { errorCodeOf } from '../../../support/fixtures.ts'
import { completeSignIn, startSignIn, newProvider, validCallback, preparePortal } from '../../support/oidc.ts'

beforeAll(async () => {
  await preparePortal()
  // What breaks off is logged.
  vi.spyOn(process.stdout, 'write').mockReturnValue(true)
})
const origin = { address: '192.0.2.1' }
const issuer = newIssuer()

/** A sign-in that has left and may come back. */
async function leaving(provider: Awaited<ReturnType<typeof newProvider>>) {
  const left = await startSignIn(provider)
  issuer.token = () => signed(issuer.claims('platform', left.nonce, nowSeconds()), issuer.key)
  return { ...left, answer: validCallback(issuer, left) }
}

/** Signs in to the end; answers whom the tokens speak for. */
async function signIn(provider: Awaited<ReturnType<typeof newProvider>>) {
  const { answer, browser } = await leaving(provider)
  const { code = '' } = await completeSignIn(provider.id, answer, browser)
  return verifyAccessToken((await exchange(code, browser, origin)).accessToken)
}

const usersOf = async (organisationId: string) => (await query({ pk: keys.user(organisationId, '').pk })).items
const sessionsOf = async (userId: string) => (await query({ index: 'gsi1', pk: keys.userSessions(userId) })).items

/** Loses the n-th call to the store, or its answer; answers whether there were so many. */
async function losing(n: number, when: 'before' | 'after', work: () => Promise<unknown>): Promise<boolean> {
  let count = 0
  const lose = async () => {
    if (++count === n) throw new Error('lost')
  }
  using _ = onStoreCall({ [when]: lose })
  await work().catch(() => undefined)
  return count >= n
}

test.each(['before', 'after'] as const)(
  'a sign-in that breaks off %s any call to the store leaves one user at most, and nothing to sign in with',
  async (when) => {
    let wasLost = true
    for (let n = 1; wasLost; n++) {
      const provider = await newProvider(issuer.url)
      const { answer, browser } = await leaving(provider)
      wasLost = await losing(n, when, () => completeSignIn(provider.id, answer, browser))
      const users = await usersOf(provider.organisationId)
      expect([n, users.length]).toEqual([n, users.length > 0 ? 1 : 0])
      for (const user of users) expect(await sessionsOf(String(user['id']))).toEqual([])

      const { userId } = await signIn(provider)
      expect((await usersOf(provider.organisationId)).map((user) => user['id'])).toEqual([userId])
    }
  },
)

test.each(['before', 'after'] as const)(
  'an exchange that breaks off %s any call to the store has opened one session at most',
  async (when) => {
    let wasLost = true
    for (let n = 1; wasLost; n++) {
      const provider = await newProvider(issuer.url)
      const { answer, browser } = await leaving(provider)
      const { code = '' } = await completeSignIn(provider.id, answer, browser)
      wasLost = await losing(n, when, () => exchange(code, browser, origin))
      await exchange(code, browser, origin).catch(() => undefined)
      const [user] = await usersOf(provider.organisationId)
      expect([n, (await sessionsOf(String(user?.['id']))).length]).toEqual([n, 1])
    }
  },
)

test.each(['oidc.attemptConsumed', 'oidc.userKnown'])(
  'a sign-in that breaks off at %s begins again, as the same user',
  async (failpoint) => {
    const provider = await newProvider(issuer.url)
    const { answer, browser } = await leaving(provider)
    vi.stubEnv('PLAT_FAILPOINT', `${failpoint}=throw`)
    vi.resetModules()
    // A process of its own, as armed as one would be.
    const armed = await import('@platform/core/identity-providers/oidc/oidc')
    vi.unstubAllEnvs()
    const location = await armed.completeSignIn(provider.id, answer, { browser, origin })
    expect(new URL(location).searchParams.get('error')).toBe('internal_error')
    expect(await completeSignIn(provider.id, answer, browser)).toMatchObject({ error: 'sign_in_expired' })
    const [first, second] = [await signIn(provider), await signIn(provider)]
    expect(second.userId).toBe(first.userId)
    expect(await usersOf(provider.organisationId)).toHaveLength(1)
  },
)

/** Just before a session is written, something else stands in its place. */
const occupy = async ({ command, input }: StoreCall) => {
  if (!command.startsWith('TransactWrite')) return
  const session = input.TransactItems.find(({ Put }: any) => Put?.Item.sk === keys.session('').sk).Put.Item
  await batchPut([{ pk: session.pk, sk: session.sk }])
}

test('an exchange whose session cannot be written gives no tokens, and leaves its code good', async () => {
  const provider = await newProvider(issuer.url)
  const { answer, browser } = await leaving(provider)
  const { code = '' } = await completeSignIn(provider.id, answer, browser)
  {
    using _ = onStoreCall({ before: occupy })
    expect(await errorCodeOf(exchange(code, browser, origin))).toBe('conflict')
  }
  expect(await exchange(code, browser, origin)).toMatchObject({ tokenType: 'Bearer' })
})
