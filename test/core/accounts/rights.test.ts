import { permissionsOf, type Role, roleNames } from '@platform/contract/permission'
import { verifyApiToken } from '@platform/core/accounts/api-token-caller'
import * as ApiToken from '@platform/core/accounts/api-token'
import { reauthorize } from '@platform/core/accounts/current-rights'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import * as Organisation from '@platform/core/accounts/organisation'
import { withFairQueue } from '@platform/core/accounts/hash-queue'
import { signIn, signOut } from '@platform/core/accounts/session'
import * as User from '@platform/core/accounts/user'
import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { remove, update } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import * as Enrollment from '@platform/core/relays/enrollment'
import * as Webhook from '@platform/core/webhooks/webhook'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  createColleague,
  createTenantAdministrator,
  errorCodeOf,
  expectError,
  newCaller,
  newOrigin,
  setUpPlatform,
  type SignedInUser,
  signInUser,
  userRequest,
} from '../../support/fixtures.ts'
import { isLong } from '../../support/long.ts'
import { countStoreCalls } from '../../support/store-calls.ts'

const hook = { url: 'https://hooks.example.com/platform', events: ['*'] }
const newPassword = { password: 'mine from now' }
let platform: SignedInUser
let tenant: SignedInUser
let resources: Record<'userId' | 'clusterId' | 'webhookId', string>
beforeAll(async () => {
  platform = await setUpPlatform()
  tenant = await createTenantAdministrator(platform.caller)
  resources = {
    userId: (await UserAdmin.create(tenant.caller, userRequest(['Viewer']))).id,
    clusterId: (await Cluster.register(tenant.caller, { name: 'theirs', type: 'Hypervisor' })).id,
    webhookId: (await Webhook.create(tenant.caller, hook)).id,
  }
})

describe('administrators cannot exceed their own rights', () => {
  type Attempt = (administrator: SignedInUser) => Promise<unknown>
  const newAdministrators = {
    'platform OrgAdmin': () => createColleague(platform.caller, 'OrgAdmin'),
    'tenant OrgAdmin': () => createColleague(tenant.caller, 'OrgAdmin'),
    'platform administrator': async () => platform,
  }
  const orgAdminAttempts: [string, string, Attempt][] = [
    [
      'create a PlatformAdmin',
      'role_not_grantable',
      ({ caller }) => UserAdmin.create(caller, userRequest(['Viewer', 'PlatformAdmin'])),
    ],
    [
      'become PlatformAdmin',
      'role_not_grantable',
      ({ caller, id }) => UserAdmin.update(caller, id, { roles: ['OrgAdmin', 'PlatformAdmin'] }),
    ],
    [
      'make a colleague PlatformAdmin',
      'role_not_grantable',
      async ({ caller }) => {
        const { id } = await UserAdmin.create(caller, userRequest(['Viewer']))
        return UserAdmin.update(caller, id, { roles: ['PlatformAdmin'] })
      },
    ],
  ]
  const adminAttempts: [string, Attempt][] = [
    ['reset the password of', ({ caller }) => UserAdmin.update(caller, platform.id, newPassword)],
    ['change the roles of', ({ caller }) => UserAdmin.update(caller, platform.id, { roles: ['Viewer'] })],
    ['change the e-mail of', ({ caller }) => UserAdmin.update(caller, platform.id, { email: 'mine@example.com' })],
    ['revoke the API tokens of', ({ caller }) => UserAdmin.revokeTokens(caller, platform.id)],
    ['end the sessions of', ({ caller }) => UserAdmin.endUserSessions(caller, platform.id)],
    ['remove', ({ caller }) => UserAdmin.remove(caller, platform.id)],
  ]
  const attempts: (readonly [keyof typeof newAdministrators, string, string, Attempt])[] = [
    ...orgAdminAttempts.map((row) => ['platform OrgAdmin' as const, ...row] as const),
    ...orgAdminAttempts.map((row) => ['tenant OrgAdmin' as const, ...row] as const),
    ...adminAttempts.map(
      ([action, attempt]) =>
        ['platform OrgAdmin' as const, `${action} a platform administrator`, 'forbidden', attempt] as const,
    ),
    ...(['PlatformAdmin', 'OrgAdmin'] as const).map((role) => {
      const attempt: Attempt = ({ caller }) =>
        UserAdmin.create(caller, { ...userRequest([role]), organisationId: tenant.caller.organisationId })
      const title = `create a ${role} in an organisation with users`
      return ['platform administrator' as const, title, 'organisation_has_users', attempt] as const
    }),
  ]

  test.each(attempts)('a %s cannot %s: %s', async (administrator, _, code, attempt) => {
    await expectError(attempt(await newAdministrators[administrator]()), code)
    expect(await User.read(platform.caller, platform.id)).toMatchObject({ roles: ['PlatformAdmin'] })
  })

  afterAll(async () => {
    expect(await signIn(platform.credentials, newOrigin())).toMatchObject({ tokenType: 'Bearer' })
  })
})

