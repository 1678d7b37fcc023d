import { beforeAll, expect, test } from 'vitest'
import { apiTokenLimit } from '@platform/contract/api-token'
import { permissionsOf } from '@platform/contract/permission'
import * as ApiToken from '@platform/core/accounts/api-token'
import { verifyApiToken } from '@platform/core/accounts/api-token-caller'
import { iso, now, shiftClock } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, remove, update } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { sha256 } from '@platform/core/id'
import { signOut } from '@platform/core/accounts/session'
import { changePassword } from '@platform/core/accounts/change-password'
import { profile } from '@platform/core/accounts/user'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import {
  createColleague,
  userRequest,
  password,
  type SignedInUser,
  setUpPlatform,
  requestErrorCode,
  errorCodeOf,
  newOrigin,
  createTenantAdministrator,
} from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { pendingRecords } from '../support/outbox.ts'

let platform: SignedInUser
let tenant: SignedInUser
beforeAll(async () => {
  platform = await setUpPlatform()
  tenant = await createTenantAdministrator(platform.caller)
})

const rightsOf = async (token: string) => [...(await verifyApiToken(token)).permissions]
const name = 'nightly'

test('a token speaks for its user, and is shown once', async () => {
  const { caller } = await createColleague(tenant.caller, 'Operator')
  const { token, ...shown } = await ApiToken.create(caller, { name, permissions: ['jobs:write', 'jobs:read'] })
  expect(shown).toEqual({
    id: expect.stringMatching(/^tok_/),
    name,
    permissions: ['jobs:read', 'jobs:write'],
    expiresAt: null,
    createdAt: expect.any(String),
    lastUsedAt: null,
  })
  expect(token).toMatch(new RegExp(`^plat_${shown.id.slice(4)}_[\\w-]{43}$`))
  expect(await ApiToken.list(caller)).toEqual({ items: [shown] })
  const { userId, organisationId } = caller
  const speaker = await verifyApiToken(token)
  expect(speaker).toMatchObject({ kind: 'user', userId, organisationId, sessionId: '', tokenId: shown.id })
  expect([...speaker.permissions]).toEqual(['jobs:read', 'jobs:write'])
  expect((await profile(speaker)).permissions).toEqual(['jobs:read', 'jobs:write'])
  expect((await profile(caller)).permissions).toEqual(permissionsOf(['Operator']))
})

test('the table holds a hash of the token and nothing of its secret', async () => {
  const { id, token } = await ApiToken.create(tenant.caller, { name })
  const secret = token.slice(-43)
  const stored = JSON.stringify(await get(keys.apiToken(id)))
  expect(stored).toContain(sha256(secret))
  expect(stored).not.toContain(secret)
})

test('what a token may do shrinks at once when its user’s role shrinks, and never grows beyond what it names', async () => {
  const person = await createColleague(tenant.caller, 'Operator')
  const all = await ApiToken.create(person.caller, { name })
  const some = await ApiToken.create(person.caller, { name, permissions: ['clusters:read', 'jobs:write'] })
  expect(await rightsOf(all.token)).toEqual(permissionsOf(['Operator']))
  await UserAdmin.update(tenant.caller, person.id, { roles: ['Viewer'] })
  expect(await rightsOf(all.token)).toEqual(permissionsOf(['Viewer']))
  expect(await rightsOf(some.token)).toEqual(['clusters:read'])
  await UserAdmin.update(tenant.caller, person.id, { roles: ['OrgAdmin'] })
  expect(await rightsOf(all.token)).toEqual(permissionsOf(['Operator']))
  expect(await rightsOf(some.token)).toEqual(['clusters:read', 'jobs:write'])
})

test('a permission that the user does not hold is refused by name, and nothing is made', async () => {
  const { caller } = await createColleague(tenant.caller, 'Viewer')
  const creation = ApiToken.create(caller, { name, permissions: ['jobs:read', 'jobs:write', 'platform:admin'] })
  await expect(creation).rejects.toMatchObject({
    code: 'validation_failed',
    extra: { details: ['/permissions/1', '/permissions/2'].map((path) => ({ in: 'body', path, code: 'not_held' })) },
  })
  expect(await ApiToken.list(caller)).toEqual({ items: [] })
})

