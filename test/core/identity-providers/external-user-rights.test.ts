import { type Caller } from '@platform/core/caller'
import * as ApiToken from '@platform/core/accounts/api-token'
import { verifyApiToken } from '@platform/core/accounts/api-token-caller'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { signInExternal } from '@platform/core/identity-providers/external-user'
import { type ExternalIdentity, type ProviderRecord } from '@platform/core/identity-providers/record'
import { changePassword } from '@platform/core/accounts/change-password'
import { refresh } from '@platform/core/accounts/session'
import * as SessionList from '@platform/core/accounts/session-list'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { beforeEach, beforeAll, expect, test } from 'vitest'
import {
  createColleague,
  userRequest,
  password,
  type SignedInUser,
  setUpPlatform,
  requestErrorCode,
  errorCodeOf,
  newOrigin,
  expectError,
} from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { pendingRecords } from '../support/outbox.ts'
import {
  callerOfTokens,
  setProviderEnabled,
  storeProvider,
  externalIdentity,
  removeProvider,
} from '../support/providers.ts'

let platform: SignedInUser
let caller: Caller
let idp: ProviderRecord
beforeAll(async () => {
  platform = await setUpPlatform()
  caller = platform.caller
})
beforeEach(async () => {
  idp = await storeProvider(caller.organisationId, {
    roleMappings: [
      { group: 'root', role: 'PlatformAdmin' },
      { group: 'admins', role: 'OrgAdmin' },
    ],
  })
})

const arrive = async (fields: Partial<ExternalIdentity> = {}) => {
  const identity = externalIdentity(fields)
  const tokens = await signInExternal(idp, identity, newOrigin())
  return { identity, tokens, caller: await callerOfTokens(tokens) }
}
const administrators = async () => Number((await get(keys.administrators()))?.['count'])
const nothing = 'no error'
const isLast = async (call: Promise<unknown>) => expect(await errorCodeOf(call)).toBe('last_administrator')

test('an administrator by a provider counts for nobody: the last local one cannot go, whoever asks', async () => {
  const external = await arrive({ groups: ['root'] })
  expect(external.caller.permissions.has('platform:admin')).toBe(true)
  expect(await administrators()).toBe(1)
  for (const who of [caller, external.caller]) {
    await isLast(UserAdmin.remove(who, platform.id))
    await isLast(UserAdmin.update(who, platform.id, { roles: ['Viewer'] }))
  }
  await signInExternal(idp, { ...external.identity, groups: [] }, newOrigin())
  expect(await administrators()).toBe(1)
  const again = await callerOfTokens(await signInExternal(idp, external.identity, newOrigin()))
  const other = await createColleague(again, 'PlatformAdmin')
  expect(await administrators()).toBe(2)
  await UserAdmin.remove(again, other.id)
  await isLast(UserAdmin.remove(again, platform.id))
  await UserAdmin.remove(caller, again.userId)
  expect(await administrators()).toBe(1)
})

test.each([
  ['roles', { roles: ['Viewer' as const] }],
  ['e-mail', { email: 'other@example.com' }],
  ['password', { password }],
])('an administrator cannot change the %s of a user whom a provider vouches for', async (_what, change) => {
  const { caller: external } = await arrive()
  const before = await get(keys.user(external.organisationId, external.userId))
  await expectError(UserAdmin.update(caller, external.userId, change), 'account_not_local')
  const request = `PATCH /api/v1/users/${external.userId}`
  expect(await requestErrorCode('users', request, [caller, 'PlatformAdmin'], change)).toBe('account_not_local')
  expect(await get(keys.user(external.organisationId, external.userId))).toEqual(before)
})

test('such a user has no password to change', async () => {
  const { caller: external } = await arrive()
  const change = { currentPassword: password, newPassword: password }
  await expectError(changePassword(external, change, newOrigin()), 'account_not_local')
  const request = 'PUT /api/v1/users/me/password'
  expect(await requestErrorCode('users', request, [external, 'Viewer'], change)).toBe('account_not_local')
})

test('its sessions can be ended, by an administrator all of them and by itself each', async () => {
  const { identity, tokens } = await arrive()
  const other = await signInExternal(idp, identity, newOrigin())
  const self = await callerOfTokens(other)
  expect((await SessionList.list(self)).items).toHaveLength(2)
  await SessionList.end(self, self.sessionId)
  await expectError(refresh(other), 'invalid_refresh_token')
  await UserAdmin.endUserSessions(caller, self.userId)
  await expectError(refresh(tokens), 'invalid_refresh_token')
  const fresh = await signInExternal(idp, identity, newOrigin())
  await expectError(refresh(fresh), nothing)
})

const goings = [
  ['disabled', () => setProviderEnabled(idp, false)],
  ['gone', () => removeProvider(idp)],
] as const

test.each(goings)(
  'a provider that is %s ends the sessions of its users at their next refresh, for good',
  async (_how, go) => {
    const { identity, tokens } = await arrive()
    const others = await signInExternal(idp, identity, newOrigin())
    const local = await createColleague(caller, 'Viewer')
    const next = await refresh(tokens)
    await go()
    await expectError(refresh(next), 'invalid_refresh_token')
    const { sessionId } = await callerOfTokens(next)
    const records = await pendingRecords(caller.organisationId)
    expect(records.filter(({ audit }) => audit?.resource === sessionId).map(({ audit }) => audit?.action)).toContain(
      'session.revoke',
    )
    await expectError(refresh(local), nothing)
    await setProviderEnabled(idp, true).catch(() => undefined)
    await expectError(refresh(next), 'invalid_refresh_token')
    if (_how === 'disabled') await expectError(refresh(others), nothing)
  },
)

test('a refresh asks for the provider of such a user, and for nothing more of a local one', async () => {
  const { tokens } = await arrive()
  const local = await createColleague(caller, 'Viewer')
  expect(await countStoreCalls(() => refresh(tokens))).toBe(4)
  expect(await countStoreCalls(() => refresh(local))).toBe(3)
})

test.each(goings)(
  'API tokens of its users are refused from the moment a provider is %s, known to the process or not',
  async (how, go) => {
    const { caller: external } = await arrive({ groups: ['admins'] })
    const [known, unknown] = [
      await ApiToken.create(external, { name: 'known' }),
      await ApiToken.create(external, { name: 'unknown' }),
    ]
    const local = await ApiToken.create(caller, { name: 'local' })
    expect(await countStoreCalls(() => verifyApiToken(known.token))).toBe(4)
    expect(await countStoreCalls(() => verifyApiToken(known.token))).toBe(1)
    expect(await countStoreCalls(() => verifyApiToken(local.token))).toBe(3)
    expect(await countStoreCalls(() => verifyApiToken(local.token))).toBe(1)
    await go()
    for (const { token } of [known, unknown]) await expectError(verifyApiToken(token), 'unauthenticated')
    await expectError(verifyApiToken(local.token), nothing)
    if (how === 'gone') return
    await setProviderEnabled(idp, true)
    for (const { token } of [known, unknown]) await expectError(verifyApiToken(token), nothing)
  },
)

test('an access token that outlives its provider hands out nothing that lasts', async () => {
  const { caller: external } = await arrive({ groups: ['root'] })
  await setProviderEnabled(idp, false)
  await expectError(ApiToken.create(external, { name: 'late' }), 'unauthenticated')
  await expectError(UserAdmin.create(external, userRequest(['PlatformAdmin'])), 'unauthenticated')
  await expectError(UserAdmin.remove(external, platform.id), 'unauthenticated')
})
