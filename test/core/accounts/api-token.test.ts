import { apiTokenLimit } from '@platform/contract/api-token'
import { permissionsOf } from '@platform/contract/permission'
import * as ApiToken from '@platform/core/accounts/api-token'
import { verifyApiToken } from '@platform/core/accounts/api-token-caller'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { find } from '@platform/core/accounts/user'
import { iso, now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newSecret, sha256 } from '@platform/core/id'
import { changePassword } from '@platform/core/accounts/change-password'
import * as Settings from '@platform/core/accounts/organisation-settings'
import * as Notification from '@platform/core/notifications/notification'
import { beforeAll, describe, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import {
  createColleague,
  createTenantAdministrator,
  expectError,
  errorCodeOf,
  errorOf,
  newOrigin,
  password,
  requestErrorCode,
  setUpPlatform,
  type SignedInUser,
  userRequest,
} from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { failCommands, runBefore } from '../support/interleaving.ts'
import { drainOutbox, readPendingRecords } from '../support/outbox.ts'

let platform: SignedInUser
let tenant: SignedInUser
beforeAll(async () => {
  platform = await setUpPlatform()
  tenant = await createTenantAdministrator(platform.caller)
})

const name = 'nightly'
const hourMs = 3_600_000
const newUser = () => createColleague(tenant.caller, 'Viewer')
const newToken = ({ caller }: SignedInUser) => ApiToken.create(caller, { name })
const rightsOf = async (token: string) => [...(await verifyApiToken(token)).permissions]
const expectRejected = (token: string) => expectError(verifyApiToken(token), 'unauthenticated')

describe('creating an API token', () => {
  test('stores only a hash of its secret', async () => {
    const { id, token } = await newToken(tenant)
    const secret = token.slice(-43)
    const storedText = JSON.stringify(await get(keys.apiToken(id)))
    expect(storedText).toContain(sha256(secret))
    expect(storedText).not.toContain(secret)
  })

  test.each([
    [['modules:install'], 'validation_failed'],
    [['modules:read', 'modules:install', 'users:admin'], 'validation_failed'],
    [['modules:install', 'platform:admin'], 'no error'],
  ] as const)('for %j: %s, because modules:install requires platform:admin', async (permissions, code) => {
    await expectError(ApiToken.create(platform.caller, { name, permissions: [...permissions] }), code)
  })

  test.each([
    [null, 365, undefined, 365],
    [null, null, undefined, undefined],
    [null, 365, null, undefined],
    [30, 365, undefined, 30],
    [90, 7, undefined, 7],
    [90, 365, 90, 90],
    [90, null, null, 'too_late'],
    [90, 365, 91, 'too_late'],
  ])(
    'with a maximum of %s and a default of %s days, for %s days, lives %s days',
    async (max, byDefault, days, result) => {
      const { caller } = await createTenantAdministrator(platform.caller)
      expect(await Settings.read(caller)).toMatchObject({ maxTokenLifetimeDays: null, defaultTokenLifetimeDays: 365 })
      await Settings.update(caller, { maxTokenLifetimeDays: max, defaultTokenLifetimeDays: byDefault })
      const lifetime = days === undefined ? {} : { expiresAt: days === null ? null : iso(now() + days * 24 * hourMs) }
      const creation = ApiToken.create(caller, { name, ...lifetime })
      if (result === 'too_late')
        return expect(creation).rejects.toMatchObject({ extra: { details: [{ path: '/expiresAt', code: result }] } })
      const { expiresAt } = await creation
      const expected = result === undefined ? null : iso(now() + Number(result) * 24 * hourMs)
      expect(expiresAt?.slice(0, 16)).toBe(expected?.slice(0, 16))
    },
  )

  test('notifies the owner', async () => {
    const { caller } = await newUser()
    await ApiToken.create(caller, { name })
    await drainOutbox(caller.organisationId)
    const { items } = await Notification.list(caller, { unreadOnly: true, page: 1, pageSize: 20 })
    expect(items).toMatchObject([{ type: 'SecurityAlert', title: 'API token nightly was created' }])
  })

  test('cannot end the sessions of its owner', async () => {
    const { caller } = await createColleague(tenant.caller, 'OrgAdmin')
    const { token } = await ApiToken.create(caller, { name })
    await expectError(UserAdmin.endUserSessions(await verifyApiToken(token), caller.userId), 'forbidden')
  })

  test('rejects permissions that the user lacks', async () => {
    const { caller } = await newUser()
    const creation = ApiToken.create(caller, { name, permissions: ['jobs:read', 'jobs:write', 'platform:admin'] })
    await expect(creation).rejects.toMatchObject({
      code: 'validation_failed',
      extra: { details: ['/permissions/1', '/permissions/2'].map((path) => ({ in: 'body', path, code: 'not_held' })) },
    })
    expect(await ApiToken.list(caller)).toEqual({ items: [] })
  })

  test.each(['2020-01-01T00:00:00Z', '0000-01-01T00:00:00+01:00'])('rejects the expiry %s', async (expiresAt) => {
    await expect(ApiToken.create(tenant.caller, { name, expiresAt })).rejects.toMatchObject({
      extra: { details: [{ in: 'body', path: '/expiresAt', code: 'not_in_future' }] },
    })
  })

  test('is limited to fifty per user, also concurrently; revocation of all makes room', async () => {
    const user = await newUser()
    const { caller, id } = user
    for (let index = 0; index < apiTokenLimit - 2; index++) await newToken(user)
    const outcomes = await Promise.all([1, 2, 3, 4].map(() => errorCodeOf(newToken(user))))
    expect(outcomes.toSorted()).toEqual(['limit_reached', 'limit_reached', 'no error', 'no error'])
    const ids = (await ApiToken.list(caller)).items.map((item) => item.id)
    expect(ids).toHaveLength(apiTokenLimit)
    expect(ids).toEqual(ids.toSorted().toReversed())
    await ApiToken.remove(caller, ids[7]!)
    await newToken(user)
    expect((await errorOf(newToken(user))).extra).toEqual({ limit: apiTokenLimit, used: apiTokenLimit })
    const request = requestErrorCode('users', 'POST /api/v1/users/me/tokens', [caller, 'Viewer'], { name })
    expect(await request).toBe('limit_reached')
    await UserAdmin.revokeTokens(tenant.caller, id)
    expect(await rightsOf((await newToken(user)).token)).toEqual(permissionsOf(['Viewer']))
  })

  test('fails or is undone when all tokens or sessions end concurrently', async () => {
    const user = await newUser()
    runBefore(/^TransactWrite/, () => UserAdmin.revokeTokens(tenant.caller, user.id))
    await newToken(user)
    runBefore(/^TransactWrite/, () => UserAdmin.endUserSessions(tenant.caller, user.id))
    await expectError(newToken(user), 'unauthenticated')
  })
})

describe('a password change', () => {
  const change = ({ caller }: SignedInUser, revokeTokensSince?: string) => {
    const passwords = { currentPassword: password, newPassword: 'another long password' }
    return changePassword(caller, { ...passwords, ...(revokeTokensSince && { revokeTokensSince }) }, newOrigin())
  }

  test('revokes the API tokens created since the given time, also those created during the change', async () => {
    const user = await newUser()
    const tokenBefore = await newToken(user)
    advanceClock(hourMs)
    const since = iso(now())
    const tokenAfter = await newToken(user)
    let tokenDuring = tokenAfter
    runBefore(/^TransactWrite/, async () => void (tokenDuring = await newToken(user)))
    await change(user, since)
    for (const { token } of [tokenAfter, tokenDuring]) await expectRejected(token)
    expect(await rightsOf(tokenBefore.token)).toEqual(permissionsOf(['Viewer']))
    expect((await find(user.caller.organisationId, user.id))?.tokenIds).toEqual(new Set([tokenBefore.id]))
  })

  test('keeps API tokens by default', async () => {
    const user = await newUser()
    const { token } = await newToken(user)
    await change(user)
    expect(await rightsOf(token)).toEqual(permissionsOf(['Viewer']))
  })
})

describe('the permissions of an API token', () => {
  test('follow the roles of its user, up to those at creation', async () => {
    const user = await createColleague(tenant.caller, 'Operator')
    const fullToken = await newToken(user)
    const partialToken = await ApiToken.create(user.caller, { name, permissions: ['clusters:read', 'jobs:write'] })
    expect(await rightsOf(fullToken.token)).toEqual(permissionsOf(['Operator']))
    await UserAdmin.update(tenant.caller, user.id, { roles: ['Viewer'] })
    expect(await rightsOf(fullToken.token)).toEqual(permissionsOf(['Viewer']))
    expect(await rightsOf(partialToken.token)).toEqual(['clusters:read'])
    await UserAdmin.update(tenant.caller, user.id, { roles: ['OrgAdmin'] })
    expect(await rightsOf(fullToken.token)).toEqual(permissionsOf(['Operator']))
    expect(await rightsOf(partialToken.token)).toEqual(['clusters:read', 'jobs:write'])
  })

  test('limit the administration of users', async () => {
    const weakToken = await ApiToken.create(platform.caller, { name, permissions: ['users:admin', 'clusters:read'] })
    const others = permissionsOf(['Viewer', 'OrgAdmin']).filter((each) => each !== 'users:admin')
    const adminToken = await ApiToken.create(platform.caller, { name, permissions: ['users:admin', ...others] })
    const [weakCaller, caller] = [await verifyApiToken(weakToken.token), await verifyApiToken(adminToken.token)]
    await expectError(UserAdmin.create(weakCaller, userRequest(['Viewer'])), 'role_not_grantable')
    await expectError(UserAdmin.create(caller, userRequest(['PlatformAdmin'])), 'role_not_grantable')
    const { id } = await UserAdmin.create(caller, userRequest(['OrgAdmin']))
    await expectError(UserAdmin.update(weakCaller, id, { password: 'mine from now' }), 'forbidden')
    await expectError(UserAdmin.update(caller, platform.id, { password: 'mine from now' }), 'forbidden')
    await expectError(UserAdmin.update(caller, id, { roles: ['PlatformAdmin'] }), 'role_not_grantable')
    const otherTenantUser = { ...userRequest(['OrgAdmin']), organisationId: tenant.caller.organisationId }
    await expectError(UserAdmin.create(caller, otherTenantUser), 'organisation_not_found')
  })
})

describe('revocation', () => {
  test('by the user takes effect at once and is audited', async () => {
    const user = await newUser()
    const { caller } = user
    const [first, second] = [await newToken(user), await ApiToken.create(caller, { name: 'weekly' })]
    expect((await ApiToken.list(caller)).items.map(({ id }) => id)).toEqual([second.id, first.id])
    await verifyApiToken(first.token)
    await ApiToken.remove(caller, first.id)
    await expectRejected(first.token)
    await expectError(ApiToken.remove(caller, first.id), 'token_not_found')
    const records = (await readPendingRecords(caller.organisationId)).filter(({ actor }) => actor.id === caller.userId)
    expect(new Set(records.map(({ audit }) => audit).filter((audit) => audit?.action.startsWith('token.')))).toEqual(
      new Set([
        { action: 'token.create', resource: first.id, detail: name },
        { action: 'token.create', resource: second.id, detail: 'weekly' },
        { action: 'token.delete', resource: first.id, detail: '' },
      ]),
    )
    await transact([remove(keys.apiToken(second.id))])
    expect(await ApiToken.list(caller)).toEqual({ items: [] })
  })

  test.each<[string, (id: string) => Promise<unknown>]>([
    ['a password reset', (id) => UserAdmin.update(tenant.caller, id, { password: 'another long sentence' })],
    ['revoking all tokens', (id) => UserAdmin.revokeTokens(tenant.caller, id)],
    ['removing the user', (id) => UserAdmin.remove(tenant.caller, id)],
  ])('by %s ends cached and uncached tokens and deletes them', async (_, end) => {
    const user = await newUser()
    const tokens = [await newToken(user), await newToken(user)]
    await verifyApiToken(tokens[0]!.token)
    await end(user.id)
    for (const { id, token } of tokens) {
      await expectRejected(token)
      expect(await get(keys.apiToken(id))).toBeUndefined()
    }
    expect((await find(user.caller.organisationId, user.id))?.tokenIds.size ?? 0).toBe(0)
  })
})

describe('verification', () => {
  const ulid = '01jd8w5k3zr9x2m4c7t6v0b1qa'
  const secret = newSecret()

  test.each([
    'plat_',
    'plat_x',
    `plat_${ulid}`,
    `plat_${ulid}_`,
    `plat_${ulid}_${secret}x`,
    `plat_${ulid}_${secret.slice(1)}`,
    `plat_${ulid.toUpperCase()}_${secret}`,
    `plat_tok_${ulid}_${secret}`,
    `xplat_${ulid}_${secret}`,
    `plat_${ulid}__${secret}`,
    `plat_${'_'.repeat(10_000)}`,
  ])('rejects the malformed token %s without a store call', async (text) => {
    expect(await countStoreCalls(() => expectRejected(text))).toBe(0)
  })

  test('records the hour of the last use, once an hour', async () => {
    const user = await newUser()
    const { token } = await newToken(user)
    const expectLastUse = async () =>
      expect((await ApiToken.list(user.caller)).items[0]?.lastUsedAt).toBe(iso(now() - (now() % hourMs)))
    expect(await countStoreCalls(() => verifyApiToken(token))).toBe(3)
    await expectLastUse()
    expect(await countStoreCalls(() => verifyApiToken(token))).toBe(1)
    advanceClock(hourMs)
    expect(await countStoreCalls(() => verifyApiToken(token))).toBe(2)
    await expectLastUse()
  })

  test('does not restore a token that is revoked while its use is recorded', async () => {
    const user = await newUser()
    const { id, token } = await newToken(user)
    runBefore(/^Update/, () => ApiToken.remove(user.caller, id))
    await verifyApiToken(token)
    expect(await get(keys.apiToken(id))).toBeUndefined()
    await expectRejected(token)
  })

  test('succeeds if the use cannot be recorded', async () => {
    const { token } = await newToken(await newUser())
    using _ = failCommands(/^Update/)
    expect(await rightsOf(token)).toEqual(permissionsOf(['Viewer']))
  })

  test('rejects a remaining token of a missing user', async () => {
    const user = await newUser()
    const [cachedToken, uncachedToken] = [await newToken(user), await newToken(user)]
    await verifyApiToken(cachedToken.token)
    await transact([remove(keys.user(user.caller.organisationId, user.id))])
    for (const { token } of [cachedToken, uncachedToken]) await expectRejected(token)
  })
})
