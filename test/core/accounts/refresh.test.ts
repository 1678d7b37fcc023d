import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { refreshTokenSeconds } from '@platform/contract/auth'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { create, get, remove, update } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId, newSecret } from '@platform/core/id'
import { endSessionByToken, open, refresh, signIn, signOut } from '@platform/core/accounts/session'
import * as SignIn from '@platform/core/identity-providers/sign-in'
import {
  createColleague,
  type SignedInUser,
  setUpPlatform,
  errorCodeOf,
  signInUser,
  newOrigin,
  expectError,
} from '../../support/fixtures.ts'
import { countStoreCalls, beforeCommand } from '../../support/store-calls.ts'
import { pendingRecords } from '../support/outbox.ts'

/** What a session leaves in the store, and whom its end tells. */

let platform: SignedInUser
beforeAll(async () => {
  platform = await setUpPlatform()
})

const somebody = (): Promise<SignedInUser> => createColleague(platform.caller, 'Viewer')
const dead = 'invalid_refresh_token'
const dayMs = 24 * 3_600_000

/** The keys of the items behind a refresh token. */
function keysOf(refreshToken: string): { session: keys.Key; token: keys.Key } {
  const [sessionId = '', tokenId = ''] = refreshToken.split('.')
  return { session: keys.session(sessionId), token: keys.refreshToken(sessionId, tokenId) }
}

/** What is on record about a session. */
async function toldOf({ caller: { organisationId, sessionId } }: SignedInUser) {
  const records = await pendingRecords(organisationId)
  return records
    .filter(({ audit, events }) => audit?.resource === sessionId || events.some((event) => event.subject === sessionId))
    .map(({ audit, events, actor, address }) => ({ ...audit, events: events.map(({ name }) => name), actor, address }))
}

test('a session and its tokens are forgotten by the store a day after their end, and not before', async () => {
  const own = await somebody()
  const isRight = async (key: keys.Key, endsAtMs: number) => {
    const ttlMs = Number((await get(key))?.['ttl']) * 1000
    expect(ttlMs - endsAtMs).toBeGreaterThanOrEqual(dayMs)
    expect(ttlMs - endsAtMs).toBeLessThan(dayMs + 60_000)
  }
  const first = keysOf(own.refreshToken)
  const signedInMs = Number((await get(first.session))?.['createdAtMs'])
  for (const key of [first.session, first.token]) await isRight(key, signedInMs + refreshTokenSeconds * 1000)
  expect((await get(first.token))?.['expiresAtMs']).toBeLessThan(signedInMs + refreshTokenSeconds * 1000 + 60_000)
  advanceClock(dayMs)
  const next = keysOf((await refresh(own)).refreshToken)
  const refreshedMs = Number((await get(first.session))?.['lastUsedAtMs'])
  expect(refreshedMs - signedInMs).toBeGreaterThanOrEqual(dayMs)
  for (const key of [first.session, next.token]) await isRight(key, refreshedMs + refreshTokenSeconds * 1000)
  advanceClock(dayMs)
  const signedOutMs = now()
  await signOut(own.caller)
  await isRight(first.session, signedOutMs + refreshTokenSeconds * 1000)
  expect(await get(first.session)).not.toHaveProperty('gsi1pk')
})

test('a session that nobody’s request has opened came from nowhere', async () => {
  const session = open({ id: newId('user'), organisationId: newId('org'), roles: [] })
  await transact(session.writes)
  expect(await get(keys.session(session.id))).toMatchObject({ id: session.id, address: '', epoch: 0 })
})

test('a sign-in and a sign-out are on record, with who and from where', async () => {
  const own = await somebody()
  await signOut({ ...own.caller, address: '203.0.113.7' })
  const { id, caller } = own
  const opened = (await pendingRecords(caller.organisationId)).find(({ audit }) => audit?.resource === caller.sessionId)
  expect(opened?.events).toMatchObject([
    { name: 'user.signed_in', subject: id, data: { userId: id, username: own.username, sessionId: caller.sessionId } },
  ])
  expect(await toldOf(own)).toMatchObject([
    { action: 'session.open', address: expect.stringMatching(/^198\.51\.100\./) },
    { action: 'session.close', address: '203.0.113.7', events: [] },
  ])
})

test('a token that was used and comes again is told as theft, once', async () => {
  const own = await somebody()
  const next = await refresh(own)
  for (const token of [own, own, next]) await expectError(refresh(token, newOrigin()), dead)
  const told = (await toldOf(own)).filter(({ action }) => action === 'session.revoke')
  expect(told).toMatchObject([{ detail: 'A refresh token was used twice', events: ['session.reuse_detected'] }])
})

test('a token that another one uses at the same moment is told as theft, too', async () => {
  const own = await somebody()
  const isUsed = beforeCommand(/^TransactWrite/, () => refresh(own))
  await expectError(refresh(own), dead)
  expect(isUsed()).toBe(true)
  expect((await toldOf(own)).flatMap(({ events }) => events)).toContain('session.reuse_detected')
})

