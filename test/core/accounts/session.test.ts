import { beforeAll, expect, test } from 'vitest'
import { shiftClock } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { outbox } from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import { parseRecord } from '@platform/core/outbox/record'
import { refresh, signIn, signOut } from '@platform/core/accounts/session'
import { complete } from '@platform/core/platform/setup'
import { ensureKeys } from '@platform/core/signing/keys'
import { issueAccessToken, verifyAccessToken } from '@platform/core/signing/access-token'
import { profile } from '@platform/core/accounts/user'
import {
  administrator,
  adminToken,
  advanceToNextMinute,
  newCaller,
  createColleague,
  errorCodeOf,
  signInUser,
  bootstrapPlatform,
} from '../../support/fixtures.ts'

const credentials = { username: 'admin', password: administrator.adminPassword }
let addresses = 0
const somewhere = () => ({ address: `192.0.2.${++addresses}` })

beforeAll(async () => {
  await bootstrapPlatform()
  await complete({ ...administrator, initialAdminToken: await adminToken() })
})

test('an access token tells who the caller is and what they may do', async () => {
  const { accessToken } = await signIn(credentials, somewhere())
  const caller = await verifyAccessToken(accessToken)
  expect(caller.permissions.has('platform:admin')).toBe(true)
  expect(await profile(caller)).toMatchObject({ username: 'admin', authProvider: 'local', roles: ['PlatformAdmin'] })
})

test('a wrong password and an unknown user are refused alike', async () => {
  expect(await errorCodeOf(signIn({ ...credentials, password: 'wrong password' }, somewhere()))).toBe(
    'invalid_credentials',
  )
  expect(await errorCodeOf(signIn({ ...credentials, username: 'nobody' }, somewhere()))).toBe('invalid_credentials')
})

test('too many failures of one user in a minute are refused, the right password included', async () => {
  const { caller } = await signInUser(credentials.username)
  const victim = (await createColleague(caller, 'Viewer')).credentials
  const wrong = { ...victim, password: 'wrong password' }
  advanceToNextMinute()
  const codes: string[] = []
  for (let attempt = 0; attempt <= config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE; attempt++) {
    codes.push(await errorCodeOf(signIn(wrong, somewhere())))
  }
  expect(codes.at(0)).toBe('invalid_credentials')
  expect(codes.at(-1)).toBe('rate_limited')
  expect(await errorCodeOf(signIn(victim, somewhere()))).toBe('rate_limited')
  shiftClock(60_000)
  expect(await signIn(victim, somewhere())).toMatchObject({ tokenType: 'Bearer' })
  shiftClock(-60_000)
})

test('a refresh token works once; its second use ends the whole session', async () => {
  const first = await signIn(credentials, somewhere())
  const second = await refresh(first)
  expect(second.refreshToken).not.toBe(first.refreshToken)
  expect(await errorCodeOf(refresh(first))).toBe('invalid_refresh_token')
  expect(await errorCodeOf(refresh(second))).toBe('invalid_refresh_token')
})

test('the second use of a refresh token is on record with where it came from', async () => {
  const first = await signIn(credentials, somewhere())
  const { organisationId, sessionId } = await verifyAccessToken(first.accessToken)
  await refresh(first, somewhere())
  expect(await errorCodeOf(refresh(first, { address: '203.0.113.66' }))).toBe('invalid_refresh_token')
  const { items } = await query({ pk: outbox(organisationId, '').pk, newestFirst: true })
  const alarms = items
    .map(parseRecord)
    .filter(({ audit }) => audit?.resource === sessionId && audit.action === 'session.revoke')
  expect(alarms).toMatchObject([{ address: '203.0.113.66' }])
})

test('of eight that use one refresh token at once at most one gets a successor, and it is dead', async () => {
  const { refreshToken } = await signIn(credentials, somewhere())
  const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => refresh({ refreshToken })))
  const successors = outcomes.filter((outcome) => outcome.status === 'fulfilled').map((outcome) => outcome.value)
  expect(successors.length).toBeLessThanOrEqual(1)
  for (const successor of successors) expect(await errorCodeOf(refresh(successor))).toBe('invalid_refresh_token')
})

test('signing out ends refresh and leaves the access token alone', async () => {
  const tokens = await signIn(credentials, somewhere())
  await signOut(await verifyAccessToken(tokens.accessToken))
  expect(await errorCodeOf(refresh(tokens))).toBe('invalid_refresh_token')
  expect(await verifyAccessToken(tokens.accessToken)).toMatchObject({ kind: 'user' })
})

test('a refresh token dies after seven days, an access token after fifteen minutes', async () => {
  const tokens = await signIn(credentials, somewhere())
  await verifyAccessToken(tokens.accessToken)
  shiftClock(16 * 60_000)
  expect(await errorCodeOf(verifyAccessToken(tokens.accessToken))).toBe('token_expired')
  shiftClock(7 * 24 * 3_600_000)
  expect(await errorCodeOf(refresh(tokens))).toBe('invalid_refresh_token')
  shiftClock(-7 * 24 * 3_600_000 - 16 * 60_000)
})

test.each(['', 'x', 'sess_01jd8w5k3zr9x2m4c7t6v0b1qa.x.y', 'a.b.c', '..', '.'.repeat(400)])(
  'the refresh token %j is refused',
  async (refreshToken) => {
    expect(await errorCodeOf(refresh({ refreshToken }))).toBe('invalid_refresh_token')
  },
)

test('a bogus token of a real session does not end the session', async () => {
  const tokens = await signIn(credentials, somewhere())
  const [session, id] = tokens.refreshToken.split('.')
  expect(await errorCodeOf(refresh({ refreshToken: `${session}.${id}.bogus` }))).toBe('invalid_refresh_token')
  for (const more of ['.', '.x', `.${tokens.refreshToken}`])
    expect(await errorCodeOf(refresh({ refreshToken: tokens.refreshToken + more }))).toBe('invalid_refresh_token')
  expect(await refresh(tokens)).toMatchObject({ expiresIn: 900 })
})

test('after a rotation of keys old tokens verify until they expire, new ones at once', async () => {
  const caller = await newCaller()
  const subject = {
    userId: caller.userId,
    organisationId: caller.organisationId,
    sessionId: caller.sessionId,
    roles: ['Viewer'],
  }
  const before = await issueAccessToken(subject)
  await ensureKeys({ rotate: true })
  const after = await issueAccessToken(subject)
  shiftClock(10_000)
  expect(await verifyAccessToken(after)).toMatchObject({ userId: subject.userId })
  expect(await verifyAccessToken(before)).toMatchObject({ userId: subject.userId })
  shiftClock(-10_000)
})
