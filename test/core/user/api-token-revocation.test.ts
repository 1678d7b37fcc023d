import { beforeAll, expect, test } from 'vitest'
import { apiTokenLimit } from '@platform/contract/api-token'
import { permissionsOf } from '@platform/contract/permission'
import * as ApiToken from '@platform/core/user/api-token'
import { verifyApiToken } from '@platform/core/user/api-token-caller'
import * as keys from '@platform/core/db/keys'
import { get, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { find } from '@platform/core/user/user'
import * as UserAdmin from '@platform/core/user/admin'
import { colleague, type Person, platformAdministrator, tenantAdministrator } from '../../support/people.ts'
import { justBefore } from '../../support/store-calls.ts'
import { refusalOf } from '../../support/world.ts'
import { atStoreCalls } from '../support/store-hook.ts'
import { told } from '../support/webhooks.ts'

/** How an administrator ends the API tokens of somebody else. */

let platform: Person
let tenant: Person
beforeAll(async () => {
  platform = await platformAdministrator()
  tenant = await tenantAdministrator(platform.caller)
})

const rightsOf = async (token: string) => [...(await verifyApiToken(token)).permissions]
const name = 'nightly'

test('a password that an administrator sets ends the user’s API tokens, and so does revoking them all', async () => {
  const ways: ((id: string) => Promise<unknown>)[] = [
    (id) => UserAdmin.update(tenant.caller, id, { password: 'another long sentence' }),
    (id) => UserAdmin.revokeTokens(tenant.caller, id),
  ]
  for (const end of ways) {
    const { caller, id } = await colleague(tenant.caller, 'Viewer')
    const tokens = [await ApiToken.create(caller, { name }), await ApiToken.create(caller, { name })]
    await verifyApiToken(tokens[0]!.token)
    await end(id)
    for (const token of tokens) {
      expect(await refusalOf(verifyApiToken(token.token))).toBe('unauthenticated')
      expect(await get(keys.apiToken(token.id))).toBeUndefined()
    }
    // Else what has gone would count among the fifty.
    expect((await find(caller.organisationId, id))?.tokenIds.size).toBe(0)
    await end(id)
  }
})

test('revoking all tokens leaves sessions alone, takes all fifty, and there is room again', async () => {
  const { caller, id } = await colleague(tenant.caller, 'Viewer')
  for (let index = 0; index < apiTokenLimit; index++) await ApiToken.create(caller, { name })
  await UserAdmin.revokeTokens(tenant.caller, id)
  expect(await rightsOf((await ApiToken.create(caller, { name })).token)).toEqual(permissionsOf(['Viewer']))
})

test('a token that is being made while all are revoked or the sessions end does not outlive that', async () => {
  const own = await colleague(tenant.caller, 'Viewer')
  const areRevoked = justBefore(/^TransactWrite/, () => UserAdmin.revokeTokens(tenant.caller, own.id))
  await ApiToken.create(own.caller, { name })
  expect(areRevoked()).toBe(true)
  const areEnded = justBefore(/^TransactWrite/, () => UserAdmin.endUserSessions(tenant.caller, own.id))
  expect(await refusalOf(ApiToken.create(own.caller, { name }))).toBe('unauthenticated')
  expect(areEnded()).toBe(true)
})

test('nobody revokes the tokens of a user with more rights, or of another organisation', async () => {
  const { caller } = await colleague(platform.caller, 'OrgAdmin')
  expect(await refusalOf(UserAdmin.revokeTokens(caller, platform.id))).toBe('forbidden')
  expect(await refusalOf(UserAdmin.revokeTokens(platform.caller, tenant.id))).toBe('user_not_found')
})

test('the token of a user who is no more is refused, even where it has stayed behind', async () => {
  const person = await colleague(tenant.caller, 'Viewer')
  const [known, unknown] = [
    await ApiToken.create(person.caller, { name }),
    await ApiToken.create(person.caller, { name }),
  ]
  await verifyApiToken(known.token)
  await transact([remove(keys.user(person.caller.organisationId, person.id))])
  for (const { token } of [known, unknown]) expect(await refusalOf(verifyApiToken(token))).toBe('unauthenticated')
})

test('that the use of a token cannot be written down keeps nobody out', async () => {
  const { caller } = await colleague(tenant.caller, 'Viewer')
  const { token } = await ApiToken.create(caller, { name })
  using _ = atStoreCalls({
    before: async ({ command }) => {
      if (command.startsWith('Update')) throw new RangeError('out of order')
    },
  })
  expect(await rightsOf(token)).toEqual(permissionsOf(['Viewer']))
})

test('tokens are listed newest first; the audit trail names each that was made, and each that was revoked', async () => {
  const { caller } = await colleague(tenant.caller, 'Viewer')
  const [first, second] = [await ApiToken.create(caller, { name }), await ApiToken.create(caller, { name: 'weekly' })]
  expect((await ApiToken.list(caller)).items.map(({ id }) => id)).toEqual([second.id, first.id])
  for (const other of ['', 'tok', first.id.replace('tok_', 'user_')]) {
    expect([other, await refusalOf(ApiToken.remove(caller, other))]).toEqual([other, 'token_not_found'])
  }
  await ApiToken.remove(caller, first.id)
  const records = (await told(caller.organisationId)).filter(({ actor }) => actor.id === caller.userId)
  expect(new Set(records.map(({ audit }) => audit).filter((audit) => audit?.action.startsWith('token.')))).toEqual(
    new Set([
      { action: 'token.create', resource: first.id, detail: name },
      { action: 'token.create', resource: second.id, detail: 'weekly' },
      { action: 'token.delete', resource: first.id, detail: '' },
    ]),
  )
  // A row that is gone although its user still names it, as after a lost restore, is no token.
  await transact([remove(keys.apiToken(second.id))])
  expect(await ApiToken.list(caller)).toEqual({ items: [] })
})