test('a revoked token is refused at once, and only its user can revoke it', async () => {
  const { caller } = await createColleague(tenant.caller, 'Viewer')
  const { id, token } = await ApiToken.create(caller, { name })
  await verifyApiToken(token)
  for (const stranger of [tenant, platform]) {
    expect(await errorCodeOf(ApiToken.remove(stranger.caller, id))).toBe('token_not_found')
  }
  await verifyApiToken(token)
  await ApiToken.remove(caller, id)
  expect(await errorCodeOf(verifyApiToken(token))).toBe('unauthenticated')
  expect(await errorCodeOf(ApiToken.remove(caller, id))).toBe('token_not_found')
  expect(await ApiToken.list(caller)).toEqual({ items: [] })
})

test('the tokens of a removed user are refused at once and leave the table, whether the process knew them or not', async () => {
  const person = await createColleague(tenant.caller, 'Viewer')
  const [known, unknown] = [
    await ApiToken.create(person.caller, { name }),
    await ApiToken.create(person.caller, { name }),
  ]
  await verifyApiToken(known.token)
  await UserAdmin.remove(tenant.caller, person.id)
  for (const { id, token } of [known, unknown]) {
    expect(await errorCodeOf(verifyApiToken(token))).toBe('unauthenticated')
    expect(await get(keys.apiToken(id))).toBeUndefined()
  }
})

test('a token works until it expires, and says so afterwards', async () => {
  const { token, expiresAt } = await ApiToken.create(tenant.caller, { name, expiresAt: iso(now() + 3_600_000) })
  expect(Date.parse(expiresAt ?? '')).toBeGreaterThan(now())
  await verifyApiToken(token)
  shiftClock(3_600_000)
  await expect(verifyApiToken(token)).rejects.toMatchObject({
    code: 'token_expired',
    message: 'The API token has expired. Create another one.',
  })
  shiftClock(-3_600_000)
})

test.each(['2020-01-01T00:00:00Z', '0000-01-01T00:00:00+01:00'])('a token cannot expire at %s', async (expiresAt) => {
  await expect(ApiToken.create(tenant.caller, { name, expiresAt })).rejects.toMatchObject({
    extra: { details: [{ in: 'body', path: '/expiresAt', code: 'not_in_future' }] },
  })
})

test('a user has at most fifty tokens, several creations at once included, and room again after a revocation', async () => {
  const { caller } = await createColleague(tenant.caller, 'Viewer')
  for (let index = 0; index < apiTokenLimit - 2; index++) await ApiToken.create(caller, { name })
  const outcomes = await Promise.all([1, 2, 3, 4].map(() => errorCodeOf(ApiToken.create(caller, { name }))))
  expect(outcomes.toSorted()).toEqual(['limit_reached', 'limit_reached', 'no error', 'no error'])
  const { items } = await ApiToken.list(caller)
  expect(items).toHaveLength(apiTokenLimit)
  expect(items.map(({ id }) => id)).toEqual(
    items
      .map(({ id }) => id)
      .toSorted()
      .toReversed(),
  )
  await ApiToken.remove(caller, items[7]!.id)
  await ApiToken.create(caller, { name })
  expect(await errorCodeOf(ApiToken.create(caller, { name }))).toBe('limit_reached')
  expect(await requestErrorCode('users', 'POST /api/v1/users/me/tokens', [caller, 'Viewer'], { name })).toBe(
    'limit_reached',
  )
})

test('a user whose row has never counted a change gets a token and revokes it in two calls each, like anybody', async () => {
  const { caller } = await createColleague(tenant.caller, 'Viewer')
  await update(keys.user(caller.organisationId, caller.userId), { remove: ['version'] })
  expect(await countStoreCalls(() => ApiToken.create(caller, { name }))).toBe(2)
  const [made] = (await ApiToken.list(caller)).items
  await update(keys.user(caller.organisationId, caller.userId), { remove: ['version'] })
  expect(await countStoreCalls(() => ApiToken.remove(caller, made!.id))).toBe(2)
  expect(await ApiToken.list(caller)).toEqual({ items: [] })
})

