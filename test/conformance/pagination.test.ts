import { expect } from 'vitest'
import { test } from './support/test.ts'
import { isDeepStrictEqual } from 'node:util'
import { expectStatus, invalidFields } from './support/answer.ts'
import type { Contract } from './support/contract.ts'
import { waitFor } from '../support/wait-for.ts'

const pagedLists = ({ operations }: Contract) =>
  operations.filter(({ method, parameters = [] }) => method === 'GET' && parameters.some(({ name }) => name === 'page'))

test('every list rejects a page or page size out of range and names it', async ({ platform, admin }) => {
  const lists = pagedLists(platform.contract)
  expect(lists.length).toBeGreaterThan(5)
  for (const { template } of lists) {
    const path = template.replaceAll(/\{\w+\}/g, 'nothing')
    for (const invalidQuery of ['page=0', 'pageSize=0', 'pageSize=101', 'page=1.5', 'pageSize=ten', 'page=01']) {
      expect(invalidFields(await admin.get(`${path}?${invalidQuery}`))).toEqual([
        `query /${invalidQuery.split('=')[0]}`,
      ])
    }
  }
})

test('every list defaults to 20 items and is empty after the last page', async ({ platform, admin }) => {
  for (const { template } of pagedLists(platform.contract)) {
    if (template.includes('{')) continue
    const firstPage = expectStatus(await admin.get(template), 200)
    expect([firstPage.page, firstPage.pageSize], template).toEqual([1, 20])
    expect(firstPage.items.length, template).toBeLessThanOrEqual(20)
    expect(firstPage.totalCount, template).toBeGreaterThanOrEqual(firstPage.items.length)
    const pageBeyondEnd = expectStatus(await admin.get(`${template}?page=1000000&pageSize=100`), 200)
    expect([pageBeyondEnd.items, pageBeyondEnd.page, pageBeyondEnd.pageSize], template).toEqual([[], 1_000_000, 100])
  }
})

test('a walk by cursor through every list finds each item once, and another list rejects its cursor', async ({
  platform,
}) => {
  const { client } = await platform.tenant
  const lists = pagedLists(platform.contract).filter(({ template }) => !template.includes('{'))
  expect(lists.every(({ parameters = [] }) => parameters.some(({ name }) => name === 'cursor'))).toBe(true)
  for (const { template } of lists) {
    if (template.startsWith('/api/v1/platform/organisations')) continue
    const walk = async (pageSize: number) => {
      const walkedItems: unknown[] = []
      let cursor: string | undefined
      do {
        const query = `pageSize=${pageSize}${cursor === undefined ? '' : `&cursor=${cursor}`}`
        const { items, nextCursor } = expectStatus(await client.get(`${template}?${query}`), 200)
        walkedItems.push(...items.map(({ id }: { id: string }) => id))
        cursor = nextCursor
      } while (cursor !== undefined && walkedItems.length < 30)
      return walkedItems
    }
    await waitFor(`the walks through ${template} agree`, async () => {
      const [items, byTwo] = [await walk(30), await walk(2)]
      return new Set(byTwo).size === byTwo.length && isDeepStrictEqual(byTwo, items.slice(0, byTwo.length))
    })
    const foreignCursorResponse = await (
      await platform.admin
    ).get(`${template}?cursor=${btoa('1.0123456789abcdef.clus_0')}`)
    expect(invalidFields(foreignCursorResponse), template).toEqual(['query /cursor'])
  }
})

test('every list returns the same order for any page size', async ({ platform }) => {
  const { client } = await platform.tenant
  for (const { template } of pagedLists(platform.contract)) {
    if (template.includes('{') || template.startsWith('/api/v1/platform/organisations')) continue
    const readRows = async (query: string) => expectStatus(await client.get(`${template}?${query}`), 200).items
    // Retry, because items may change between two requests, for example when a batch ends.
    await waitFor(`the pages of ${template} agree`, async () => {
      const items = await readRows('pageSize=5')
      const pages = items.map((_: unknown, index: number) => readRows(`page=${index + 1}&pageSize=1`))
      return isDeepStrictEqual((await Promise.all(pages)).flat(), items)
    })
  }
})
