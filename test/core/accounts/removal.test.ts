import { afterEach, beforeAll, expect, test } from 'vitest'
import { type Caller } from '@platform/core/caller'
import { shiftClock } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, query } from '@platform/core/db/table'
import * as Layout from '@platform/core/accounts/dashboard-layout'
import * as SavedFilter from '@platform/core/accounts/saved-filter'
import { sweep } from '@platform/core/background/sweep'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { createColleague, type SignedInUser, setUpPlatform } from '../../support/fixtures.ts'

let platform: SignedInUser
beforeAll(async () => {
  platform = await setUpPlatform()
})

let shiftedMs = 0
const pass = (ms: number): void => {
  shiftClock(ms)
  shiftedMs += ms
}
afterEach(() => pass(-shiftedMs))

const preferencesOf = async ({ organisationId, userId }: Caller) =>
  (await query(keys.preferences(organisationId, userId))).items.length

test('what a removed user had set goes, and what its access token sets until it expires', async () => {
  const { caller, id } = await createColleague(platform.caller, 'Viewer')
  await Layout.save(caller, { layout: [] })
  await UserAdmin.remove(platform.caller, id)
  for (let count = 0; count < 60; count++) {
    await SavedFilter.create(caller, { name: 'late', context: 'clusters', filter: {} })
  }
  await sweep()
  pass(15 * 60_000)
  await Layout.save(caller, { layout: [] })
  await sweep()
  pass(60_000)
  await sweep()
  expect(await preferencesOf(caller)).toBe(0)
  expect(await get(keys.userPurge(id))).toBeUndefined()
})

test('what others have set stays', async () => {
  const [gone, other] = [
    await createColleague(platform.caller, 'Viewer'),
    await createColleague(platform.caller, 'Viewer'),
  ]
  for (const { caller } of [gone, other]) await Layout.save(caller, { layout: [] })
  await UserAdmin.remove(platform.caller, gone.id)
  pass(16 * 60_000)
  await sweep()
  expect([await preferencesOf(gone.caller), await preferencesOf(other.caller)]).toEqual([0, 1])
})