test('a session that ends while it is refreshed gives no token, and that is no theft', async () => {
  const own = await somebody()
  const isEnded = beforeCommand(/^TransactWrite/, () => signOut(own.caller))
  await expectError(refresh(own), dead)
  expect(isEnded()).toBe(true)
  expect((await get(keysOf(own.refreshToken).token))?.['usedAtMs']).toBeUndefined()
  expect((await toldOf(own)).map(({ action }) => action)).toEqual(['session.open', 'session.close'])
})

test('what is no refresh token is refused without asking the store', async () => {
  const { refreshToken } = await somebody()
  const [sessionId = '', tokenId = '', secret = ''] = refreshToken.split('.')
  const calls = await countStoreCalls(async () => {
    for (const text of [
      `${newId('job')}.${tokenId}.${secret}`,
      `${sessionId}.${tokenId.slice(1)}.${secret}`,
      `${sessionId}.x${tokenId}.${secret}`,
      `${sessionId}.${tokenId}x.${secret}`,
      `${sessionId}.${tokenId}.${secret}.`,
      `x.${tokenId}.${secret}`,
      '',
    ]) {
      await expectError(refresh({ refreshToken: text }), dead)
    }
  })
  expect(calls).toBe(0)
  await expectError(refresh({ refreshToken }), 'no error')
})

test('a token of a session that is no more, and one that its session does not know, are refused', async () => {
  const [gone, other] = [await somebody(), await somebody()]
  await transact([remove(keysOf(gone.refreshToken).session)])
  await expectError(refresh(gone), dead)
  await transact([remove(keysOf(other.refreshToken).token)])
  await expectError(refresh(other), dead)
  const [sessionId = '', , secret = ''] = (await somebody()).refreshToken.split('.')
  await expectError(refresh({ refreshToken: `${sessionId}.${newSecret().slice(0, 12)}.${secret}` }), dead)
})

test('a token that has expired is refused, though its session lives', async () => {
  const own = await somebody()
  await update(keysOf(own.refreshToken).token, { set: { expiresAtMs: now() - 1 } })
  await expectError(refresh(own), dead)
  expect(await get(keysOf(own.refreshToken).session)).not.toHaveProperty('revokedAtMs')
})

test('the session of a user who is no more is not refreshed', async () => {
  const own = await somebody()
  await transact([remove(keys.user(own.caller.organisationId, own.id))])
  await expectError(refresh(own), dead)
})

test('a session whose user nobody vouches for any more ends, and does not come back with who did', async () => {
  const own = await somebody()
  const providerId = newId('idp')
  await transact([create(keys.identityProvider(providerId), { isEnabled: true })])
  await update(keys.user(own.caller.organisationId, own.id), { set: { authProvider: providerId } })
  const next = await refresh(own)
  await update(keys.identityProvider(providerId), { set: { isEnabled: false } })
  await expectError(refresh(next, { address: '203.0.113.8' }), dead)
  await update(keys.identityProvider(providerId), { set: { isEnabled: true } })
  await expectError(refresh(next), dead)
  expect((await toldOf(own)).filter(({ action }) => action === 'session.revoke')).toMatchObject([
    { detail: 'The identity provider is disabled or gone', address: '203.0.113.8', events: [] },
  ])
  await transact([remove(keys.identityProvider(providerId))])
})

test('a session that has ended costs one look', async () => {
  const own = await somebody()
  await signOut(own.caller)
  expect(await countStoreCalls(async () => expect(await errorCodeOf(refresh(own))).toBe(dead))).toBe(1)
})

test('who holds a refresh token, used or not, ends its session by it; anything else ends nothing', async () => {
  for (const uses of [0, 1]) {
    const own = await somebody()
    const current = uses === 0 ? own : await refresh(own)
    for (const text of ['', 'x', own.refreshToken.replace(/[^.]+$/, newSecret())])
      await endSessionByToken(text, newOrigin())
    await endSessionByToken(own.refreshToken, { address: '203.0.113.9' })
    await endSessionByToken(own.refreshToken, newOrigin())
    await expectError(refresh(current), dead)
    const ends = (await toldOf(own)).filter(({ action }) => action !== 'session.open')
    expect(ends).toMatchObject([{ action: 'session.close', address: '203.0.113.9' }])
  }
})

test('a program has no session to sign out of', async () => {
  const { caller } = await somebody()
  expect(await countStoreCalls(() => signOut({ ...caller, sessionId: '', tokenId: newId('tok') }))).toBe(0)
})

test('who has a password here signs in by it alone, and no directory is looked for', async () => {
  const own = await somebody()
  expect(await countStoreCalls(() => SignIn.signIn(own.credentials, newOrigin()))).toBe(
    await countStoreCalls(() => signIn(own.credentials, newOrigin())),
  )
  const tokens = await SignIn.signIn(own.credentials, newOrigin())
  expect(tokens).toMatchObject({ tokenType: 'Bearer', expiresIn: 900 })
  expect(await refresh(tokens)).toMatchObject({ tokenType: 'Bearer' })
  const wrong = { ...own.credentials, password: 'wrong password' }
  await expectError(SignIn.signIn(wrong, newOrigin()), 'invalid_credentials')
  expect(await signInUser(own.username)).toMatchObject({ id: own.id })
})
