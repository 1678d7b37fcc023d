import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, invalidFields } from './support/answer.ts'
import { waitFor } from '../support/wait-for.ts'

const layoutPath = '/api/v1/users/me/dashboard-layout'
const filtersPath = '/api/v1/users/me/saved-filters'
const clustersPath = '/api/v1/clusters'

const widget = (widgetId: string) => ({ widgetId, x: 0, y: 1, w: 4, h: 3 })

test('saves a dashboard layout per user', async ({ platform }) => {
  const [{ client }, { client: other }] = [await platform.newUser('Viewer'), await platform.newUser('Viewer')]
  const noLayoutResponse = await client.get(layoutPath)
  expect([noLayoutResponse.status, noLayoutResponse.text]).toEqual([204, ''])
  for (const layout of [[widget('a'), widget('Ω 💥')], [], [widget('b')]]) {
    expectStatus(await client.patch(layoutPath, { layout }), 204)
    const savedLayout = expectStatus(await client.get(layoutPath), 200)
    expect(savedLayout.layout).toEqual(layout)
    expect(Date.parse(savedLayout.updatedAt)).toBeGreaterThan(0)
  }
  expectStatus(await other.get(layoutPath), 204)
})

test('saves a layout with If-Match only over the named version', async ({ platform }) => {
  const { client } = await platform.newUser('Viewer')
  const save = (name: string, headers = {}) => client.patch(layoutPath, { layout: [widget(name)] }, headers)
  expectStatus(await save('first', { 'if-match': '*' }), 412, 'precondition_failed')
  expectStatus(await save('first'), 204)
  const etag = (await client.get(layoutPath)).headers.get('etag') ?? ''
  expect(etag).toMatch(/^"[^"]+"$/)
  expect((await client.get(layoutPath, { 'if-none-match': etag })).status).toBe(304)
  expectStatus(await save('second', { 'if-match': etag }), 204)
  expect((await client.get(layoutPath, { 'if-none-match': etag })).status).toBe(200)
  expectStatus(await save('third', { 'if-match': etag }), 412, 'precondition_failed')
  const { headers, body } = await client.get(layoutPath)
  expect(body.layout).toEqual([widget('second')])
  expect(headers.get('etag')).not.toBe(etag)
  expectStatus(await save('last'), 204)
})

test('saves one of eight layouts that race for a version', async ({ platform }) => {
  const { client } = await platform.newUser('Viewer')
  expectStatus(await client.patch(layoutPath, { layout: [] }), 204)
  const etag = (await client.get(layoutPath)).headers.get('etag') ?? ''
  const names = Array.from({ length: 8 }, (_, index) => `widget ${index}`)
  const responses = await Promise.all(
    names.map((name) => client.patch(layoutPath, { layout: [widget(name)] }, { 'if-match': etag })),
  )
  const winners = names.filter((_, index) => responses[index]?.status === 204)
  expect(winners.length).toBe(1)
  for (const response of responses) if (response.status !== 204) expectStatus(response, 412, 'precondition_failed')
  expect(expectStatus(await client.get(layoutPath), 200).layout[0].widgetId).toBe(winners[0])
})

test('rejects an invalid layout and keeps the saved one', async ({ platform }) => {
  const { client } = await platform.newUser('Viewer')
  expectStatus(await client.patch(layoutPath, { layout: [widget('a')] }), 204)
  const invalidLayouts: [unknown, string][] = [
    [undefined, 'body /layout'],
    [{}, 'body /layout'],
    [[{ ...widget('a'), x: -1 }], 'body /layout/0/x'],
    [[{ ...widget('a'), w: 1.5 }], 'body /layout/0/w'],
    [[widget('a'), widget('')], 'body /layout/1/widgetId'],
  ]
  for (const [layout, field] of invalidLayouts) {
    expect(invalidFields(await client.patch(layoutPath, { layout }))).toEqual([field])
  }
  expect(expectStatus(await client.get(layoutPath), 200).layout).toEqual([widget('a')])
})

