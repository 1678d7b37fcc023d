import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, invalidFields } from './support/answer.ts'
import { waitFor } from '../support/wait-for.ts'

const path = '/api/v1/sites'

test('creates, lists and removes a site', async ({ platform, admin }) => {
  const site = await platform.newSite()
  const isListed = async () =>
    expectStatus(await admin.get(path), 200).items.some(({ id, name }: any) => id === site.id && name === site.name)
  await waitFor('the site is listed', isListed)
  expectStatus(await admin.delete(`${path}/${site.id}`), 204)
  await waitFor('the site is no longer listed', async () => !(await isListed()))
  expectStatus(await admin.delete(`${path}/${site.id}`), 404, 'site_not_found')
})

test('keeps site names unique and frees them on removal', async ({ platform, admin }) => {
  const { id, name } = await platform.newSite()
  expectStatus(await admin.post(path, { name }), 409, 'site_name_taken')
  expectStatus(await admin.delete(`${path}/${id}`), 204)
  const again = expectStatus(await admin.post(path, { name }), 201)
  expectStatus(await admin.delete(`${path}/${again.id}`), 204)
})

test('rejects the removal of a site with clusters', async ({ platform, admin }) => {
  const { id: siteId } = await platform.newSite()
  const cluster = await platform.newCluster({ siteId })
  expectStatus(await admin.delete(`${path}/${siteId}`), 409, 'site_in_use')
  expectStatus(await admin.delete(`/api/v1/clusters/${cluster.id}`), 204)
  expectStatus(await admin.delete(`${path}/${siteId}`), 204)
})

test('rejects invalid names', async ({ admin }) => {
  for (const name of [undefined, '', ' ', 'x'.repeat(65), 'line\nbreak', 7, null]) {
    expect(invalidFields(await admin.post(path, { name }))).toEqual(['body /name'])
  }
})
