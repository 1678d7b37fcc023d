import { refreshTokenSeconds } from '@platform/contract/auth'
import { changePassword } from '@platform/core/accounts/change-password'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import * as Session from '@platform/core/accounts/session'
import { endSessionByToken, refresh, signIn, signOut } from '@platform/core/accounts/session'
import { profile } from '@platform/core/accounts/user'
import { now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { create, get, remove, update } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { platformError } from '@platform/core/error'
import { newId, newSecret } from '@platform/core/id'
import * as SignIn from '@platform/core/identity-providers/sign-in'
import { verifyAccessToken } from '@platform/core/signing/access-token'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import {
  advanceToNextMinute,
  createColleague,
  errorCodeOf,
  errorOf,
  expectError,
  newOrigin,
  password,
  setUpPlatform,
  type SignedInUser,
  signInUser,
  userRequest,
} from '../../support/fixtures.ts'
import { isLong } from '../../support/long.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { runBefore } from '../support/interleaving.ts'
import { readPendingRecords } from '../support/outbox.ts'
import { measureUsage } from '../support/usage.ts'
import { readTable } from '../../support/read-table.ts'

// Low limits keep the tests fast, because every attempt hashes a password.
vi.hoisted(() =>
  Object.assign(process.env, { PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE: '8', PLAT_LIMIT_SIGN_INS_PER_MINUTE: '10' }),
)

let platform: SignedInUser
beforeAll(async () => {
  platform = await setUpPlatform()
})

const newUser = (): Promise<SignedInUser> => createColleague(platform.caller, 'Viewer')
const startInBrowser = ({ credentials }: Pick<SignedInUser, 'credentials'>, device = '') =>
  SignIn.startBrowserSession(credentials, { browsers: [], origin: { ...newOrigin(), device } })
const dayMs = 24 * 3_600_000
const newPassword = 'another long sentence'
const change = ({ caller }: SignedInUser, currentPassword = password) =>
  changePassword(caller, { currentPassword, newPassword }, newOrigin())
const endAll = ({ id }: SignedInUser) => UserAdmin.endUserSessions(platform.caller, id)

const expectOpen = async (tokens: { refreshToken: string }) =>
  expect(await refresh(tokens)).toMatchObject({ tokenType: 'Bearer', expiresIn: 900 })
const expectEnded = (tokens: { refreshToken: string }) => expectError(refresh(tokens), 'invalid_refresh_token')

function keysOf(refreshToken: string): { session: keys.Key; token: keys.Key } {
  const [sessionId = '', tokenId = ''] = refreshToken.split('.')
  return { session: keys.session(sessionId), token: keys.refreshToken(sessionId, tokenId) }
}

async function recordsOf({ caller: { organisationId, sessionId } }: SignedInUser) {
  const records = await readPendingRecords(organisationId)
  return records
    .filter(({ audit, events }) => audit?.resource === sessionId || events.some((event) => event.subject === sessionId))
    .map(({ audit, events, actor, address }) => ({ ...audit, events: events.map(({ name }) => name), actor, address }))
}

describe('signing in', () => {
  const limit = config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE
  const wrongFor = ({ username }: { username: string }) => ({ username, password: 'wrong password' })
  const guess = (user: { username: string }, origin = newOrigin()) => errorCodeOf(signIn(wrongFor(user), origin))

  test('returns an access token of the user', async () => {
    const { accessToken } = await signIn(platform.credentials, newOrigin())
    const caller = await verifyAccessToken(accessToken)
    expect(caller.permissions.has('platform:admin')).toBe(true)
    expect(await profile(caller)).toMatchObject({ username: 'admin', authProvider: 'local', roles: ['PlatformAdmin'] })
  })

  test('limits the wrong passwords of a user per minute, also concurrent ones, then rejects all sign-ins', async () => {
    const user = await newUser()
    advanceToNextMinute()
    const codes = await Promise.all(Array.from({ length: limit + 3 }, () => guess(user)))
    expect(codes.toSorted()).toEqual([...Array(limit).fill('invalid_credentials'), ...Array(3).fill('rate_limited')])
    await expectError(signIn(user.credentials, newOrigin()), 'rate_limited')
    advanceClock(60_000)
    await signIn(user.credentials, newOrigin())
  })

  test('rejects the correct password when concurrent failures exceed the limit', async () => {
    const user = await newUser()
    advanceToNextMinute()
    const guessAll = async () => {
      for (let count = 0; count < limit; count++) await guess(user)
    }
    runBefore(/^TransactWrite/, guessAll)
    await expectError(signIn(user.credentials, newOrigin()), 'rate_limited')
  })

  test('counts an attempt before it compares the password, and gives it back if the password is correct', async () => {
    const user = await newUser()
    advanceToNextMinute()
    const codes: string[] = []
    const guessAll = async () => {
      for (let count = 0; count < limit; count++) codes.push(await guess(user))
    }
    runBefore(/^TransactWrite/, guessAll, 2)
    await signIn(user.credentials, newOrigin())
    codes.push(await guess(user), await guess(user))
    const expectedCodes = Array(limit - 1).fill('invalid_credentials')
    expect(codes).toEqual([...expectedCodes, 'rate_limited', 'invalid_credentials', 'rate_limited'])
  })

  test.each([
    ['conflict', 'a sign-in', /^TransactWrite/, 2],
    ['database_unavailable', 'a sign-in', /^Get/, 1],
    ['database_unavailable', 'a change of the password', /^TransactWrite/, 2],
  ] as const)('does not count %s of %s with the correct password as a failure', async (code, kind, command, nth) => {
    const user = await newUser()
    const act = () => (kind === 'a sign-in' ? signIn(user.credentials, newOrigin()) : change(user))
    advanceToNextMinute()
    for (let count = 0; count < limit; count++) {
      runBefore(command, () => Promise.reject(platformError(code)), nth)
      await expectError(act(), code)
    }
    await act()
  })

  test('limits the sign-ins of a user per minute separately from failures', async () => {
    advanceToNextMinute()
    const user = await newUser()
    const origin = newOrigin()
    for (let count = 1; count < config.PLAT_LIMIT_SIGN_INS_PER_MINUTE; count++) await signIn(user.credentials, origin)
    const { extra } = await errorOf(signIn(user.credentials, newOrigin()))
    expect(extra.retryAfterSeconds).toBeGreaterThan(0)
    advanceClock(60_000)
    await signIn(user.credentials, origin)
  })

  test.runIf(isLong)(
    'at most 100 guesses of strangers are checked in any hour; devices and sessions of the user are not limited',
    async () => {
      const user = await newUser()
      const device = (await startInBrowser(user)).device ?? ''
      advanceToNextMinute()
      const codes: string[] = []
      for (let network = 0; network < 200; network++) {
        advanceClock(17_900)
        codes.push(await guess(user, { address: `10.1.${network}.1` }))
      }
      expect(codes.filter((code) => code === 'invalid_credentials')).toHaveLength(100)
      const { code, extra } = await errorOf(signIn(user.credentials, { address: '192.0.2.1' }))
      expect([code, extra.retryAfterSeconds]).toEqual(['rate_limited', expect.any(Number)])
      await startInBrowser(user, device)
      await expectOpen(user)
      await change(user)
      advanceClock(extra.retryAfterSeconds! * 1000)
      expect(await guess(user, { address: '192.0.2.1' })).toBe('invalid_credentials')
    },
  )

  test.each([
    ['IPv4 /24', '203.0.113.1', '203.0.113.200', '203.0.114.1'],
    ['IPv6 /56', '2001:db8:1:1::1', '2001:db8:1:ff::1', '2001:db8:1:100::1'],
    ['IPv4-mapped /24', '::ffff:198.18.0.1', '198.18.0.9', '::ffff:198.18.1.1'],
  ])('failures limit a user in their own network only: %s', async (_, address, neighbour, stranger) => {
    const user = await newUser()
    advanceToNextMinute()
    for (let count = 0; count < limit; count++) await guess(user, { address })
    await expectError(signIn(user.credentials, { address: neighbour }), 'rate_limited')
    await signIn(user.credentials, { address: stranger })
  })

  test('failures with a device cookie limit only that device, and the cookie does not exempt another user from limits', async () => {
    const [user, otherUser] = [await newUser(), await newUser()]
    const device = (await startInBrowser(user)).device ?? ''
    advanceToNextMinute()
    const guessWith = (who: SignedInUser) => errorCodeOf(startInBrowser({ credentials: wrongFor(who) }, device))
    for (let count = 0; count < limit; count++) expect(await guessWith(user)).toBe('invalid_credentials')
    expect(await guessWith(user)).toBe('rate_limited')
    await signIn(user.credentials, newOrigin())
    for (let count = 0; count < limit; count++) await guess(otherUser)
    expect(await errorCodeOf(startInBrowser(otherUser, device))).toBe('rate_limited')
    advanceClock(60_000)
    expect((await startInBrowser(otherUser, device)).device).toBe(device)
    expect((await startInBrowser(otherUser, 'x'.repeat(43))).device).not.toBe('x'.repeat(43))
    advanceClock(366 * dayMs)
    expect((await startInBrowser(user, device)).device).not.toBe(device)
  })

  test('counts failures per IPv6 network', async () => {
    advanceToNextMinute()
    for (let count = 0; count < config.PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE; count++) {
      const origin = { address: `2001:db8:0:1::${(count + 1).toString(16)}` }
      expect(await guess({ username: `unknown-${count}` }, origin)).toBe('invalid_credentials')
    }
    expect(await guess({ username: 'unknown' }, { address: '2001:db8:0:1:ffff::1' })).toBe('rate_limited')
    expect(await guess({ username: 'unknown' }, { address: '2001:db8:0:2::1' })).toBe('invalid_credentials')
  })

  test.each([
    ['local sign-in', signIn],
    ['sign-in with directories', SignIn.signIn],
  ] as const)('%s takes the same calls for known and unknown users', async (_, method) => {
    const measureGuess = (user: { username: string }) =>
      measureUsage(() => expectError(method(wrongFor(user), newOrigin()), 'invalid_credentials'))
    const knownUserMs = await measureGuess(await newUser())
    const unknownUserMs = await measureGuess(userRequest())
    expect(knownUserMs.usage.calls.toSorted()).toEqual(unknownUserMs.usage.calls.toSorted())
    expect(knownUserMs.usage.rounds).toBe(unknownUserMs.usage.rounds)
  })

  test('does not store a password that was typed as the username', async () => {
    const typedPassword = 'my-own-long-password'
    await expectError(signIn({ username: typedPassword, password: 'any password' }, newOrigin()), 'invalid_credentials')
    const text = JSON.stringify(await readTable())
    expect(text).toContain('CALL-COUNT#failed-sign-ins:')
    expect(text.toLowerCase()).not.toContain(typedPassword)
  })

  test('records sign-in and sign-out with user and address', async () => {
    const user = await newUser()
    const { id, caller, username } = user
    await signOut({ ...caller, address: '203.0.113.7' })
    const records = await readPendingRecords(caller.organisationId)
    const { sessionId } = caller
    expect(records.find(({ audit }) => audit?.resource === sessionId)?.events).toMatchObject([
      { name: 'user.signed_in', subject: id, data: { userId: id, username, sessionId } },
    ])
    expect(await recordsOf(user)).toMatchObject([
      { action: 'session.open', address: expect.stringMatching(/^198\.51\.100\./) },
      { action: 'session.close', address: '203.0.113.7', events: [] },
    ])
  })
})

describe('refreshing', () => {
  test('replaces the token; reuse ends the session and is recorded once', async () => {
    const user = await newUser()
    const successor = await refresh(user)
    expect(successor.refreshToken).not.toBe(user.refreshToken)
    await expectError(refresh(user, { address: '203.0.113.66' }), 'invalid_refresh_token')
    for (const token of [user, successor]) await expectEnded(token)
    const records = (await recordsOf(user)).filter(({ action }) => action === 'session.revoke')
    expect(records).toMatchObject([
      { detail: 'A refresh token was used twice', events: ['session.reuse_detected'], address: '203.0.113.66' },
    ])
  })

  const retryCases: [string, options: { key?: string; afterMs?: number }, isRepeated: boolean][] = [
    ['the same key', { key: 'key-1' }, true],
    ['the same key after the clock was set back', { key: 'key-1', afterMs: -1_800_000 }, true],
    ['the same key after a minute', { key: 'key-1', afterMs: 60_001 }, false],
    ['another key', { key: 'key-2' }, false],
    ['no key', {}, false],
  ]
  test.each(retryCases)('a retry with %s', async (_, { key: idempotencyKey, afterMs = 0 }, isRepeated) => {
    const user = await newUser()
    const firstTokens = await refresh(user, newOrigin(), { idempotencyKey: 'key-1' })
    expect(JSON.stringify(await get(keysOf(user.refreshToken).token))).not.toContain(firstTokens.refreshToken)
    advanceClock(afterMs)
    const retry = refresh(user, newOrigin(), { idempotencyKey })
    if (isRepeated) expect(await retry).toEqual(firstTokens)
    else await expectError(retry, 'invalid_refresh_token')
    await (isRepeated ? expectOpen : expectEnded)(firstTokens)
    if (isRepeated) await expectEnded(user)
  })

  test.each([
    ['concurrent retries with one key', 'key-1', true],
    ['concurrent use with two keys', 'key-2', false],
  ])('%s', async (_, idempotencyKey, isOne) => {
    const user = await newUser()
    let concurrent: unknown
    runBefore(/^TransactWrite/, async () => {
      concurrent = await refresh(user, newOrigin(), { idempotencyKey: 'key-1' })
    })
    const retry = refresh(user, newOrigin(), { idempotencyKey })
    if (isOne) expect(await retry).toEqual(concurrent)
    else await expectError(retry, 'invalid_refresh_token')
  })

  test('does not repeat a response after the sessions of the user have ended', async () => {
    const user = await newUser()
    await refresh(user, newOrigin(), { idempotencyKey: 'key-1' })
    await endAll(user)
    await expectError(refresh(user, newOrigin(), { idempotencyKey: 'key-1' }), 'invalid_refresh_token')
  })

  test('limits the refreshes of a session; made-up tokens of it do not count', async () => {
    const user = await newUser()
    advanceToNextMinute()
    for (let count = 0; count < 40; count++) await expectEnded({ refreshToken: `${user.refreshToken.slice(0, -2)}xx` })
    let { refreshToken } = user
    for (let count = 0; count < config.PLAT_LIMIT_REFRESH_PER_MINUTE; count++) {
      refreshToken = (await refresh({ refreshToken })).refreshToken
    }
    await expectError(refresh({ refreshToken }), 'rate_limited')
    advanceClock(60_000)
    await expectOpen({ refreshToken })
  })

  test.each([-1_800_000, -dayMs, 1_800_000, dayMs])('a session works after the clock moves by %d ms', async (ms) => {
    const user = await newUser()
    advanceClock(ms)
    const code = await errorCodeOf(verifyAccessToken(user.accessToken))
    expect(code).toBe('token_expired')
    await verifyAccessToken((await refresh(user)).accessToken)
  })

  test('ends the session after concurrent use of a token', async () => {
    const user = await newUser()
    runBefore(/^TransactWrite/, () => refresh(user))
    await expectEnded(user)
    expect((await recordsOf(user)).flatMap(({ events }) => events)).toContain('session.reuse_detected')
  })

  test('returns no token for a session that ends concurrently, and does not report reuse', async () => {
    const user = await newUser()
    runBefore(/^TransactWrite/, () => signOut(user.caller))
    await expectEnded(user)
    expect((await get(keysOf(user.refreshToken).token))?.['usedAtMs']).toBeUndefined()
    expect((await recordsOf(user)).map(({ action }) => action)).toEqual(['session.open', 'session.close'])
  })

  test('rejects malformed tokens without a store call, and keeps the session open', async () => {
    const { refreshToken } = await newUser()
    const [sessionId = '', tokenId = '', secret = ''] = refreshToken.split('.')
    const malformedTokens = [
      ...['', 'x', 'a.b.c', '..', '.'.repeat(400), `${newId('sess')}.x.y`],
      `${newId('job')}.${tokenId}.${secret}`,
      `${sessionId}.${tokenId.slice(1)}.${secret}`,
      `${sessionId}.x${tokenId}.${secret}`,
      `${sessionId}.${tokenId}x.${secret}`,
      ...['.', '.x', `.${refreshToken}`].map((suffix) => refreshToken + suffix),
      `x.${tokenId}.${secret}`,
    ]
    const calls = await countStoreCalls(async () => {
      for (const text of malformedTokens) await expectEnded({ refreshToken: text })
    })
    expect(calls).toBe(0)
    await expectEnded({ refreshToken: `${sessionId}.${tokenId}.bogus` })
    await expectEnded({ refreshToken: `${sessionId}.${newSecret().slice(0, 12)}.${secret}` })
    await expectOpen({ refreshToken })
  })

  test.each<[string, (user: SignedInUser) => Promise<unknown>]>([
    ['a missing session', ({ refreshToken }) => transact([remove(keysOf(refreshToken).session)])],
    ['a missing token', ({ refreshToken }) => transact([remove(keysOf(refreshToken).token)])],
    ['a missing user', ({ caller, id }) => transact([remove(keys.user(caller.organisationId, id))])],
    ['an expired token', ({ refreshToken: text }) => update(keysOf(text).token, { set: { expiresAtMs: now() - 1 } })],
  ])('rejects %s', async (_, prepare) => {
    const user = await newUser()
    await prepare(user)
    await expectEnded(user)
    expect((await get(keysOf(user.refreshToken).session)) ?? {}).not.toHaveProperty('revokedAtMs')
  })

  test('ends the session when the provider of the user is disabled', async () => {
    const user = await newUser()
    const providerId = newId('idp')
    await transact([create(keys.identityProvider(providerId), { isEnabled: true })])
    await update(keys.user(user.caller.organisationId, user.id), { set: { authProvider: providerId } })
    const successor = await refresh(user)
    await update(keys.identityProvider(providerId), { set: { isEnabled: false } })
    await expectError(refresh(successor, { address: '203.0.113.8' }), 'invalid_refresh_token')
    await update(keys.identityProvider(providerId), { set: { isEnabled: true } })
    await expectEnded(successor)
    expect((await recordsOf(user)).filter(({ action }) => action === 'session.revoke')).toMatchObject([
      { detail: 'The identity provider is disabled or gone', address: '203.0.113.8', events: [] },
    ])
    await transact([remove(keys.identityProvider(providerId))])
  })

  test('a session ends after its maximum lifetime, even if it is used', async () => {
    let tokens: { refreshToken: string } = await newUser()
    const stepMs = (config.PLAT_SESSION_MAX_DAYS * 24 * 3_600_000) / 5
    for (let step = 1; step < 5; step++) {
      advanceClock(stepMs)
      tokens = await refresh(tokens)
    }
    advanceClock(stepMs)
    await expectEnded(tokens)
  })

  test('refresh tokens expire after seven days', async () => {
    const user = await newUser()
    advanceClock(7 * dayMs + 60_000)
    await expectEnded(user)
  })

  test('the store deletes sessions and tokens a day after their end', async () => {
    const user = await newUser()
    const expectTtl = async (key: keys.Key, endMs: number) => {
      const ttlMs = Number((await get(key))?.['ttl']) * 1000
      expect(ttlMs - endMs).toBeGreaterThanOrEqual(dayMs)
      expect(ttlMs - endMs).toBeLessThan(dayMs + 60_000)
    }
    const firstKeys = keysOf(user.refreshToken)
    const signedInMs = Number((await get(firstKeys.session))?.['createdAtMs'])
    for (const key of [firstKeys.session, firstKeys.token])
      await expectTtl(key, signedInMs + refreshTokenSeconds * 1000)
    expect((await get(firstKeys.token))?.['expiresAtMs']).toBeLessThan(signedInMs + refreshTokenSeconds * 1000 + 60_000)
    advanceClock(dayMs)
    const next = keysOf((await refresh(user)).refreshToken)
    const refreshedMs = Number((await get(firstKeys.session))?.['lastUsedAtMs'])
    expect(refreshedMs - signedInMs).toBeGreaterThanOrEqual(dayMs)
    for (const key of [firstKeys.session, next.token]) await expectTtl(key, refreshedMs + refreshTokenSeconds * 1000)
    advanceClock(dayMs)
    const signedOutMs = now()
    await signOut(user.caller)
    await expectTtl(firstKeys.session, signedOutMs + refreshTokenSeconds * 1000)
    expect(await get(firstKeys.session)).not.toHaveProperty('gsi1pk')
  })
})

test.each([0, 1])(
  'signing out with a refresh token used %i times ends its session; an invalid token ends none',
  async (uses) => {
    const user = await newUser()
    const session = uses === 0 ? user : await refresh(user)
    for (const text of ['', 'x', user.refreshToken.replace(/[^.]+$/, newSecret())]) {
      await endSessionByToken(text, newOrigin())
    }
    await endSessionByToken(user.refreshToken, { address: '203.0.113.9' })
    await endSessionByToken(user.refreshToken, newOrigin())
    await expectEnded(session)
    const ends = (await recordsOf(user)).filter(({ action }) => action !== 'session.open')
    expect(ends).toMatchObject([{ action: 'session.close', address: '203.0.113.9' }])
  },
)

describe('changing the password', () => {
  const commandsAfterRead = [
    [/^BatchGet/, 2],
    [/^TransactWrite/, 1],
  ] as const

  test('by another session ends the session that an earlier change kept', async () => {
    const user = await newUser()
    await change(user)
    const newSession = await signInUser(user.username, newPassword)
    await changePassword(newSession.caller, { currentPassword: newPassword, newPassword: password }, newOrigin())
    await expectEnded(user)
    await expectOpen(newSession)
  })

  test('limits wrong current passwords of a session', async () => {
    const user = await newUser()
    const otherSession = await signInUser(user.username)
    advanceToNextMinute()
    for (let attempt = 0; attempt < config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE; attempt++) {
      await expectError(change(user, 'wrong password'), 'invalid_credentials')
    }
    await expectError(change(user), 'rate_limited')
    await expectOpen(otherSession)
    await changePassword(otherSession.caller, { currentPassword: password, newPassword }, newOrigin())
  })

  test('succeeds once of two concurrent changes', async () => {
    const user = await newUser()
    const outcomes = await Promise.all(
      ['first new sentence', 'second new sentence'].map(async (fresh) => {
        const request = { currentPassword: password, newPassword: fresh }
        return [fresh, await errorCodeOf(changePassword(user.caller, request, newOrigin()))] as const
      }),
    )
    const winners = outcomes.filter(([, code]) => code === 'no error')
    expect(winners).toHaveLength(1)
    expect(['conflict', 'invalid_credentials']).toContain(outcomes.find(([, code]) => code !== 'no error')?.[1])
    expect(await signInUser(user.username, winners[0]![0])).toMatchObject({ username: user.username })
  })

  test.each<[string, (user: SignedInUser) => Promise<unknown>]>([
    ['signed out', ({ caller }) => signOut(caller)],
    ['ended by an administrator', endAll],
    ['of a removed user', ({ id }) => UserAdmin.remove(platform.caller, id)],
  ])('is rejected for a session %s', async (_, end) => {
    const user = await newUser()
    await end(user)
    await expectError(change(user), 'unauthenticated')
    await expectEnded(user)
  })

  test.each(commandsAfterRead)('is rejected if the session ends concurrently, before %s %i', async (command, nth) => {
    const user = await newUser()
    runBefore(command, () => endAll(user), nth)
    await expectError(change(user), 'unauthenticated')
    await expectEnded(user)
  })

  test('ends sessions that are refreshed concurrently', async () => {
    const user = await newUser()
    const otherSession = await signInUser(user.username)
    runBefore(/^TransactWrite/, () => change(user))
    const successor = await refresh(otherSession)
    await expectEnded(successor)
  })

  test.each([/^BatchGet/, /^Get/, /^TransactWrite/])(
    'keeps its own session open during a concurrent refresh, before %s',
    async (command) => {
      const user = await newUser()
      runBefore(command, () => change(user))
      const successor = await refresh(user)
      await expectOpen(successor)
    },
  )

  test.each(commandsAfterRead)(
    'ends a concurrent sign-in with the old password, before %s %i',
    async (command, nth) => {
      const user = await newUser()
      runBefore(command, () => change(user), nth)
      const lateSignIn = await signIn(user.credentials, newOrigin())
      await expectEnded(lateSignIn)
      await expectOpen(user)
    },
  )
})

test('an administrator ends all sessions of a user, including concurrent sign-ins; the password stays', async () => {
  const user = await newUser()
  const otherSession = await signInUser(user.username)
  runBefore(/^BatchGet/, () => endAll(user), 2)
  const lateSignIn = await signIn(user.credentials, newOrigin())
  for (const tokens of [user, otherSession, lateSignIn]) await expectEnded(tokens)
  const laterUser = await signInUser(user.username)
  await change(laterUser)
  await endAll(laterUser)
  await expectEnded(laterUser)
  await expectOpen(await signInUser(user.username, newPassword))
})

describe('the list of sessions', () => {
  const idsOf = async ({ caller }: SignedInUser) => (await Session.list(caller)).items.map(({ id }) => id)

  test('contains the open sessions of the user with their last refresh, newest first', async () => {
    const first = await newUser()
    const second = await signInUser(first.username)
    const third = await signInUser(first.username)
    const sessionIds = [third, second, first].map(({ caller }) => caller.sessionId)
    advanceClock(3_600_000)
    await refresh(first)
    const { items } = await Session.list(second.caller)
    expect(items.map(({ id }) => id)).toEqual(sessionIds)
    expect(items.map(({ isCurrent }) => isCurrent)).toEqual([false, true, false])
    expect(Date.parse(items[2]!.lastUsedAt) - Date.parse(items[2]!.createdAt)).toBeGreaterThanOrEqual(3_600_000)
    expect(items[0]).toEqual({
      id: third.caller.sessionId,
      createdAt: expect.any(String),
      lastUsedAt: expect.any(String),
      address: expect.stringMatching(/^198\.51\.100\./),
      isCurrent: false,
    })
    await signOut(third.caller)
    expect(await idsOf(second)).toEqual(sessionIds.slice(1))
    await change(second)
    expect(await idsOf(second)).toEqual([second.caller.sessionId])
    advanceClock(7 * dayMs)
    expect(await idsOf(second)).toEqual([])
  })

  test('ends an open session once', async () => {
    const user = await newUser()
    const [other, third] = [await signInUser(user.username), await signInUser(user.username)]
    const { sessionId } = other.caller
    await Session.end(user.caller, sessionId)
    await expectError(Session.end(user.caller, sessionId), 'session_not_found')
    await expectEnded(other)
    await expectOpen(user)
    await change(user)
    await expectError(Session.end(user.caller, third.caller.sessionId), 'session_not_found')
    await Session.end(user.caller, user.caller.sessionId)
  })
})
