import { beforeAll, expect, test } from 'vitest'
import { shiftClock } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { refresh, signIn, signOut } from '@platform/core/accounts/session'
import * as SessionList from '@platform/core/accounts/session'
import { changePassword } from '@platform/core/accounts/change-password'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { rounds } from '../../support/long.ts'
import {
  advanceToNextMinute,
  createColleague,
  password,
  type SignedInUser,
  setUpPlatform,
  errorCodeOf,
  signInUser,
  newOrigin,
} from '../../support/fixtures.ts'
import { beforeCommand } from '../../support/store-calls.ts'

/** How sessions end that nobody signs out of. */

let platform: SignedInUser
beforeAll(async () => {
  platform = await setUpPlatform()
})

/** Somebody with one session. */
const somebody = (): Promise<SignedInUser> => createColleague(platform.caller, 'Viewer')

const newPassword = 'another long sentence'
const change = ({ caller }: SignedInUser, currentPassword = password) =>
  changePassword(caller, { currentPassword, newPassword }, newOrigin())

test('a changed password ends all other sessions and keeps the own one', async () => {
  const own = await somebody()
  const others = [await signInUser(own.username), await signInUser(own.username)]
  await change(own)
  for (const other of others) expect(await errorCodeOf(refresh(other))).toBe('invalid_refresh_token')
  const second = await refresh(await refresh(own))
  expect(await errorCodeOf(signInUser(own.username))).toBe('invalid_credentials')
  const later = await signInUser(own.username, newPassword)
  expect(await refresh(later)).toMatchObject({ tokenType: 'Bearer' })
  expect(await refresh(second)).toMatchObject({ tokenType: 'Bearer' })
})

test('a later change by another session ends the one that an earlier change had kept', async () => {
  const first = await somebody()
  await change(first)
  const second = await signInUser(first.username, newPassword)
  await changePassword(second.caller, { currentPassword: newPassword, newPassword: password }, newOrigin())
  expect(await errorCodeOf(refresh(first))).toBe('invalid_refresh_token')
  expect(await refresh(second)).toMatchObject({ tokenType: 'Bearer' })
})

test('a wrong current password changes nothing and counts as a failed sign-in', async () => {
  const own = await somebody()
  const other = await signInUser(own.username)
  advanceToNextMinute()
  for (let attempt = 0; attempt < config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE; attempt++) {
    expect(await errorCodeOf(change(own, 'wrong password'))).toBe('invalid_credentials')
  }
  expect(await errorCodeOf(change(own))).toBe('rate_limited')
  expect(await errorCodeOf(signInUser(own.username))).toBe('rate_limited')
  expect(await refresh(other)).toMatchObject({ tokenType: 'Bearer' })
})

test('of two that change one password at once one wins, and its password works', async () => {
  const own = await somebody()
  const tries = ['first new sentence', 'second new sentence'].map(async (fresh) => {
    const request = { currentPassword: password, newPassword: fresh }
    return [fresh, await errorCodeOf(changePassword(own.caller, request, newOrigin()))] as const
  })
  const outcomes = await Promise.all(tries)
  const winners = outcomes.filter(([, code]) => code === 'no error')
  expect(winners).toHaveLength(1)
  expect(['conflict', 'invalid_credentials']).toContain(outcomes.find(([, code]) => code !== winners[0]![1])?.[1])
  expect(await signInUser(own.username, winners[0]![0])).toMatchObject({ username: own.username })
})

test('an access token of an ended session changes no password, and so ends and revives nothing', async () => {
  const ways: ((own: SignedInUser) => Promise<unknown>)[] = [
    ({ caller }) => signOut(caller),
    ({ id }) => UserAdmin.endUserSessions(platform.caller, id),
  ]
  for (const end of ways) {
    const own = await somebody()
    await end(own)
    const later = await signInUser(own.username)
    expect(await errorCodeOf(change(own))).toBe('unauthenticated')
    expect(await errorCodeOf(refresh(own))).toBe('invalid_refresh_token')
    expect(await refresh(later)).toMatchObject({ tokenType: 'Bearer' })
  }
})

test('a session that an administrator ends in the midst of a password change does not live on', async () => {
  for (const [command, nth] of [
    [/^BatchGet/, 2],
    [/^TransactWrite/, 1],
  ] as const) {
    const own = await somebody()
    const isEnded = beforeCommand(command, () => UserAdmin.endUserSessions(platform.caller, own.id), nth)
    expect(await errorCodeOf(change(own))).toBe('conflict')
    expect(isEnded()).toBe(true)
    expect(await errorCodeOf(refresh(own))).toBe('invalid_refresh_token')
  }
})

test('a refresh of another session at the same moment gets no session that lasts', async () => {
  for (let round = 0; round < rounds(2, 8); round++) {
    const own = await somebody()
    const other = await signInUser(own.username)
    const [successor] = await Promise.allSettled([refresh(other), change(own)])
    if (successor.status === 'fulfilled') {
      expect(await errorCodeOf(refresh(successor.value))).toBe('invalid_refresh_token')
    }
  }
})