test('the audit trail names each token that was made, and each that was revoked; the list shows what is left, newest first', async () => {
  const { caller } = await createColleague(tenant.caller, 'Viewer')
  const [first, second] = [await ApiToken.create(caller, { name }), await ApiToken.create(caller, { name: 'weekly' })]
  expect((await ApiToken.list(caller)).items.map(({ id }) => id)).toEqual([second.id, first.id])
  for (const other of ['', 'tok', first.id.replace('tok_', 'user_')]) {
    expect([other, await errorCodeOf(ApiToken.remove(caller, other))]).toEqual([other, 'token_not_found'])
  }
  await ApiToken.remove(caller, first.id)
  const records = (await pendingRecords(caller.organisationId)).filter(({ actor }) => actor.id === caller.userId)
  expect(new Set(records.map(({ audit }) => audit).filter((audit) => audit?.action.startsWith('token.')))).toEqual(
    new Set([
      { action: 'token.create', resource: first.id, detail: name },
      { action: 'token.create', resource: second.id, detail: 'weekly' },
      { action: 'token.delete', resource: first.id, detail: '' },
    ]),
  )
  // One that is gone although its user still names it is no token.
  await transact([remove(keys.apiToken(second.id))])
  expect(await ApiToken.list(caller)).toEqual({ items: [] })
})

test('a password change leaves tokens alone', async () => {
  const { caller } = await createColleague(tenant.caller, 'Viewer')
  const { token } = await ApiToken.create(caller, { name })
  await changePassword(caller, { currentPassword: password, newPassword: 'another long sentence' }, newOrigin())
  expect(await rightsOf(token)).toEqual(permissionsOf(['Viewer']))
})

test('an access token whose session or user has gone makes no API token that would outlive it', async () => {
  const [signedOut, ended, removed] = await Promise.all([1, 2, 3].map(() => createColleague(tenant.caller, 'Viewer')))
  await signOut(signedOut!.caller)
  await UserAdmin.endUserSessions(tenant.caller, ended!.id)
  await UserAdmin.remove(tenant.caller, removed!.id)
  for (const { caller } of [signedOut!, ended!, removed!]) {
    expect(await errorCodeOf(ApiToken.create(caller, { name }))).toBe('unauthenticated')
  }
})

test('a token that may administer users hands out and touches no more than it may itself', async () => {
  const weak = await ApiToken.create(platform.caller, { name, permissions: ['users:admin', 'clusters:read'] })
  const viewer = permissionsOf(['Viewer', 'OrgAdmin']).filter((each) => each !== 'users:admin')
  const strong = await ApiToken.create(platform.caller, { name, permissions: ['users:admin', ...viewer] })
  const [weakCaller, caller] = [await verifyApiToken(weak.token), await verifyApiToken(strong.token)]
  expect(await errorCodeOf(UserAdmin.create(weakCaller, userRequest(['Viewer'])))).toBe('role_not_grantable')
  expect(await errorCodeOf(UserAdmin.create(caller, userRequest(['PlatformAdmin'])))).toBe('role_not_grantable')
  const { id } = await UserAdmin.create(caller, userRequest(['OrgAdmin']))
  expect(await errorCodeOf(UserAdmin.update(weakCaller, id, { password: 'mine from now' }))).toBe('forbidden')
  expect(await errorCodeOf(UserAdmin.update(caller, platform.id, { password: 'mine from now' }))).toBe('forbidden')
  expect(await errorCodeOf(UserAdmin.update(caller, id, { roles: ['PlatformAdmin'] }))).toBe('role_not_grantable')
  const elsewhere = { ...userRequest(['OrgAdmin']), organisationId: tenant.caller.organisationId }
  expect(await errorCodeOf(UserAdmin.create(caller, elsewhere))).toBe('organisation_not_found')
})