test('a password reset is rejected for the caller’s own account and with an API token', async () => {
  const self = await createColleague(tenant.caller, 'OrgAdmin')
  const colleague = await createColleague(tenant.caller, 'Viewer')
  await expect(UserAdmin.update(self.caller, self.id, newPassword)).rejects.toMatchObject({
    code: 'validation_failed',
    extra: { details: [{ path: '/password', message: expect.stringContaining('PUT /api/v1/users/me/password') }] },
  })
  const caller = await verifyApiToken((await ApiToken.create(self.caller, { name: 'automation' })).token)
  for (const { id } of [self, colleague]) await expectError(UserAdmin.update(caller, id, newPassword), 'forbidden')
  await UserAdmin.update(caller, colleague.id, { email: 'other@example.com' })
  for (const { username } of [self, colleague]) expect(await signInUser(username)).toMatchObject({ username })
  await UserAdmin.update(self.caller, colleague.id, newPassword)
  expect(await signInUser(colleague.username, newPassword.password)).toMatchObject({ id: colleague.id })
})

test('a taken username is rejected before the password is hashed', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const hashes = Array.from({ length: 6 }, () => withFairQueue(tenant.caller.organisationId, () => promise))
  await expectError(UserAdmin.create(tenant.caller, userRequest()), 'rate_limited')
  const takenRequest = userRequest(['Viewer'], platform.username.toUpperCase())
  await expectError(UserAdmin.create(tenant.caller, takenRequest), 'username_taken')
  resolve()
  await Promise.all(hashes)
})

test('a platform administrator creates only the first user of an organisation, who must be an OrgAdmin', async () => {
  const { id: organisationId } = await Organisation.create(platform.caller, { name: newId('org') })
  const createFirst = (...roles: Role[]) => UserAdmin.create(platform.caller, { ...userRequest(roles), organisationId })
  await expectError(createFirst('Viewer'), 'role_not_grantable')
  await expectError(createFirst('OrgAdmin', 'PlatformAdmin'), 'role_not_grantable')
  const unknownTenantUser = { ...userRequest(['OrgAdmin']), organisationId: newId('org') }
  await expectError(UserAdmin.create(platform.caller, unknownTenantUser), 'organisation_not_found')
  const creations = [createFirst('OrgAdmin'), createFirst('OrgAdmin', 'Auditor'), createFirst('OrgAdmin')]
  const codes = await Promise.all(creations.map(errorCodeOf))
  expect(codes.toSorted()).toEqual(['no error', 'organisation_has_users', 'organisation_has_users'])
  const { username } = await creations[codes.indexOf('no error')]!
  const { caller } = await signInUser(username)
  expect(await User.list(caller, { page: 1, pageSize: 20 })).toMatchObject({
    totalCount: 1,
    items: [{ organisationId }],
  })
})

test('grantable roles can be granted, others cannot', async () => {
  for (const { caller } of [platform, tenant]) {
    const { items } = User.roles(caller)
    for (const { name, permissions, grantable } of items) {
      const code = await errorCodeOf(UserAdmin.create(caller, userRequest([name])))
      expect([name, code]).toEqual([name, grantable ? 'no error' : 'role_not_grantable'])
      expect(permissions).toEqual(permissionsOf([name]))
    }
    expect(items.map(({ name }) => name)).toEqual([...roleNames])
  }
})