test('saves, lists and removes filters unchanged', async ({ platform }) => {
  const [{ client }, { client: other }] = [await platform.newUser('Viewer'), await platform.newUser('Viewer')]
  const filter = { status: 'Offline', nested: { list: [1, 0.5, null, true, 'Ω 💥'] }, constructor: '' }
  const savedFilter = expectStatus(await client.post(filtersPath, { name: 'mine', context: 'clusters', filter }), 201)
  expect([savedFilter.name, savedFilter.context, savedFilter.filter]).toEqual(['mine', 'clusters', filter])
  const secondFilter = expectStatus(await client.post(filtersPath, { name: 'mine', context: 'jobs', filter: {} }), 201)
  expect(expectStatus(await client.get(filtersPath), 200).items).toEqual([secondFilter, savedFilter])
  expect(expectStatus(await other.get(filtersPath), 200).items).toEqual([])
  expectStatus(await other.delete(`${filtersPath}/${savedFilter.id}`), 404, 'filter_not_found')
  expectStatus(await client.delete(`${filtersPath}/${savedFilter.id}`), 204)
  expectStatus(await client.delete(`${filtersPath}/${savedFilter.id}`), 404, 'filter_not_found')
  expect(expectStatus(await client.get(filtersPath), 200).items).toEqual([secondFilter])
})

test('rejects an invalid filter', async ({ platform }) => {
  const { client } = await platform.newUser('Viewer')
  const validFilter = { name: 'mine', context: 'clusters', filter: {} }
  const invalidFilters: [object, string[]][] = [
    [{}, ['body /name', 'body /context', 'body /filter']],
    [{ ...validFilter, name: ' ' }, ['body /name']],
    [{ ...validFilter, filter: [] }, ['body /filter']],
    [{ ...validFilter, filter: 'status' }, ['body /filter']],
    [{ ...validFilter, filter: { text: 'x'.repeat(17_000) } }, ['body /filter']],
  ]
  for (const [json, fields] of invalidFilters)
    expect(invalidFields(await client.post(filtersPath, json))).toEqual(fields)
  expect(expectStatus(await client.get(filtersPath), 200).items).toEqual([])
})

test('applies a saved filter to the cluster list below explicit parameters', async ({ platform }) => {
  const { client } = await platform.newUser('Viewer')
  const [cloud, local] = [await platform.newCluster({ type: 'CloudLocal' }), await platform.newCluster()]
  const filter = { type: 'CloudLocal', status: 'Pending' }
  const { id } = expectStatus(await client.post(filtersPath, { name: 'mine', context: 'clusters', filter }), 201)
  const waitForCluster = (query: string, { id: clusterId }: any) =>
    waitFor(`${clusterId} in the list with ${query}`, async () => {
      const { items, totalCount } = expectStatus(await client.get(`${clustersPath}?pageSize=100&${query}`), 200)
      return items.some((item: any) => item.id === clusterId) && { items, totalCount }
    })
  const { items, totalCount } = await waitForCluster(`filterId=${id}`, cloud)
  expect(items.every((item: any) => item.type === 'CloudLocal' && item.status === 'Pending')).toBe(true)
  expect(Math.min(totalCount, 100)).toBe(items.length)
  await waitForCluster(`filterId=${id}&type=Hypervisor`, local)
  const emptyPage = expectStatus(await client.get(`${clustersPath}?filterId=${id}&status=Healthy&pageSize=100`), 200)
  expect(emptyPage.items.every((item: any) => item.status === 'Healthy' && item.type === 'CloudLocal')).toBe(true)
})

test('does not apply a filter of another user or another list', async ({ platform }) => {
  const [{ client }, { client: other }] = [await platform.newUser('Viewer'), await platform.newUser('Viewer')]
  const save = async (context: string, filter: object) =>
    expectStatus(await client.post(filtersPath, { name: 'mine', context, filter }), 201).id
  const ownFilter = await save('clusters', { status: 'Offline' })
  for (const id of ['nothing', 'filter_00000000000000000000000000', ownFilter]) {
    expectStatus(await other.get(`${clustersPath}?filterId=${id}`), 404, 'filter_not_found')
  }
  for (const id of [await save('jobs', {}), await save('clusters', { status: 'Gone' })]) {
    expectStatus(await client.get(`${clustersPath}?filterId=${id}`), 422, 'filter_not_applicable')
  }
})
