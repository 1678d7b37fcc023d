import { beforeAll, expect, test } from 'vitest'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import * as User from '@platform/core/accounts/user'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { rounds } from '../../support/long.ts'
import { createColleague, type SignedInUser, setUpPlatform, errorCodeOf } from '../../support/fixtures.ts'

let platform: SignedInUser
beforeAll(async () => {
  platform = await setUpPlatform()
})

const administrators = async () => Number((await get(keys.administrators()))?.['count'])

test('the last platform administrator can neither be removed nor demoted, not even by itself', async () => {
  expect(await administrators()).toBe(1)
  expect(await errorCodeOf(UserAdmin.remove(platform.caller, platform.id))).toBe('last_administrator')
  const demotion = UserAdmin.update(platform.caller, platform.id, { roles: ['OrgAdmin'] })
  expect(await errorCodeOf(demotion)).toBe('last_administrator')
  expect(await administrators()).toBe(1)
})

const nothing = 'no error'
const demote = (by: SignedInUser, whom: SignedInUser) =>
  errorCodeOf(UserAdmin.update(by.caller, whom.id, { roles: ['Viewer'] }))

test('of two administrators that end each other or themselves at the same moment one is left, in every round', async () => {
  const other = await createColleague(platform.caller, 'PlatformAdmin')
  const isAdmin = async ({ id }: SignedInUser) => (await User.read(platform.caller, id)).roles.includes('PlatformAdmin')
  for (let round = 0; round < rounds(8, 30); round++) {
    expect(await administrators()).toBe(2)
    const outcomes = await Promise.all(
      round % 2 === 0
        ? [demote(platform, other), demote(other, platform)]
        : [demote(platform, platform), demote(other, other)],
    )
    expect(outcomes.filter((outcome) => outcome === nothing)).toHaveLength(1)
    expect(['last_administrator', 'forbidden']).toContain(outcomes.find((outcome) => outcome !== nothing))
    expect(await administrators()).toBe(1)
    const [first, second] = await Promise.all([isAdmin(platform), isAdmin(other)])
    expect(Number(first) + Number(second)).toBe(1)
    const [survivor, fallen] = first ? [platform, other] : [other, platform]
    await UserAdmin.update(survivor.caller, fallen.id, { roles: ['PlatformAdmin'] })
  }
  const removals = await Promise.all([
    errorCodeOf(UserAdmin.remove(platform.caller, other.id)),
    errorCodeOf(UserAdmin.update(other.caller, other.id, { roles: ['Viewer'] })),
  ])
  expect(removals).toContain(nothing)
  expect(await administrators()).toBe(1)
})