describe('access tokens cannot grant longer access once the rights of their user have changed', () => {
  const changes: Record<string, (user: SignedInUser) => Promise<unknown>> = {
    demoted: ({ id }) => UserAdmin.update(tenant.caller, id, { roles: ['Viewer'] }),
    removed: ({ id }) => UserAdmin.remove(tenant.caller, id),
    'signed out': ({ caller }) => signOut(caller),
    'whose sessions were ended': ({ id }) => UserAdmin.endUserSessions(tenant.caller, id),
  }
  const operations: Record<string, (caller: Caller) => Promise<unknown>> = {
    'create a user': (caller) => UserAdmin.create(caller, userRequest(['OrgAdmin'])),
    'change roles': (caller) => UserAdmin.update(caller, resources.userId, { roles: ['OrgAdmin'] }),
    'reset a password': (caller) => UserAdmin.update(caller, resources.userId, newPassword),
    'remove a user': (caller) => UserAdmin.remove(caller, resources.userId),
    'end sessions': (caller) => UserAdmin.endUserSessions(caller, resources.userId),
    'revoke API tokens': (caller) => UserAdmin.revokeTokens(caller, resources.userId),
    'create an API token': (caller) => ApiToken.create(caller, { name: 'mine', permissions: ['users:admin'] }),
    'register a cluster': (caller) => Cluster.register(caller, { name: newId('clus'), type: 'Hypervisor' }),
    'issue an enrollment token': (caller) => Enrollment.issue(caller, resources.clusterId),
    'create a webhook': (caller) => Webhook.create(caller, hook),
    'change a webhook': (caller) => Webhook.change(caller, resources.webhookId, { url: 'https://mine.example.com/' }),
  }
  // By default, one change per operation; creating an API token is tested with all changes.
  const cells = Object.keys(operations).flatMap((operation, index) =>
    Object.keys(changes)
      .filter((_, position, all) => isLong || operation === 'create an API token' || index % all.length === position)
      .map((change) => [change, operation] as const),
  )

  test.each(cells)('an administrator %s cannot %s', async (change, operation) => {
    const user = await createColleague(tenant.caller, 'OrgAdmin')
    await changes[change]!(user)
    const codeOfDemoted = operation === 'create an API token' ? 'validation_failed' : 'forbidden'
    await expectError(operations[operation]!(user.caller), change === 'demoted' ? codeOfDemoted : 'unauthenticated')
  })

  test('an administrator with unchanged rights can perform all operations', async () => {
    for (const [operation, perform] of Object.entries(operations)) {
      const { caller } = await createColleague(tenant.caller, 'OrgAdmin')
      expect([operation, await errorCodeOf(perform(caller))]).toEqual([operation, 'no error'])
      if (operation === 'remove a user') {
        resources.userId = (await UserAdmin.create(tenant.caller, userRequest(['Viewer']))).id
      }
    }
  })
})

describe('reauthorize', () => {
  test('returns the current user and rights, and the requested items, in one call', async () => {
    const caller = await newCaller()
    const other = await newCaller()
    const itemKeys = [keys.user(other.organisationId, other.userId), keys.user(other.organisationId, newId('user'))]
    const [{ user, rights }, item, missingItem] = await reauthorize(caller, ['users:admin', 'jobs:read'], itemKeys)
    expect([user.id, item?.['id'], missingItem]).toEqual([caller.userId, other.userId, undefined])
    expect(rights).toEqual(caller.permissions)
    expect(await countStoreCalls(() => reauthorize(caller, [], itemKeys))).toBe(1)
  })

  test('returns the rights of both the current roles and the token, and names the first missing permission', async () => {
    const caller = await newCaller()
    const restrictedCaller = { ...caller, permissions: new Set(['jobs:read', 'platform:admin'] as const) }
    const [{ rights }] = await reauthorize(restrictedCaller, [])
    expect([...rights]).toEqual(['jobs:read'])
    await update(keys.user(caller.organisationId, caller.userId), { set: { roles: ['Auditor'] } })
    await expect(reauthorize(caller, ['jobs:read', 'jobs:write', 'users:admin'])).rejects.toMatchObject({
      code: 'forbidden',
      extra: { requiredPermission: 'jobs:write' },
    })
  })

  test('rejects callers without a user, an open session or a valid provider; API tokens need no session', async () => {
    const [first, second, third] = [await newCaller(), await newCaller(), await newCaller()]
    await transact([remove(keys.session(first.sessionId))])
    await expectError(reauthorize(first, []), 'unauthenticated')
    await expectError(reauthorize({ ...first, sessionId: '', tokenId: newId('tok') }, []), 'no error')
    await update(keys.session(second.sessionId), { set: { revokedAtMs: 1 } })
    await expectError(reauthorize(second, []), 'unauthenticated')
    await transact([remove(keys.user(second.organisationId, second.userId))])
    await expectError(reauthorize({ ...second, tokenId: newId('tok') }, []), 'unauthenticated')
    await update(keys.user(third.organisationId, third.userId), { set: { authProvider: newId('idp') } })
    await expectError(reauthorize(third, []), 'unauthenticated')
  })
})
