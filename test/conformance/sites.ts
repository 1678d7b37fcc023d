import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import type { Journeys } from './support/platform.ts'
import { until } from './support/until.ts'

const path = '/api/v1/sites'

export const sites: Journeys = {
  'a site is created, listed and removed': async (platform) => {
    const admin = await platform.admin
    const site = await platform.newSite()
    const isListed = async () =>
      answered(await admin.get(path), 200).items.some(({ id, name }: any) => id === site.id && name === site.name)
    await until('the site is listed', isListed)
    answered(await admin.delete(`${path}/${site.id}`), 204)
    await until('the site is no longer listed', async () => !(await isListed()))
    answered(await admin.delete(`${path}/${site.id}`), 404, 'site_not_found')
  },

  'the names of sites are unique, and free again after removal': async (platform) => {
    const admin = await platform.admin
    const { id, name } = await platform.newSite()
    answered(await admin.post(path, { name }), 409, 'site_name_taken')
    answered(await admin.delete(`${path}/${id}`), 204)
    const again = answered(await admin.post(path, { name }), 201)
    answered(await admin.delete(`${path}/${again.id}`), 204)
  },

  'a site that clusters belong to cannot be removed': async (platform) => {
    const admin = await platform.admin
    const { id: siteId } = await platform.newSite()
    const cluster = await platform.newCluster({ siteId })
    answered(await admin.delete(`${path}/${siteId}`), 409, 'site_in_use')
    answered(await admin.delete(`/api/v1/clusters/${cluster.id}`), 204)
    answered(await admin.delete(`${path}/${siteId}`), 204)
  },

  'a name that is missing, empty, too long or holds control characters is refused': async ({ admin }) => {
    for (const name of [undefined, '', ' ', 'x'.repeat(65), 'line\nbreak', 7, null]) {
      assert.deepEqual(refusedFields(await (await admin).post(path, { name })), ['body /name'])
    }
  },
}
