import { beforeAll, expect, test } from 'vitest'
import { permissionsOf, type Role, roleNames } from '@platform/contract/permission'
import * as ApiToken from '@platform/core/accounts/api-token'
import { verifyApiToken } from '@platform/core/accounts/api-token-caller'
import { newId } from '@platform/core/id'
import * as Organisation from '@platform/core/accounts/organisation'
import { hashPassword } from '@platform/core/accounts/password'
import { signIn } from '@platform/core/accounts/session'
import * as User from '@platform/core/accounts/user'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import {
  createColleague,
  userRequest,
  type SignedInUser,
  setUpPlatform,
  errorCodeOf,
  signInUser,
  newOrigin,
  createTenantAdministrator,
} from '../../support/fixtures.ts'

/** How far administrators of users reach. */

let platform: SignedInUser
let tenant: SignedInUser
beforeAll(async () => {
  platform = await setUpPlatform()
  tenant = await createTenantAdministrator(platform.caller)
})

/** What each may try, and what it hears. `target` is the role of a colleague in the same organisation. */
interface Attempt {
  who: 'platform OrgAdmin' | 'tenant OrgAdmin' | 'platform administrator'
  tries: string
  refused: string
  by: (people: { caller: SignedInUser; victim: SignedInUser }) => Promise<unknown>
}
const attempts: Attempt[] = [
  ...(['platform OrgAdmin', 'tenant OrgAdmin'] as const).flatMap((who): Attempt[] => [
    {
      who,
      tries: 'create a PlatformAdmin',
      refused: 'role_not_grantable',
      by: ({ caller }) => UserAdmin.create(caller.caller, userRequest(['Viewer', 'PlatformAdmin'])),
    },
    {
      who,
      tries: 'make itself PlatformAdmin',
      refused: 'role_not_grantable',
      by: ({ caller }) => UserAdmin.update(caller.caller, caller.id, { roles: ['OrgAdmin', 'PlatformAdmin'] }),
    },
    {
      who,
      tries: 'make a colleague PlatformAdmin',
      refused: 'role_not_grantable',
      by: async ({ caller }) => {
        const { id } = await UserAdmin.create(caller.caller, userRequest(['Viewer']))
        return UserAdmin.update(caller.caller, id, { roles: ['PlatformAdmin'] })
      },
    },
    {
      who,
      tries: 'create a user in another organisation',
      refused: 'organisation_not_found',
      by: async ({ caller }) => {
        const { id } = await Organisation.create(platform.caller, { name: newId('org') })
        return UserAdmin.create(caller.caller, { ...userRequest(['OrgAdmin']), organisationId: id })
      },
    },
  ]),
  ...(
    [
      [
        'reset the password of',
        ({ caller, victim }) => UserAdmin.update(caller, victim, { password: 'mine from now' }),
      ],
      ['take the roles of', ({ caller, victim }) => UserAdmin.update(caller, victim, { roles: ['Viewer'] })],
      ['change the e-mail of', ({ caller, victim }) => UserAdmin.update(caller, victim, { email: 'mine@example.com' })],
      ['end the sessions of', ({ caller, victim }) => UserAdmin.endUserSessions(caller, victim)],
      ['remove', ({ caller, victim }) => UserAdmin.remove(caller, victim)],
    ] as [string, (of: { caller: SignedInUser['caller']; victim: string }) => Promise<unknown>][]
  ).map(([tries, act]): Attempt => ({
    who: 'platform OrgAdmin',
    tries: `${tries} a platform administrator`,
    refused: 'forbidden',
    by: ({ caller, victim }) => act({ caller: caller.caller, victim: victim.id }),
  })),
  ...(['PlatformAdmin', 'OrgAdmin'] as const).map((role): Attempt => ({
    who: 'platform administrator',
    tries: `put a ${role} into an organisation that has users`,
    refused: 'organisation_has_users',
    by: ({ caller }) =>
      UserAdmin.create(caller.caller, { ...userRequest([role]), organisationId: tenant.caller.organisationId }),
  })),
]

