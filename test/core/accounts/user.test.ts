import { permissionsOf } from '@platform/contract/permission'
import { UserCreation } from '@platform/contract/user'
import * as Layout from '@platform/core/accounts/dashboard-layout'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import * as Organisation from '@platform/core/accounts/organisation'
import { changePassword } from '@platform/core/accounts/change-password'
import * as ApiToken from '@platform/core/accounts/api-token'
import { resetPassword } from '@platform/core/accounts/reset-password'
import * as Notification from '@platform/core/notifications/notification'
import * as SavedFilter from '@platform/core/accounts/saved-filter'
import { refresh, signIn } from '@platform/core/accounts/session'
import * as User from '@platform/core/accounts/user'
import { sweep } from '@platform/core/background/sweep'
import type { Caller } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { get, patch, query } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { verifyAccessToken } from '@platform/core/signing/access-token'
import { beforeAll, describe, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import {
  administrator,
  createColleague,
  createTenantAdministrator,
  errorCodeOf,
  expectError,
  newOrigin,
  password,
  setUpPlatform,
  type SignedInUser,
  userRequest,
} from '../../support/fixtures.ts'
import { rounds } from '../../support/long.ts'
import { readAuditEntries, drainOutbox } from '../support/outbox.ts'

let platform: SignedInUser
let tenant: SignedInUser
beforeAll(async () => {
  platform = await setUpPlatform()
  tenant = await createTenantAdministrator(platform.caller)
})

const firstPage = { page: 1, pageSize: 100 }
const signInAs = (username: string, secret = password) => signIn({ username, password: secret }, newOrigin())

describe('users', () => {
  test('have each role once and sign in with a name in any case', async () => {
    const request = userRequest(['Operator', 'Auditor', 'Operator'])
    const createdUser = await UserAdmin.create(tenant.caller, request)
    const permissions = permissionsOf(['Operator', 'Auditor'])
    expect(createdUser).toMatchObject({ roles: ['Operator', 'Auditor'], permissions })
    const caller = await verifyAccessToken((await signInAs(request.username.toUpperCase())).accessToken)
    expect([...caller.permissions]).toEqual(permissions)
  })

  test('have unique names across organisations, regardless of case, also concurrently', async () => {
    const otherAdmin = await createTenantAdministrator(platform.caller)
    for (let round = 0; round < rounds(2, 5); round++) {
      const names = [`Wanted-${round}`, `wanted-${round}`]
      const creations = [tenant, otherAdmin, tenant, otherAdmin].map(({ caller }, index) =>
        errorCodeOf(UserAdmin.create(caller, userRequest(['Viewer'], names[index % 2]))),
      )
      expect((await Promise.all(creations)).toSorted()).toEqual(['no error', ...Array(3).fill('username_taken')])
    }
  })

  test.each([
    ['Straße', 'STRASSE'],
    ['ΝΊΚΟΣ', 'νίκος'],
    ['jörg', 'JO\u0308RG'],
    ['ｈａｎａ2', 'Hana2'],
    ['İpek', 'i\u0307PEK'],
  ])('with the name %s sign in as %s, and no other user gets it', async (name, other) => {
    const request = userRequest(['Viewer'], name)
    await UserAdmin.create(tenant.caller, { ...request, username: UserCreation.parse(request).username })
    expect(await signInAs(other)).toMatchObject({ tokenType: 'Bearer' })
    await expectError(UserAdmin.create(tenant.caller, userRequest(['Viewer'], other)), 'username_taken')
  })

  test.each([
    { username: 'ad\u200da' },
    { username: 'ada\u202e' },
    { username: '😀' },
    { username: '_ada' },
    { username: 'a b' },
    { username: 'é'.repeat(65) },
    { email: 'ada@example' },
    { email: 'a\u202eda@example.com' },
    { email: 'a..b@example.com' },
    { email: 'ada@-example.com' },
  ])('cannot have the name or address %j', (field) => {
    expect(UserCreation.safeParse({ ...userRequest(['Viewer']), ...field }).success).toBe(false)
  })

  test('a sign-in accepts names that are longer than any key', async () => {
    for (const name of ['\ufdfa'.repeat(254), 'ΐ'.repeat(254), '\u{1d160}'.repeat(127)])
      await expectError(signInAs(name), 'invalid_credentials')
  })

  test('get no common password, wherever one is set', async () => {
    const { id, caller } = await createColleague(tenant.caller, 'Viewer')
    const [weak, currentPassword] = ['football1', password]
    const attempts = [
      UserAdmin.create(tenant.caller, { ...userRequest(['Viewer']), password: weak }),
      UserAdmin.update(tenant.caller, id, { password: weak }),
      changePassword(caller, { currentPassword, newPassword: weak }, newOrigin()),
    ]
    for (const attempt of attempts) await expectError(attempt, 'validation_failed')
  })

  test('have their changes audited, including the e-mail', async () => {
    const user = await createColleague(tenant.caller, 'ClusterAdmin')
    const changedUser = await UserAdmin.update(tenant.caller, user.id, { roles: ['Viewer'], email: 'new@example.com' })
    expect(await UserAdmin.update(tenant.caller, user.id, {})).toEqual(changedUser)
    await drainOutbox(tenant.caller.organisationId)
    const entry = (await readAuditEntries(tenant.caller)).find(
      ({ resource, action: name }) => resource === user.id && name === 'user.update',
    )
    expect(entry).toMatchObject({ detail: expect.stringContaining('@example.com → new@example.com') })
  })

  test('keep all concurrent changes', async () => {
    const { id } = await UserAdmin.create(tenant.caller, userRequest(['Viewer']))
    await Promise.all([
      UserAdmin.update(tenant.caller, id, { email: 'one@example.com' }),
      UserAdmin.update(tenant.caller, id, { roles: ['Operator'] }),
      UserAdmin.endUserSessions(tenant.caller, id),
    ])
    expect(await User.read(tenant.caller, id)).toMatchObject({ email: 'one@example.com', roles: ['Operator'] })
  })
})

describe('removed users', () => {
  const countPreferences = async ({ organisationId, userId }: Caller) =>
    (await query(keys.preferences(organisationId, userId))).items.length

  test('are not counted, and their name is free for a new user', async () => {
    const user = await createColleague(tenant.caller, 'ClusterAdmin')
    const countBefore = (await User.list(tenant.caller, firstPage)).totalCount
    await UserAdmin.remove(tenant.caller, user.id)
    await expectError(User.profile(user.caller), 'unauthenticated')
    expect((await User.list(tenant.caller, firstPage)).totalCount).toBe(countBefore - 1)
    await UserAdmin.create(tenant.caller, userRequest(['Viewer'], user.username))
    await expectError(refresh(user), 'invalid_refresh_token')
  })

  test('lose their preferences, including those saved until their access token expires', async () => {
    const { caller, id } = await createColleague(platform.caller, 'Viewer')
    const colleague = await createColleague(platform.caller, 'Viewer')
    for (const user of [caller, colleague.caller]) await Layout.save(user, { layout: [] })
    await UserAdmin.remove(platform.caller, id)
    for (let count = 0; count < 60; count++) {
      await SavedFilter.create(caller, { name: 'late', context: 'clusters', filter: {} })
    }
    await sweep()
    advanceClock(15 * 60_000)
    await Layout.save(caller, { layout: [] })
    await sweep()
    advanceClock(60_000)
    await sweep()
    expect([await countPreferences(caller), await countPreferences(colleague.caller)]).toEqual([0, 1])
    expect(await get(keys.userPurge(id))).toBeUndefined()
  })
})

test('organisations have unique names regardless of case and normalisation, also concurrently', async () => {
  await Organisation.create(platform.caller, { name: 'Müller' })
  for (const name of ['MÜLLER', 'mu\u0308ller', administrator.platformName.toUpperCase()]) {
    await expectError(Organisation.create(platform.caller, { name }), 'organisation_name_taken')
  }
  const countBefore = (await Organisation.list(firstPage)).totalCount
  const creations = Array.from({ length: 8 }, () =>
    errorCodeOf(Organisation.create(platform.caller, { name: 'wanted' })),
  )
  const codes = (await Promise.all(creations)).toSorted()
  expect(codes).toEqual(['no error', ...Array(7).fill('organisation_name_taken')])
  expect((await Organisation.list(firstPage)).totalCount).toBe(countBefore + 1)
})

describe.each(['PlatformAdmin', 'OrgAdmin'] as const)('the last %s of an organisation', (role) => {
  let admin: SignedInUser
  beforeAll(async () => {
    admin = role === 'PlatformAdmin' ? platform : await createTenantAdministrator(platform.caller)
  })
  const countAdministrators = async () =>
    Number((await get(keys.administrators(admin.caller.organisationId)))?.['count'])
  const demote = (actor: SignedInUser, user: SignedInUser) =>
    errorCodeOf(UserAdmin.update(actor.caller, user.id, { roles: ['Viewer'] }))

  test('cannot be removed or demoted', async () => {
    expect(await countAdministrators()).toBe(1)
    await expectError(UserAdmin.remove(admin.caller, admin.id), 'last_administrator')
    expect(await demote(admin, admin)).toBe('last_administrator')
    expect(await countAdministrators()).toBe(1)
  })

  test('remains when two administrators demote or remove each other or themselves concurrently', async () => {
    const colleague = await createColleague(admin.caller, role)
    const isAdmin = async ({ id }: SignedInUser) => (await User.read(admin.caller, id)).roles.includes(role)
    for (let round = 0; round < rounds(4, 30); round++) {
      expect(await countAdministrators()).toBe(2)
      const outcomes = await Promise.all(
        round % 2 === 0
          ? [demote(admin, colleague), demote(colleague, admin)]
          : [demote(admin, admin), demote(colleague, colleague)],
      )
      expect(outcomes.filter((outcome) => outcome === 'no error')).toHaveLength(1)
      expect(['last_administrator', 'forbidden']).toContain(outcomes.find((outcome) => outcome !== 'no error'))
      expect(await countAdministrators()).toBe(1)
      const areAdmins = await Promise.all([isAdmin(admin), isAdmin(colleague)])
      expect(areAdmins.filter(Boolean)).toHaveLength(1)
      const [actor, demotedUser] = areAdmins[0] ? [admin, colleague] : [colleague, admin]
      await UserAdmin.update(actor.caller, demotedUser.id, { roles: [role] })
    }
    const removal = errorCodeOf(UserAdmin.remove(admin.caller, colleague.id))
    expect(await Promise.all([removal, demote(colleague, colleague)])).toContain('no error')
    expect(await countAdministrators()).toBe(1)
  })
})

test('a platform administrator recovers an organisation without an administrator once, and its users are notified', async () => {
  const { caller } = await createTenantAdministrator(platform.caller)
  const { organisationId } = caller
  const viewer = await createColleague(caller, 'Viewer')
  const recover = () => UserAdmin.create(platform.caller, { ...userRequest(['OrgAdmin']), organisationId })
  await expectError(recover(), 'organisation_has_users')
  await transact([
    patch(keys.administrators(organisationId), { set: { count: 0 } }),
    patch(keys.user(organisationId, caller.userId), { set: { roles: ['Viewer'] } }),
  ])
  const codes = await Promise.all([recover(), recover(), recover()].map(errorCodeOf))
  expect(codes.toSorted()).toEqual(['no error', 'organisation_has_users', 'organisation_has_users'])
  for (const each of [platform.caller, caller]) {
    await drainOutbox(each.organisationId)
    const actions = (await readAuditEntries(each)).map(({ action }) => action)
    expect(actions.filter((action) => action === 'organisation.recover')).toHaveLength(1)
  }
  for (const each of [caller, viewer.caller]) {
    const { items } = await Notification.list(each, { unreadOnly: true, page: 1, pageSize: 20 })
    expect(items).toMatchObject([{ type: 'SecurityAlert', title: 'A platform administrator created an administrator' }])
  }
})

test.each(['Viewer', 'OrgAdmin'] as const)('the operator resets the password of a lost account (%s)', async (role) => {
  const { username } = await UserAdmin.create(tenant.caller, userRequest([role]))
  const { accessToken, refreshToken } = await signInAs(username)
  const request = { name: 'ci', permissions: ['clusters:read' as const] }
  await ApiToken.create(await verifyAccessToken(accessToken), request)
  const reset = await resetPassword(username.toUpperCase())
  expect(reset).toEqual({ username, password: expect.stringMatching(/^[\w-]{24}$/) })
  await expectError(refresh({ refreshToken }), 'invalid_refresh_token')
  await expectError(signInAs(username), 'invalid_credentials')
  const caller = await verifyAccessToken((await signInAs(username, reset.password)).accessToken)
  expect((await ApiToken.list(caller)).items).toEqual([])
  await drainOutbox(caller.organisationId)
  expect((await readAuditEntries(tenant.caller)).map(({ action }) => action)).toContain('user.reset_password')
  const { items } = await Notification.list(caller, { ...firstPage, unreadOnly: false })
  expect(items[0]).toMatchObject({ type: 'SecurityAlert', title: `The password of ${username} was reset` })
})

test.each(['stranger', '', 'x'.repeat(2000)])('rejects to reset the password of %j', async (name) => {
  await expectError(resetPassword(name), 'user_not_found')
})
