import { beforeAll, expect, test } from 'vitest'
import { shiftClock } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { refresh, signIn, signOut } from '@platform/core/accounts/session'
import * as SessionList from '@platform/core/accounts/session-list'
import { changePassword } from '@platform/core/accounts/change-password'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { rounds } from '../../support/long.ts'
import {
  atMinuteStart,
  colleague,
  password,
  type Person,
  platformAdministrator,
  signedIn,
  somewhere,
} from '../../support/people.ts'
import { justBefore } from '../../support/store-calls.ts'
import { refusalOf } from '../../support/world.ts'

/** How sessions end that nobody signs out of. */

let platform: Person
beforeAll(async () => {
  platform = await platformAdministrator()
})

/** Somebody with one session. */
const somebody = (): Promise<Person> => colleague(platform.caller, 'Viewer')

const newPassword = 'another long sentence'
const change = ({ caller }: Person, currentPassword = password) =>
  changePassword(caller, { currentPassword, newPassword }, somewhere())

test('a changed password ends all other sessions and keeps the own one', async () => {
  const own = await somebody()
  const others = [await signedIn(own.username), await signedIn(own.username)]
  await change(own)
  for (const other of others) expect(await refusalOf(refresh(other))).toBe('invalid_refresh_token')
  const second = await refresh(await refresh(own))
  expect(await refusalOf(signedIn(own.username))).toBe('invalid_credentials')
  const later = await signedIn(own.username, newPassword)
  expect(await refresh(later)).toMatchObject({ tokenType: 'Bearer' })
  expect(await refresh(second)).toMatchObject({ tokenType: 'Bearer' })
})

test('a later change by another session ends the one that an earlier change had kept', async () => {
  const first = await somebody()
  await change(first)
  const second = await signedIn(first.username, newPassword)
  await changePassword(second.caller, { currentPassword: newPassword, newPassword: password }, somewhere())
  expect(await refusalOf(refresh(first))).toBe('invalid_refresh_token')
  expect(await refresh(second)).toMatchObject({ tokenType: 'Bearer' })
})

test('a wrong current password changes nothing and counts as a failed sign-in', async () => {
  const own = await somebody()
  const other = await signedIn(own.username)
  atMinuteStart()
  for (let attempt = 0; attempt < config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE; attempt++) {
    expect(await refusalOf(change(own, 'wrong password'))).toBe('invalid_credentials')
  }
  expect(await refusalOf(change(own))).toBe('rate_limited')
  expect(await refusalOf(signedIn(own.username))).toBe('rate_limited')
  expect(await refresh(other)).toMatchObject({ tokenType: 'Bearer' })
})

test('of two that change one password at once one wins, and its password works', async () => {
  const own = await somebody()
  const tries = ['first new sentence', 'second new sentence'].map(async (fresh) => {
    const request = { currentPassword: password, newPassword: fresh }
    return [fresh, await refusalOf(changePassword(own.caller, request, somewhere()))] as const
  })
  const outcomes = await Promise.all(tries)
  const winners = outcomes.filter(([, code]) => code === 'nothing was refused')
  expect(winners).toHaveLength(1)
  expect(['conflict', 'invalid_credentials']).toContain(outcomes.find(([, code]) => code !== winners[0]![1])?.[1])
  expect(await signedIn(own.username, winners[0]![0])).toMatchObject({ username: own.username })
})

test('an access token of an ended session changes no password, and so ends and revives nothing', async () => {
  const ways: ((own: Person) => Promise<unknown>)[] = [
    ({ caller }) => signOut(caller),
    ({ id }) => UserAdmin.endUserSessions(platform.caller, id),
  ]
  for (const end of ways) {
    const own = await somebody()
    await end(own)
    const later = await signedIn(own.username)
    expect(await refusalOf(change(own))).toBe('unauthenticated')
    expect(await refusalOf(refresh(own))).toBe('invalid_refresh_token')
    expect(await refresh(later)).toMatchObject({ tokenType: 'Bearer' })
  }
})

