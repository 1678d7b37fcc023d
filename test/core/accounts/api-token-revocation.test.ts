import { beforeAll, expect, test } from 'vitest'
import { apiTokenLimit } from '@platform/contract/api-token'
import { permissionsOf } from '@platform/contract/permission'
import * as ApiToken from '@platform/core/accounts/api-token'
import { verifyApiToken } from '@platform/core/accounts/api-token-caller'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { find } from '@platform/core/accounts/user'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import {
  createColleague,
  type SignedInUser,
  setUpPlatform,
  errorCodeOf,
  createTenantAdministrator,
} from '../../support/fixtures.ts'
import { beforeCommand } from '../../support/store-calls.ts'

/** How an administrator ends the API tokens of somebody else. */

let platform: SignedInUser
let tenant: SignedInUser
beforeAll(async () => {
  platform = await setUpPlatform()
  tenant = await createTenantAdministrator(platform.caller)
})

const rightsOf = async (token: string) => [...(await verifyApiToken(token)).permissions]
const name = 'nightly'

test('a password that an administrator sets ends the user’s API tokens, and so does revoking them all', async () => {
  const ways: ((id: string) => Promise<unknown>)[] = [
    (id) => UserAdmin.update(tenant.caller, id, { password: 'another long sentence' }),
    (id) => UserAdmin.revokeTokens(tenant.caller, id),
  ]
  for (const end of ways) {
    const { caller, id } = await createColleague(tenant.caller, 'Viewer')
    const tokens = [await ApiToken.create(caller, { name }), await ApiToken.create(caller, { name })]
    await verifyApiToken(tokens[0]!.token)
    await end(id)
    for (const token of tokens) {
      expect(await errorCodeOf(verifyApiToken(token.token))).toBe('unauthenticated')
      expect(await get(keys.apiToken(token.id))).toBeUndefined()
    }
    // Else what has gone would count among the fifty.
    expect((await find(caller.organisationId, id))?.tokenIds.size).toBe(0)
    await end(id)
  }
})

test('revoking all tokens leaves sessions alone, takes all fifty, and there is room again', async () => {
  const { caller, id } = await createColleague(tenant.caller, 'Viewer')
  for (let index = 0; index < apiTokenLimit; index++) await ApiToken.create(caller, { name })
  await UserAdmin.revokeTokens(tenant.caller, id)
  expect(await rightsOf((await ApiToken.create(caller, { name })).token)).toEqual(permissionsOf(['Viewer']))
})

test('a token that is being made while all are revoked or the sessions end does not outlive that', async () => {
  const own = await createColleague(tenant.caller, 'Viewer')
  const areRevoked = beforeCommand(/^TransactWrite/, () => UserAdmin.revokeTokens(tenant.caller, own.id))
  await ApiToken.create(own.caller, { name })
  expect(areRevoked()).toBe(true)
  const areEnded = beforeCommand(/^TransactWrite/, () => UserAdmin.endUserSessions(tenant.caller, own.id))
  expect(await errorCodeOf(ApiToken.create(own.caller, { name }))).toBe('unauthenticated')
  expect(areEnded()).toBe(true)
})

test('nobody revokes the tokens of a user with more rights, or of another organisation', async () => {
  const { caller } = await createColleague(platform.caller, 'OrgAdmin')
  expect(await errorCodeOf(UserAdmin.revokeTokens(caller, platform.id))).toBe('forbidden')
  expect(await errorCodeOf(UserAdmin.revokeTokens(platform.caller, tenant.id))).toBe('user_not_found')
})
