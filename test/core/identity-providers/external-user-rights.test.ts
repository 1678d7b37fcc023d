import * as ApiToken from '@platform/core/accounts/api-token'
import { verifyApiToken } from '@platform/core/accounts/api-token-caller'
import { changePassword } from '@platform/core/accounts/change-password'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { refresh } from '@platform/core/accounts/session'
import { type Caller } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { signInExternal } from '@platform/core/identity-providers/external-user'
import { type ExternalIdentity, type ProviderRecord } from '@platform/core/identity-providers/record'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import * as fixtures from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { pendingRecords } from '../support/outbox.ts'
import * as providers from '../support/providers.ts'

const { createColleague, expectError, newOrigin, password, requestErrorCode } = fixtures

let platform: fixtures.SignedInUser
let caller: Caller
let idp: ProviderRecord
beforeAll(async () => {
  platform = await fixtures.setUpPlatform()
  caller = platform.caller
})
beforeEach(async () => {
  idp = await providers.storeProvider(caller.organisationId, {
    roleMappings: [
      { group: 'root', role: 'PlatformAdmin' },
      { group: 'admins', role: 'OrgAdmin' },
    ],
  })
})

const signInAs = (identity: ExternalIdentity) => signInExternal(idp, identity, newOrigin())
async function signInWithGroups(...groups: string[]) {
  const identity = providers.externalIdentity({ groups })
  const tokens = await signInAs(identity)
  return { identity, tokens, user: await providers.callerOfTokens(tokens) }
}

test('keeps the last local administrator even if external administrators exist', async () => {
  const countAdministrators = async () => Number((await get(keys.administrators()))?.['count'])
  const external = await signInWithGroups('root')
  expect(external.user.permissions.has('platform:admin')).toBe(true)
  expect(await countAdministrators()).toBe(1)
  for (const actor of [caller, external.user]) {
    await expectError(UserAdmin.remove(actor, platform.id), 'last_administrator')
    await expectError(UserAdmin.update(actor, platform.id, { roles: ['Viewer'] }), 'last_administrator')
  }
  await signInAs({ ...external.identity, groups: [] })
  expect(await countAdministrators()).toBe(1)
  const actor = await providers.callerOfTokens(await signInAs(external.identity))
  const other = await createColleague(actor, 'PlatformAdmin')
  expect(await countAdministrators()).toBe(2)
  await UserAdmin.remove(actor, other.id)
  await expectError(UserAdmin.remove(actor, platform.id), 'last_administrator')
  await UserAdmin.remove(caller, actor.userId)
  expect(await countAdministrators()).toBe(1)
})

test.each([{ roles: ['Viewer' as const] }, { email: 'other@example.com' }, { password }])(
  'rejects changing %o of an external user',
  async (change) => {
    const { user } = await signInWithGroups()
    const before = await get(keys.user(user.organisationId, user.userId))
    await expectError(UserAdmin.update(caller, user.userId, change), 'account_not_local')
    const request = `PATCH /api/v1/users/${user.userId}`
    expect(await requestErrorCode('users', request, [caller, 'PlatformAdmin'], change)).toBe('account_not_local')
    expect(await get(keys.user(user.organisationId, user.userId))).toEqual(before)
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
  ['disabled', () => providers.setProviderEnabled(idp, false)],
  ['removed', () => providers.removeProvider(idp)],
] as const

test.each(disablings)('revokes a session at its next refresh after the provider is %s', async (how, disable) => {
  const { identity, tokens } = await signInWithGroups()
  const others = await signInAs(identity)
  const local = await createColleague(caller, 'Viewer')
  let next = tokens
  expect(await countStoreCalls(async () => (next = await refresh(tokens)))).toBe(4)
  await disable()
  await expectError(refresh(next), 'invalid_refresh_token')
  const { sessionId } = await providers.callerOfTokens(next)
  const audits = (await pendingRecords(caller.organisationId)).map(({ audit }) => audit)
  const actions = audits.flatMap((audit) => (audit?.resource === sessionId ? audit.action : []))
  expect(actions).toContain('session.revoke')
  expect(await countStoreCalls(() => refresh(local))).toBe(3)
  await providers.setProviderEnabled(idp, true).catch(() => undefined)
  await expectError(refresh(next), 'invalid_refresh_token')
  if (how === 'disabled') await expectError(refresh(others), 'no error')
})

test.each(disablings)('rejects API tokens while the provider is %s, cached or not', async (how, disable) => {
  const { user } = await signInWithGroups('admins')
  const [cached, uncached] = [
    await ApiToken.create(user, { name: 'cached' }),
    await ApiToken.create(user, { name: 'uncached' }),
  ]
  const local = await ApiToken.create(caller, { name: 'local' })
  const verifyCost = ({ token }: { token: string }) => countStoreCalls(() => verifyApiToken(token))
  expect([await verifyCost(cached), await verifyCost(cached)]).toEqual([4, 1])
  expect([await verifyCost(local), await verifyCost(local)]).toEqual([3, 1])
  await disable()
  for (const { token } of [cached, uncached]) await expectError(verifyApiToken(token), 'unauthenticated')
  await expectError(verifyApiToken(local.token), 'no error')
  if (how === 'removed') return
  await providers.setProviderEnabled(idp, true)
  for (const { token } of [cached, uncached]) await expectError(verifyApiToken(token), 'no error')
})

test('rejects lasting changes with an access token of a disabled provider', async () => {
  const { user } = await signInWithGroups('root')
  await providers.setProviderEnabled(idp, false)
  await expectError(ApiToken.create(user, { name: 'late' }), 'unauthenticated')
  await expectError(UserAdmin.create(user, fixtures.userRequest(['PlatformAdmin'])), 'unauthenticated')
  await expectError(UserAdmin.remove(user, platform.id), 'unauthenticated')
})
