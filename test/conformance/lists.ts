import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { answered, refusedFields } from './support/answer.ts'
import type { Contract } from './support/contract.ts'
import type { Journeys } from './support/platform.ts'
import { until } from './support/until.ts'

/** Every list that is paged. */
const pagedLists = ({ operations }: Contract) =>
  operations.filter(({ method, parameters = [] }) => method === 'GET' && parameters.some(({ name }) => name === 'page'))

export const lists: Journeys = {
  'every list refuses a page or a size out of range, and names it': async (platform) => {
    const admin = await platform.admin
    const paged = pagedLists(platform.contract)
    assert.ok(paged.length > 5)
    for (const { template } of paged) {
      const path = template.replaceAll(/\{\w+\}/g, 'nothing')
      for (const wrong of ['page=0', 'pageSize=0', 'pageSize=101', 'page=1.5', 'pageSize=ten', 'page=01']) {
        assert.deepEqual(refusedFields(await admin.get(`${path}?${wrong}`)), [`query /${wrong.split('=')[0]}`])
      }
    }
  },

  'every list says which page it shows, 20 rows unless told otherwise; behind the last page is nothing': async (
    platform,
  ) => {
    const admin = await platform.admin
    for (const { template } of pagedLists(platform.contract)) {
      if (template.includes('{')) continue
      const first = answered(await admin.get(template), 200)
      assert.deepEqual([first.page, first.pageSize], [1, 20], template)
      assert.ok(first.items.length <= 20 && first.totalCount >= first.items.length, template)
      const far = answered(await admin.get(`${template}?page=1000000&pageSize=100`), 200)
      assert.deepEqual([far.items, far.page, far.pageSize], [[], 1_000_000, 100], template)
    }
  },

  'on every list the pages of one row are the rows of one page, in the same order': async (platform) => {
    const { client } = await platform.tenant
    for (const { template } of pagedLists(platform.contract)) {
      if (template.includes('{') || template.startsWith('/api/v1/platform/organisations')) continue
      const rows = async (query: string) => answered(await client.get(`${template}?${query}`), 200).items
      // What is still under way, such as the end of a batch, may change a row between two looks at it.
      await until(`the pages of ${template} agree`, async () => {
        const whole = await rows('pageSize=5')
        const pages = whole.map((_: unknown, index: number) => rows(`page=${index + 1}&pageSize=1`))
        return isDeepStrictEqual((await Promise.all(pages)).flat(), whole)
      })
    }
  },
}
