import { beginAttempt } from '@platform/core/accounts/credential'
import { randomUUID } from 'node:crypto'
import { verifyApiToken } from '@platform/core/accounts/api-token-caller'
import * as ApiToken from '@platform/core/accounts/api-token'
import { changePassword } from '@platform/core/accounts/change-password'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { verifySession } from '@platform/core/accounts/current-rights'
import { suspend } from '@platform/core/accounts/provider-check'
import { refresh, signIn } from '@platform/core/accounts/session'
import { find, list, usersOf } from '@platform/core/accounts/user'
import { sweep } from '@platform/core/background/sweep'
import type { Caller } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { readHead } from '@platform/core/db/offset-list'
import { get, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { sha256 } from '@platform/core/id'
import {
  openExternalSession,
  resolveExternalUser,
  signInExternal,
} from '@platform/core/identity-providers/external-user'
import { refresh as refreshWithCheck } from '@platform/core/identity-providers/sign-in'
import type { ExternalIdentity, ProviderRecord } from '@platform/core/identity-providers/record'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import {
  createColleague,
  errorCodeOf,
  expectError,
  newOrigin,
  password,
  requestErrorCode,
  setUpPlatform,
  type SignedInUser,
  userRequest,
} from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { runBefore } from '../support/interleaving.ts'
import { readPendingEvents, readPendingRecords } from '../support/outbox.ts'
import {
  callerOfTokens,
  externalIdentity,
  removeProvider,
  setProviderEnabled,
  storeProvider,
} from '../support/providers.ts'

let platform: SignedInUser
let caller: Caller
let idp: ProviderRecord
beforeAll(async () => {
  platform = await setUpPlatform()
  caller = platform.caller
  idp = await storeProvider(caller.organisationId, {
    roleMappings: [
      { group: 'ops', role: 'Operator' },
      { group: 'security', role: 'Auditor' },
      { group: 'root', role: 'PlatformAdmin' },
    ],
  })
})

const signInAs = async (identity: ExternalIdentity, provider = idp) =>
  signInExternal(provider, identity, newOrigin(), await beginAttempt(identity.username, newOrigin()))
const callerOf = async (identity: ExternalIdentity, provider = idp) =>
  callerOfTokens(await signInAs(identity, provider))
async function userOf(identity: ExternalIdentity, provider = idp) {
  const { userId, organisationId } = await callerOf(identity, provider)
  const user = await find(organisationId, userId)
  if (user === undefined) throw new Error('The user does not exist.')
  return user
}
const recordsOf = async (userId: string) =>
  (await readPendingRecords(caller.organisationId)).filter(
    ({ audit, events }) => audit?.resource === userId || events.some(({ subject }) => subject === userId),
  )
const actionsOf = async (userId: string) =>
  (await recordsOf(userId)).flatMap(({ audit }) => (audit?.resource === userId ? audit.action : [])).toSorted()
const countUsers = async (): Promise<number> => (await readHead(usersOf(caller.organisationId))).total

test('creates a user without a password at the first sign-in and finds it later', async () => {
  const identity = externalIdentity({ groups: ['security', 'elsewhere', 'ops'] })
  const countBefore = await countUsers()
  expect(await countStoreCalls(() => signInAs(identity))).toBe(3)
  expect(await countStoreCalls(() => signInAs(identity))).toBe(4)
  const user = await userOf(identity)
  expect(user).toMatchObject({
    username: identity.username,
    email: identity.email,
    roles: ['Operator', 'Auditor'],
    authProvider: idp.id,
    organisationId: idp.organisationId,
    version: 1,
  })
  expect(await countUsers()).toBe(countBefore + 1)
  const { items } = await list(caller, { page: 1, pageSize: 1 })
  expect(items.map(({ id, authProvider }) => [id, authProvider])).toEqual([[user.id, idp.id]])
  expect(await get(keys.username(identity.username))).not.toHaveProperty('passwordHash')

  const records = await recordsOf(user.id)
  const events = records.flatMap((record) => record.events.map(({ name }) => name))
  expect(events.toSorted()).toEqual(['user.created', ...Array<string>(3).fill('user.signed_in')])
  const firstRecord = records.find((record) => record.events.length > 1)
  expect(firstRecord?.events.map(({ name }) => name)).toEqual(['user.created', 'user.signed_in'])
  expect(await actionsOf(user.id)).toEqual(['user.create'])
})

test('resolves a user before its session and rejects the session of a removed user', async () => {
  const identity = externalIdentity({ groups: ['ops'] })
  const resolve = () => resolveExternalUser(idp, identity, newOrigin())
  const reference = await resolve()
  expect(await countStoreCalls(resolve)).toBe(2)
  expect(await resolve()).toEqual(reference)
  expect(await actionsOf(reference.userId)).toEqual(['user.create'])
  expect(await countStoreCalls(() => openExternalSession(reference, newOrigin(), []))).toBe(3)
  const tokens = await openExternalSession(reference, newOrigin(), [])
  expect(await callerOfTokens(tokens)).toMatchObject(reference)
  await refresh(tokens)
  await UserAdmin.remove(caller, reference.userId)
  await expectError(openExternalSession(reference, newOrigin(), []), 'sign_in_code_invalid')
})

test('updates roles and e-mail at each sign-in and writes only changes', async () => {
  const identity = externalIdentity({ groups: ['ops'] })
  const { id } = await userOf(identity)
  const changedIdentity = { ...identity, email: 'other@example.com', groups: [] }
  expect(await userOf(changedIdentity)).toMatchObject({ id, roles: ['Viewer'], email: 'other@example.com', version: 2 })
  expect(await userOf(changedIdentity)).toMatchObject({ id, version: 2 })
  expect(await userOf(identity)).toMatchObject({ id, roles: ['Operator'], email: identity.email, version: 3 })
  expect(await userOf({ ...identity, email: 'no address' })).toMatchObject({ id, email: '', version: 4 })
  const details = (await recordsOf(id)).flatMap(({ audit }) => (audit?.action === 'user.update' ? audit.detail : []))
  expect(details).toHaveLength(3)
  expect((await callerOf({ ...identity, groups: ['root'] })).permissions).toContain('platform:admin')
  expect(details.join('\n')).toContain(`e-mail ${identity.email} → other@example.com; roles Operator → Viewer`)
})

test('keeps the roles if the list of groups is incomplete, and says so', async () => {
  const identityWithGroups = externalIdentity({ groups: ['ops'] })
  const identityWithoutGroups = { ...identityWithGroups, groups: [], missingGroups: 'The list ends after 500 groups.' }
  expect(await errorCodeOf(signInAs(identityWithoutGroups))).toBe('groups_incomplete')
  const { id } = await userOf(identityWithGroups)
  const reference = await resolveExternalUser(idp, identityWithoutGroups, newOrigin())
  for (const tokens of [await signInAs(identityWithoutGroups), await openExternalSession(reference, newOrigin(), [])]) {
    expect(tokens.notice).toMatch(/roles were not updated/)
    const { sessionId } = await callerOfTokens(tokens)
    const openRecord = (await readPendingRecords(caller.organisationId)).find(
      ({ audit }) => audit?.resource === sessionId,
    )
    expect(openRecord?.audit?.detail).toMatch(/list of groups was incomplete/)
  }
  expect(await find(caller.organisationId, id)).toMatchObject({ roles: ['Operator'], version: 1 })
  const [report, ...others] = await readPendingEvents(caller, 'identity.provider_failed')
  expect(report?.data).toMatchObject({ problem: 'groups_incomplete', detail: expect.stringContaining('500 groups') })
  expect(others).toEqual([])
})

test('gives a user another name if the name is taken and never matches users by name or e-mail', async () => {
  const localUser = await UserAdmin.create(caller, userRequest())
  const [providerId, otherId] = [await storeProvider(caller.organisationId), await storeProvider(caller.organisationId)]
  const identity = externalIdentity({
    subject: 'same',
    username: localUser.username.toUpperCase(),
    email: localUser.email,
  })
  const [firstUser, secondUser] = [await userOf(identity, providerId), await userOf(identity, otherId)]
  expect(new Set([localUser.id, firstUser.id, secondUser.id]).size).toBe(3)
  expect(firstUser.username).toMatch(new RegExp(`^${localUser.username.slice(0, 40)}-[0-9a-f]{8}$`, 'i'))
  expect(firstUser.username).not.toBe(secondUser.username)

  expect(await userOf(identity, providerId)).toMatchObject({ id: firstUser.id, username: firstUser.username })
  expect((await userOf({ ...identity, subject: 'Same' }, providerId)).id).not.toBe(firstUser.id)
})

test.each([
  ['mu\u0308ller', /^m\u00fcller$/],
  ['Łukasz Öz', /^Łukasz-Öz-[0-9a-f]{8}$/],
  ['山田', /^山田$/],
  ['ｈａｎａ', /^hana$/],
  ['\u202enimda', /^nimda-[0-9a-f]{8}$/],
  ['\u{20000}'.repeat(65), /^\u{20000}{20}-[0-9a-f]{8}$/u],
  ['', /^user-[0-9a-f]{8}$/],
  ['a\0b\r\nc', /^a-b-c-[0-9a-f]{8}$/],
  ['../../etc', /^etc-[0-9a-f]{8}$/],
  ['<script>', /^script--[0-9a-f]{8}$/],
  ['x'.repeat(100_000), /^x{40}-[0-9a-f]{8}$/],
  ['\ud800', /^user-[0-9a-f]{8}$/],
  [' spaced ', /^spaced$/],
])('converts the name %j into a valid username', async (username, pattern) => {
  const identity = externalIdentity({ username })
  const user = await userOf(identity)
  expect(user.username).toMatch(pattern)
  expect(await userOf(identity)).toMatchObject({ id: user.id, username: user.username })
})

test('follows new names and addresses of the provider, and frees the former name', async () => {
  const identity = externalIdentity({ displayName: 'Ada\u202e Byron', email: 'ada@bücher.example' })
  const { id } = await userOf(identity)
  await UserAdmin.endUserSessions(caller, id)
  const married = { ...identity, username: `Ödön-${randomUUID()}`, displayName: 'عادة', email: '用户@例子.广告' }
  const { username, displayName, email } = married
  expect(await userOf(identity)).toMatchObject({ id, displayName: 'Ada Byron', email: identity.email })
  const tokens = await signInAs(married)
  expect(await find(caller.organisationId, id)).toMatchObject({ username, displayName, email, epoch: 1 })
  expect(await get(keys.username(username.toUpperCase()))).toMatchObject({ userId: id, epoch: 1 })
  const namesake = await UserAdmin.create(caller, userRequest(['Viewer'], identity.username))
  expect(await userOf({ ...married, username: namesake.username })).toMatchObject({ id, username })
  await refresh(tokens)
  await UserAdmin.endUserSessions(caller, id)
  await expectError(refresh(tokens), 'invalid_refresh_token')
  const [last] = (await recordsOf(id)).flatMap(({ audit }) => (audit?.detail?.includes('عادة') ? audit.detail : []))
  expect(last).toContain(`name ${identity.username} → ${username}; display name Ada Byron → عادة`)
})

test('rejects a sign-in if all candidate names are taken, without affecting other users', async () => {
  const identity = externalIdentity({ username: 'crowded' })
  const hash = sha256(JSON.stringify([idp.id, identity.subject]))
  for (const username of ['crowded', `crowded-${hash.slice(0, 8)}`, `crowded-${hash.slice(0, 20)}`]) {
    await UserAdmin.create(caller, userRequest(['Viewer'], username))
  }
  await expectError(signInAs(identity), 'username_taken')
  expect((await userOf(externalIdentity({ username: 'crowded' }))).username).toMatch(/^crowded-/)
})

test('creates one user and a session each for concurrent first sign-ins of one identity', async () => {
  const identity = externalIdentity()
  const countBefore = await countUsers()
  const callers = await Promise.all(Array.from({ length: 6 }, () => callerOf(identity)))
  expect(new Set(callers.map(({ userId }) => userId)).size).toBe(1)
  expect(new Set(callers.map(({ sessionId }) => sessionId)).size).toBe(6)
  expect(await countUsers()).toBe(countBefore + 1)
})

test('creates a user each for concurrent first sign-ins of identities with one name', async () => {
  const username = `twin-${randomUUID().slice(0, 8)}`
  const users = await Promise.all(Array.from({ length: 6 }, () => userOf(externalIdentity({ username }))))
  expect(new Set(users.map(({ id }) => id)).size).toBe(6)
  expect(new Set(users.map(({ username: name }) => name)).size).toBe(6)
  expect(users.filter(({ username: name }) => name === username)).toHaveLength(1)
})

test('creates a new user if the user is removed during the sign-in', async () => {
  const identity = externalIdentity({ groups: ['ops'] })
  const { id } = await userOf(identity)
  runBefore(/^TransactWrite/, () => UserAdmin.remove(caller, id))
  const finalUser = await userOf({ ...identity, groups: [] })
  expect([finalUser.id === id, finalUser.roles]).toEqual([false, ['Viewer']])
  expect(await find(caller.organisationId, id)).toBeUndefined()
})

test('releases name and identity link of a removed user', async () => {
  const identity = externalIdentity()
  const firstCaller = await callerOf(identity)
  const tokens = await signInAs(identity)
  await UserAdmin.remove(caller, firstCaller.userId)
  expect(await get(keys.externalIdentity(idp.id, sha256(identity.subject)))).toBeUndefined()
  await expectError(refresh(tokens), 'invalid_refresh_token')
  const next = await userOf(identity)
  expect([next.id === firstCaller.userId, next.username]).toEqual([false, identity.username])
})

test('replaces an identity link to a missing user', async () => {
  const identity = externalIdentity()
  const { id, organisationId } = await userOf(identity)
  await transact([remove(keys.user(organisationId, id)), remove(keys.username(identity.username))])
  const next = await userOf(identity)
  expect(next.id).not.toBe(id)
  expect(await userOf(identity)).toMatchObject({ id: next.id })
})

test('rejects every password for an external user at the cost of a wrong password', async () => {
  const { username } = await userOf(externalIdentity())
  const localUser = await UserAdmin.create(caller, userRequest())
  for (const guess of [password, 'undefined', '', ' ']) {
    await expectError(signIn({ username, password: guess }, newOrigin()), 'invalid_credentials')
  }
  const failureCost = (name: string) =>
    countStoreCalls(() => errorCodeOf(signIn({ username: name, password: 'wrong' }, newOrigin())))
  expect(await failureCost(username)).toBe(await failureCost(localUser.username))
})

test('without confirmations of the provider, a session ends after 24 hours and API tokens after 30 days, never earlier', async () => {
  const identity = externalIdentity()
  const tokens = await signInAs(identity)
  const owner = await verifySession(tokens.accessToken)
  const { token } = await ApiToken.create(owner, { name: 'ci' })
  const renew = (refreshToken: string) => refreshWithCheck({ refreshToken }, newOrigin())
  let next = await renew(tokens.refreshToken)
  for (const minutes of [14, 2, 23 * 60]) {
    advanceClock(minutes * 60_000)
    expect(await countStoreCalls(async () => (next = await renew(next.refreshToken)))).toBe(4)
  }
  advanceClock(44 * 60_000)
  await expectError(renew(next.refreshToken), 'invalid_refresh_token')
  const useAfterDays = async (days: number) => {
    advanceClock(days * 24 * 3_600_000)
    await sweep()
    await expectError(verifyApiToken(token), 'no error')
    await sweep()
  }
  await useAfterDays(28)
  await signInAs(identity)
  advanceClock(23 * 3_600_000)
  await signInAs(identity)
  await useAfterDays(29.9)
  await useAfterDays(1.1)
  await expectError(verifyApiToken(token), 'unauthenticated')
  await signInAs(identity)
  await useAfterDays(0)
  await expectError(verifyApiToken(token), 'no error')
})

test('a suspension ends sessions that were opened since the last one, and sign-ins that began before', async () => {
  const identity = externalIdentity()
  const { id, organisationId } = await userOf(identity)
  const reference = await resolveExternalUser(idp, identity, newOrigin())
  await suspend(organisationId, id, 'test')
  await expectError(openExternalSession(reference, newOrigin(), []), 'sign_in_code_invalid')
  const tokens = await signInAs(identity)
  for (const _ of [1, 2]) await suspend(organisationId, id, 'test')
  await expectError(refresh(tokens), 'invalid_refresh_token')
  const events = await readPendingEvents({ organisationId }, 'user.suspended')
  expect(events.filter(({ subject }) => subject === id)).toHaveLength(2)
})

describe('the rights of external users', () => {
  beforeEach(async () => {
    idp = await storeProvider(caller.organisationId, {
      roleMappings: [
        { group: 'root', role: 'PlatformAdmin' },
        { group: 'admins', role: 'OrgAdmin' },
      ],
    })
  })

  async function signInWithGroups(...groups: string[]) {
    const identity = externalIdentity({ groups })
    const tokens = await signInAs(identity)
    return { identity, tokens, user: await callerOfTokens(tokens) }
  }

  test('keeps the last local administrator even if external administrators exist', async () => {
    const countAdministrators = async () =>
      Number((await get(keys.administrators(platform.caller.organisationId)))?.['count'])
    const external = await signInWithGroups('root')
    expect(external.user.permissions.has('platform:admin')).toBe(true)
    expect(await countAdministrators()).toBe(1)
    for (const actor of [caller, external.user]) {
      await expectError(UserAdmin.remove(actor, platform.id), 'last_administrator')
      await expectError(UserAdmin.update(actor, platform.id, { roles: ['Viewer'] }), 'last_administrator')
    }
    await signInAs({ ...external.identity, groups: [] })
    expect(await countAdministrators()).toBe(1)
    const actor = await callerOfTokens(await signInAs(external.identity))
    const otherAdmin = await createColleague(actor, 'PlatformAdmin')
    expect(await countAdministrators()).toBe(2)
    await UserAdmin.remove(actor, otherAdmin.id)
    await expectError(UserAdmin.remove(actor, platform.id), 'last_administrator')
    await UserAdmin.remove(caller, actor.userId)
    expect(await countAdministrators()).toBe(1)
  })

  test.each([{ roles: ['Viewer' as const] }, { email: 'other@example.com' }, { password }])(
    'rejects changing %o of an external user',
    async (change) => {
      const { user } = await signInWithGroups()
      const userBefore = await get(keys.user(user.organisationId, user.userId))
      await expectError(UserAdmin.update(caller, user.userId, change), 'account_not_local')
      const request = `PATCH /api/v1/users/${user.userId}`
      expect(await requestErrorCode('users', request, [caller, 'PlatformAdmin'], change)).toBe('account_not_local')
      expect(await get(keys.user(user.organisationId, user.userId))).toEqual(userBefore)
    },
  )

  test('rejects a password change by an external user', async () => {
    const { user } = await signInWithGroups()
    const change = { currentPassword: password, newPassword: password }
    await expectError(changePassword(user, change, newOrigin()), 'account_not_local')
    const request = 'PUT /api/v1/users/me/password'
    expect(await requestErrorCode('users', request, [user, 'Viewer'], change)).toBe('account_not_local')
  })

  const disablings = [
    ['disabled', () => setProviderEnabled(idp, false)],
    ['removed', () => removeProvider(idp)],
  ] as const

  test.each(disablings)('revokes a session at its next refresh after the provider is %s', async (state, disable) => {
    const { identity, tokens } = await signInWithGroups()
    const otherSession = await signInAs(identity)
    const localUser = await createColleague(caller, 'Viewer')
    let next = tokens
    expect(await countStoreCalls(async () => (next = await refresh(tokens)))).toBe(4)
    await disable()
    await expectError(refresh(next), 'invalid_refresh_token')
    const { sessionId } = await callerOfTokens(next)
    const audits = (await readPendingRecords(caller.organisationId)).map(({ audit }) => audit)
    const actions = audits.flatMap((audit) => (audit?.resource === sessionId ? audit.action : []))
    expect(actions).toContain('session.revoke')
    expect(await countStoreCalls(() => refresh(localUser))).toBe(3)
    await setProviderEnabled(idp, true).catch(() => undefined)
    await expectError(refresh(next), 'invalid_refresh_token')
    if (state === 'disabled') await expectError(refresh(otherSession), 'no error')
  })

  test.each(disablings)('rejects API tokens while the provider is %s, cached or not', async (state, disable) => {
    const { user } = await signInWithGroups('admins')
    const cachedToken = await ApiToken.create(user, { name: 'cached' })
    const uncachedToken = await ApiToken.create(user, { name: 'uncached' })
    const localToken = await ApiToken.create(caller, { name: 'local' })
    const verifyCost = ({ token }: { token: string }) => countStoreCalls(() => verifyApiToken(token))
    expect([await verifyCost(cachedToken), await verifyCost(cachedToken)]).toEqual([4, 1])
    expect([await verifyCost(localToken), await verifyCost(localToken)]).toEqual([3, 1])
    await disable()
    for (const { token } of [cachedToken, uncachedToken]) await expectError(verifyApiToken(token), 'unauthenticated')
    await expectError(verifyApiToken(localToken.token), 'no error')
    if (state === 'removed') return
    await setProviderEnabled(idp, true)
    for (const { token } of [cachedToken, uncachedToken]) await expectError(verifyApiToken(token), 'no error')
  })

  test('rejects lasting changes with an access token of a disabled provider', async () => {
    const { user } = await signInWithGroups('root')
    await setProviderEnabled(idp, false)
    await expectError(ApiToken.create(user, { name: 'late' }), 'unauthenticated')
    await expectError(UserAdmin.create(user, userRequest(['PlatformAdmin'])), 'unauthenticated')
    await expectError(UserAdmin.remove(user, platform.id), 'unauthenticated')
  })
})