test('a refresh that has looked at the user just before the change gets no session that lasts', async () => {
  const own = await somebody()
  const other = await signInUser(own.username)
  const isChanged = beforeCommand(/^TransactWrite/, () => change(own))
  const successor = await refresh(other)
  expect(isChanged()).toBe(true)
  expect(await errorCodeOf(refresh(successor))).toBe('invalid_refresh_token')
})

test('a refresh of the own session lives through the change, at whatever moment it comes', async () => {
  for (const command of [/^BatchGet/, /^Get/, /^TransactWrite/]) {
    const own = await somebody()
    const isChanged = beforeCommand(command, () => change(own))
    const successor = await refresh(own)
    expect(isChanged()).toBe(true)
    expect(await refresh(successor)).toMatchObject({ tokenType: 'Bearer' })
  }
})

test('a sign-in that has checked the old password just before the change gets no session that lasts', async () => {
  for (const [command, nth] of [
    [/^BatchGet/, 2],
    [/^TransactWrite/, 1],
  ] as const) {
    const own = await somebody()
    const isChanged = beforeCommand(command, () => change(own), nth)
    const late = await signIn(own.credentials, newOrigin())
    expect(isChanged()).toBe(true)
    expect(await errorCodeOf(refresh(late))).toBe('invalid_refresh_token')
    expect(await refresh(own)).toMatchObject({ tokenType: 'Bearer' })
  }
})

test('a user sees the own sessions, newest first, with the current one marked, and ended ones no more', async () => {
  const first = await somebody()
  const second = await signInUser(first.username)
  const third = await signInUser(first.username)
  const sessionIds = [third, second, first].map(({ caller }) => caller.sessionId)
  const { items } = await SessionList.list(second.caller)
  expect(items.map(({ id }) => id)).toEqual(sessionIds)
  expect(items.map(({ isCurrent }) => isCurrent)).toEqual([false, true, false])
  expect(items[0]).toEqual({
    id: third.caller.sessionId,
    createdAt: expect.any(String),
    lastUsedAt: expect.any(String),
    address: expect.stringMatching(/^198\.51\.100\./),
    isCurrent: false,
  })
  await signOut(third.caller)
  expect((await SessionList.list(second.caller)).items.map(({ id }) => id)).toEqual(sessionIds.slice(1))
  await change(second)
  expect((await SessionList.list(second.caller)).items.map(({ id }) => id)).toEqual([second.caller.sessionId])
  shiftClock(7 * 24 * 3_600_000)
  expect((await SessionList.list(second.caller)).items).toEqual([])
  shiftClock(-7 * 24 * 3_600_000)
})

test('a refresh is seen as the last use of a session', async () => {
  const own = await somebody()
  const [before] = (await SessionList.list(own.caller)).items
  shiftClock(3_600_000)
  await refresh(own)
  const [after] = (await SessionList.list(own.caller)).items
  shiftClock(-3_600_000)
  expect(Date.parse(after!.lastUsedAt) - Date.parse(before!.lastUsedAt)).toBeGreaterThanOrEqual(3_600_000)
  expect(after!.createdAt).toBe(before!.createdAt)
})

test('a user ends one of the own sessions, once, and none of anybody else', async () => {
  const own = await somebody()
  const other = await signInUser(own.username)
  const { sessionId } = other.caller
  for (const stranger of [platform, await somebody()]) {
    expect(await errorCodeOf(SessionList.end(stranger.caller, sessionId))).toBe('session_not_found')
  }
  await SessionList.end(own.caller, sessionId)
  expect(await errorCodeOf(SessionList.end(own.caller, sessionId))).toBe('session_not_found')
  expect(await errorCodeOf(refresh(other))).toBe('invalid_refresh_token')
  expect(await refresh(own)).toMatchObject({ tokenType: 'Bearer' })
})

test('a session that has ended with others cannot be ended again', async () => {
  const own = await somebody()
  const other = await signInUser(own.username)
  await change(own)
  expect(await errorCodeOf(SessionList.end(own.caller, other.caller.sessionId))).toBe('session_not_found')
  await SessionList.end(own.caller, own.caller.sessionId)
})

test('an administrator ends the session too that a password change had kept', async () => {
  const own = await somebody()
  await change(own)
  await UserAdmin.endUserSessions(platform.caller, own.id)
  expect(await errorCodeOf(refresh(own))).toBe('invalid_refresh_token')
})

test('an administrator ends all sessions of a user, one that is under way included, and the password stays', async () => {
  const own = await somebody()
  const other = await signInUser(own.username)
  const isEnded = beforeCommand(/^BatchGet/, () => UserAdmin.endUserSessions(platform.caller, own.id), 2)
  const late = await signIn(own.credentials, newOrigin())
  expect(isEnded()).toBe(true)
  for (const tokens of [own, other, late]) expect(await errorCodeOf(refresh(tokens))).toBe('invalid_refresh_token')
  expect(await refresh(await signInUser(own.username))).toMatchObject({ tokenType: 'Bearer' })
})
