import { beforeAll, expect, test } from 'vitest'
import { permissionsOf } from '@platform/contract/permission'
import { iso, now, shiftClock } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newSecret } from '@platform/core/id'
import * as ApiToken from '@platform/core/accounts/api-token'
import { verifyApiToken } from '@platform/core/accounts/api-token-caller'
import {
  createColleague,
  type SignedInUser,
  setUpPlatform,
  errorCodeOf,
  createTenantAdministrator,
} from '../../support/fixtures.ts'
import { onStoreCall, countStoreCalls, beforeCommand } from '../../support/store-calls.ts'

/** Who an API token speaks for, what it costs to know, and what is written down of its use. */

let tenant: SignedInUser
beforeAll(async () => {
  tenant = await createTenantAdministrator((await setUpPlatform()).caller)
})

const name = 'nightly'
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
])('what only looks like a token is refused without asking the store: %s', async (text) => {
  const calls = await countStoreCalls(async () =>
    expect(await errorCodeOf(verifyApiToken(text))).toBe('unauthenticated'),
  )
  expect(calls).toBe(0)
})

const refused = async (text: string) => expect(await errorCodeOf(verifyApiToken(text))).toBe('unauthenticated')

test('an unknown token and a wrong secret cost one call; a right one two at first and one from then on', async () => {
  const { token } = await ApiToken.create(tenant.caller, { name })
  const forged = token.slice(0, -43) + secret
  expect(await countStoreCalls(() => refused(`plat_${ulid}_${secret}`))).toBe(1)
  expect(await countStoreCalls(() => refused(forged))).toBe(1)
  await verifyApiToken(token)
  expect(await countStoreCalls(() => verifyApiToken(token))).toBe(1)
  expect(await countStoreCalls(() => refused(forged))).toBe(1)
})

const hourOf = (ms: number): string => iso(ms - (ms % 3_600_000))

test('the last use is known to the hour, and written once an hour', async () => {
  const { caller } = await createColleague(tenant.caller, 'Viewer')
  const { token } = await ApiToken.create(caller, { name })
  const lastUse = async () => (await ApiToken.list(caller)).items[0]?.lastUsedAt
  expect(await countStoreCalls(() => verifyApiToken(token))).toBe(3)
  expect(await lastUse()).toBe(hourOf(now()))
  expect(await countStoreCalls(() => verifyApiToken(token))).toBe(1)
  shiftClock(3_600_000)
  expect(await countStoreCalls(() => verifyApiToken(token))).toBe(2)
  expect(await lastUse()).toBe(hourOf(now()))
  shiftClock(-3_600_000)
})

test('a token that is revoked while its use is written down stays revoked', async () => {
  const { caller } = await createColleague(tenant.caller, 'Viewer')
  const { id, token } = await ApiToken.create(caller, { name })
  const isRevoked = beforeCommand(/^Update/, () => ApiToken.remove(caller, id))
  await verifyApiToken(token)
  expect(isRevoked()).toBe(true)
  expect(await get(keys.apiToken(id))).toBeUndefined()
  expect(await errorCodeOf(verifyApiToken(token))).toBe('unauthenticated')
})

test('the token of a user who is no more is refused, even where it has stayed behind', async () => {
  const person = await createColleague(tenant.caller, 'Viewer')
  const [known, unknown] = [
    await ApiToken.create(person.caller, { name }),
    await ApiToken.create(person.caller, { name }),
  ]
  await verifyApiToken(known.token)
  await transact([remove(keys.user(person.caller.organisationId, person.id))])
  for (const { token } of [known, unknown]) expect(await errorCodeOf(verifyApiToken(token))).toBe('unauthenticated')
})

test('that the use of a token cannot be written down keeps nobody out', async () => {
  const { caller } = await createColleague(tenant.caller, 'Viewer')
  const { token } = await ApiToken.create(caller, { name })
  using _ = onStoreCall({
    before: async ({ command }) => {
      if (command.startsWith('Update')) throw new RangeError('out of order')
    },
  })
  expect([...(await verifyApiToken(token)).permissions]).toEqual(permissionsOf(['Viewer']))
})