const peopleBy: Record<Attempt['who'], () => Promise<SignedInUser>> = {
  'platform OrgAdmin': () => createColleague(platform.caller, 'OrgAdmin'),
  'tenant OrgAdmin': () => createColleague(tenant.caller, 'OrgAdmin'),
  'platform administrator': () => Promise.resolve(platform),
}

test.each(attempts)('$who that tries to $tries is refused: $refused', async ({ who, by, refused }) => {
  const caller = await peopleBy[who]()
  expect(await errorCodeOf(by({ caller, victim: platform }))).toBe(refused)
  // Nothing has moved.
  expect(await User.read(platform.caller, platform.id)).toMatchObject({ roles: ['PlatformAdmin'] })
  expect(await signIn(platform.credentials, newOrigin())).toMatchObject({ tokenType: 'Bearer' })
})

test('an administrator sets the own password only with the current one, and none by an API token', async () => {
  const own = await createColleague(tenant.caller, 'OrgAdmin')
  const other = await createColleague(tenant.caller, 'Viewer')
  const request = { password: 'mine from now' }
  await expect(UserAdmin.update(own.caller, own.id, request)).rejects.toMatchObject({
    code: 'validation_failed',
    extra: { details: [{ path: '/password', message: expect.stringContaining('PUT /api/v1/users/me/password') }] },
  })
  const caller = await verifyApiToken((await ApiToken.create(own.caller, { name: 'automation' })).token)
  for (const { id } of [own, other]) expect(await errorCodeOf(UserAdmin.update(caller, id, request))).toBe('forbidden')
  await UserAdmin.update(caller, other.id, { email: 'other@example.com' })
  for (const { username } of [own, other]) expect(await signInUser(username)).toMatchObject({ username })
  await UserAdmin.update(own.caller, other.id, request)
  expect(await signInUser(other.username, request.password)).toMatchObject({ id: other.id })
})

test('a name that is taken is refused without hashing a password', async () => {
  const { organisationId } = tenant.caller
  const hashes = Array.from({ length: 6 }, () => hashPassword('correct horse battery', organisationId))
  expect(await errorCodeOf(UserAdmin.create(tenant.caller, userRequest()))).toBe('rate_limited')
  const taken = userRequest(['Viewer'], platform.username.toUpperCase())
  expect(await errorCodeOf(UserAdmin.create(tenant.caller, taken))).toBe('username_taken')
  await Promise.all(hashes)
})

test('the first user of an organisation is an OrgAdmin that a platform administrator seeds, and one of several wins', async () => {
  const { id: organisationId } = await Organisation.create(platform.caller, { name: newId('org') })
  const seed = (...roles: Role[]) => UserAdmin.create(platform.caller, { ...userRequest(roles), organisationId })
  expect(await errorCodeOf(seed('Viewer'))).toBe('role_not_grantable')
  expect(await errorCodeOf(seed('OrgAdmin', 'PlatformAdmin'))).toBe('role_not_grantable')
  const unknown = { ...userRequest(['OrgAdmin']), organisationId: newId('org') }
  expect(await errorCodeOf(UserAdmin.create(platform.caller, unknown))).toBe('organisation_not_found')
  const outcomes = await Promise.allSettled([seed('OrgAdmin'), seed('OrgAdmin', 'Auditor'), seed('OrgAdmin')])
  const losses = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
  expect(losses.map(({ code }) => code)).toEqual(Array(2).fill('organisation_has_users'))
  const [winner] = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
  const { caller } = await signInUser(winner!.username)
  expect(await User.list(caller, { page: 1, pageSize: 20 })).toMatchObject({
    totalCount: 1,
    items: [{ organisationId }],
  })
})

test('a role is called grantable where it can be granted, and nowhere else', async () => {
  for (const { caller } of [platform, tenant]) {
    const { items } = User.roles(caller)
    for (const { name, permissions, grantable } of items) {
      const refusal = await errorCodeOf(UserAdmin.create(caller, userRequest([name])))
      expect([name, refusal]).toEqual([name, grantable ? 'no error' : 'role_not_grantable'])
      expect(permissions).toEqual(permissionsOf([name]))
    }
    expect(items.map(({ name }) => name)).toEqual([...roleNames])
  }
})
