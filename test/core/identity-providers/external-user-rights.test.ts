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
import { refusalBy } from '../../support/asked.ts'
import { colleague, newUser, password, type Person, platformAdministrator, somewhere } from '../../support/people.ts'
import { callsOf } from '../../support/store-calls.ts'
import { refusalOf } from '../../support/world.ts'
import { waitingRecords } from '../support/books.ts'
import { callerOfTokens, enable, provider, somebody, withdraw } from '../support/providers.ts'

let platform: Person
let caller: Caller
let idp: ProviderRecord
beforeAll(async () => {
  platform = await platformAdministrator()
  caller = platform.caller
})
beforeEach(async () => {
  idp = await provider(caller.organisationId, {
    roleMappings: [
      { group: 'root', role: 'PlatformAdmin' },
      { group: 'admins', role: 'OrgAdmin' },
    ],
  })
})

const arrive = async (fields: Partial<ExternalIdentity> = {}) => {
  const identity = somebody(fields)
  const tokens = await signInExternal(idp, identity, somewhere())
  return { identity, tokens, caller: await callerOfTokens(tokens) }
}
const administrators = async () => Number((await get(keys.administrators()))?.['count'])
const nothing = 'nothing was refused'
const isLast = async (call: Promise<unknown>) => expect(await refusalOf(call)).toBe('last_administrator')

test('an administrator by a provider counts for nobody: the last local one cannot go, whoever asks', async () => {
  const external = await arrive({ groups: ['root'] })
  expect(external.caller.permissions.has('platform:admin')).toBe(true)
  expect(await administrators()).toBe(1)
  for (const who of [caller, external.caller]) {
    await isLast(UserAdmin.remove(who, platform.id))
    await isLast(UserAdmin.update(who, platform.id, { roles: ['Viewer'] }))
  }
  await signInExternal(idp, { ...external.identity, groups: [] }, somewhere())
  expect(await administrators()).toBe(1)
  const again = await callerOfTokens(await signInExternal(idp, external.identity, somewhere()))
  const other = await colleague(again, 'PlatformAdmin')
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
  expect(await refusalOf(UserAdmin.update(caller, external.userId, change))).toBe('account_not_local')
  const request = `PATCH /api/v1/users/${external.userId}`
  expect(await refusalBy('users', request, [caller, 'PlatformAdmin'], change)).toBe('account_not_local')
  expect(await get(keys.user(external.organisationId, external.userId))).toEqual(before)
})

test('such a user has no password to change', async () => {
  const { caller: external } = await arrive()
  const change = { currentPassword: password, newPassword: password }
  expect(await refusalOf(changePassword(external, change, somewhere()))).toBe('account_not_local')
  const request = 'PUT /api/v1/users/me/password'
  expect(await refusalBy('users', request, [external, 'Viewer'], change)).toBe('account_not_local')
})

test('its sessions can be ended, by an administrator all of them and by itself each', async () => {
  const { identity, tokens } = await arrive()
  const other = await signInExternal(idp, identity, somewhere())
  const self = await callerOfTokens(other)
  expect((await SessionList.list(self)).items).toHaveLength(2)
  await SessionList.end(self, self.sessionId)
  expect(await refusalOf(refresh(other))).toBe('invalid_refresh_token')
  await UserAdmin.endUserSessions(caller, self.userId)
  expect(await refusalOf(refresh(tokens))).toBe('invalid_refresh_token')
  const fresh = await signInExternal(idp, identity, somewhere())
  expect(await refusalOf(refresh(fresh))).toBe(nothing)
})

const goings = [
  ['disabled', () => enable(idp, false)],
  ['gone', () => withdraw(idp)],
] as const

test.each(goings)(
  'a provider that is %s ends the sessions of its users at their next refresh, for good',
  async (_how, go) => {
    const { identity, tokens } = await arrive()
    const others = await signInExternal(idp, identity, somewhere())
    const local = await colleague(caller, 'Viewer')
    const next = await refresh(tokens)
    await go()
    expect(await refusalOf(refresh(next))).toBe('invalid_refresh_token')
    const { sessionId } = await callerOfTokens(next)
    const records = await waitingRecords(caller.organisationId)
    expect(records.filter(({ audit }) => audit?.resource === sessionId).map(({ audit }) => audit?.action)).toContain(
      'session.revoke',
    )
    expect(await refusalOf(refresh(local))).toBe(nothing)
    await enable(idp, true).catch(() => undefined)
    expect(await refusalOf(refresh(next))).toBe('invalid_refresh_token')
    if (_how === 'disabled') expect(await refusalOf(refresh(others))).toBe(nothing)
  },
)

test('a refresh asks for the provider of such a user, and for nothing more of a local one', async () => {
  const { tokens } = await arrive()
  const local = await colleague(caller, 'Viewer')
  expect(await callsOf(() => refresh(tokens))).toBe(4)
  expect(await callsOf(() => refresh(local))).toBe(3)
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
    expect(await callsOf(() => verifyApiToken(known.token))).toBe(4)
    expect(await callsOf(() => verifyApiToken(known.token))).toBe(1)
    expect(await callsOf(() => verifyApiToken(local.token))).toBe(3)
    expect(await callsOf(() => verifyApiToken(local.token))).toBe(1)
    await go()
    for (const { token } of [known, unknown]) expect(await refusalOf(verifyApiToken(token))).toBe('unauthenticated')
    expect(await refusalOf(verifyApiToken(local.token))).toBe(nothing)
    if (how === 'gone') return
    await enable(idp, true)
    for (const { token } of [known, unknown]) expect(await refusalOf(verifyApiToken(token))).toBe(nothing)
  },
)

test('an access token that outlives its provider hands out nothing that lasts', async () => {
  const { caller: external } = await arrive({ groups: ['root'] })
  await enable(idp, false)
  expect(await refusalOf(ApiToken.create(external, { name: 'late' }))).toBe('unauthenticated')
  expect(await refusalOf(UserAdmin.create(external, newUser(['PlatformAdmin'])))).toBe('unauthenticated')
  expect(await refusalOf(UserAdmin.remove(external, platform.id))).toBe('unauthenticated')
})