test('a session that an administrator ends in the midst of a password change does not live on', async () => {
  for (const [command, nth] of [
    [/^BatchGet/, 2],
    [/^TransactWrite/, 1],
  ] as const) {
    const own = await somebody()
    const isEnded = justBefore(command, () => UserAdmin.endUserSessions(platform.caller, own.id), nth)
    expect(await refusalOf(change(own))).toBe('conflict')
    expect(isEnded()).toBe(true)
    expect(await refusalOf(refresh(own))).toBe('invalid_refresh_token')
  }
})

test('a refresh of another session at the same moment gets no session that lasts', async () => {
  for (let round = 0; round < rounds(2, 8); round++) {
    const own = await somebody()
    const other = await signedIn(own.username)
    const [successor] = await Promise.allSettled([refresh(other), change(own)])
    if (successor.status === 'fulfilled') {
      expect(await refusalOf(refresh(successor.value))).toBe('invalid_refresh_token')
    }
  }
})

test('a refresh that has looked at the user just before the change gets no session that lasts', async () => {
  const own = await somebody()
  const other = await signedIn(own.username)
  const isChanged = justBefore(/^TransactWrite/, () => change(own))
  const successor = await refresh(other)
  expect(isChanged()).toBe(true)
  expect(await refusalOf(refresh(successor))).toBe('invalid_refresh_token')
})

test('a refresh of the own session lives through the change, at whatever moment it comes', async () => {
  for (const command of [/^BatchGet/, /^Get/, /^TransactWrite/]) {
    const own = await somebody()
    const isChanged = justBefore(command, () => change(own))
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
    const isChanged = justBefore(command, () => change(own), nth)
    const late = await signIn(own.credentials, somewhere())
    expect(isChanged()).toBe(true)
    expect(await refusalOf(refresh(late))).toBe('invalid_refresh_token')
    expect(await refresh(own)).toMatchObject({ tokenType: 'Bearer' })
  }
})

test('a user sees the own sessions, newest first, with the current one marked, and ended ones no more', async () => {
  const first = await somebody()
  const second = await signedIn(first.username)
  const third = await signedIn(first.username)
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
  const other = await signedIn(own.username)
  const { sessionId } = other.caller
  for (const stranger of [platform, await somebody()]) {
    expect(await refusalOf(SessionList.end(stranger.caller, sessionId))).toBe('session_not_found')
  }
  await SessionList.end(own.caller, sessionId)
  expect(await refusalOf(SessionList.end(own.caller, sessionId))).toBe('session_not_found')
  expect(await refusalOf(refresh(other))).toBe('invalid_refresh_token')
  expect(await refresh(own)).toMatchObject({ tokenType: 'Bearer' })
})

test('a session that has ended with others cannot be ended again', async () => {
  const own = await somebody()
  const other = await signedIn(own.username)
  await change(own)
  expect(await refusalOf(SessionList.end(own.caller, other.caller.sessionId))).toBe('session_not_found')
  await SessionList.end(own.caller, own.caller.sessionId)
})

test('an administrator ends the session too that a password change had kept', async () => {
  const own = await somebody()
  await change(own)
  await UserAdmin.endUserSessions(platform.caller, own.id)
  expect(await refusalOf(refresh(own))).toBe('invalid_refresh_token')
})

test('an administrator ends all sessions of a user, one that is under way included, and the password stays', async () => {
  const own = await somebody()
  const other = await signedIn(own.username)
  const isEnded = justBefore(/^BatchGet/, () => UserAdmin.endUserSessions(platform.caller, own.id), 2)
  const late = await signIn(own.credentials, somewhere())
  expect(isEnded()).toBe(true)
  for (const tokens of [own, other, late]) expect(await refusalOf(refresh(tokens))).toBe('invalid_refresh_token')
  expect(await refresh(await signedIn(own.username))).toMatchObject({ tokenType: 'Bearer' })
})
