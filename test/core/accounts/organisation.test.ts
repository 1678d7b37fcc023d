import { beforeAll, expect, test } from 'vitest'
import * as Organisation from '@platform/core/accounts/organisation'
import { administrator, type SignedInUser, setUpPlatform, errorCodeOf } from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'

let admin: SignedInUser
beforeAll(async () => {
  admin = await setUpPlatform()
})

const firstPage = { page: 1, pageSize: 100 }

test('the platform organisation is listed from the start, and new ones come before it', async () => {
  const platform = { name: administrator.platformName, isPlatform: true, id: admin.caller.organisationId }
  expect(await Organisation.list(firstPage)).toMatchObject({ totalCount: 1, items: [platform] })
  const acme = await Organisation.create(admin.caller, { name: 'Acme' })
  expect(acme).toEqual({ id: expect.any(String), name: 'Acme', isPlatform: false, createdAt: expect.any(String) })
  expect(await Organisation.list(firstPage)).toMatchObject({ totalCount: 2, items: [acme, platform] })
})

test('names are unique whatever their case, that of the platform included', async () => {
  await Organisation.create(admin.caller, { name: 'Müller' })
  for (const name of ['MÜLLER', 'mu\u0308ller', administrator.platformName.toUpperCase()]) {
    expect(await errorCodeOf(Organisation.create(admin.caller, { name }))).toBe('organisation_name_taken')
  }
})

test('of eight that create one name at once one wins', async () => {
  const before = (await Organisation.list(firstPage)).totalCount
  const attempts = Array.from({ length: 8 }, () => errorCodeOf(Organisation.create(admin.caller, { name: 'wanted' })))
  const outcomes = (await Promise.all(attempts)).toSorted()
  expect(outcomes).toEqual(['no error', ...Array(7).fill('organisation_name_taken')])
  expect((await Organisation.list(firstPage)).totalCount).toBe(before + 1)
})

test('organisations created at the same moment are all listed once, and any page costs two calls', async () => {
  const names = Array.from({ length: 10 }, (_, index) => `tenant ${index}`)
  await Promise.all(names.map((name) => Organisation.create(admin.caller, { name })))
  const { items, totalCount } = await Organisation.list(firstPage)
  expect(items).toHaveLength(totalCount)
  expect(
    items
      .map(({ name }) => name)
      .filter((name) => name.startsWith('tenant '))
      .toSorted(),
  ).toEqual(names)
  const pages = await Promise.all([1, 2, 3, 4, 5].map((page) => Organisation.list({ page, pageSize: 4 })))
  expect(pages.flatMap((page) => page.items)).toEqual(items)
  for (const page of [1, 4]) expect(await countStoreCalls(() => Organisation.list({ page, pageSize: 4 }))).toBe(2)
})
