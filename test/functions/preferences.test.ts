import { expect, test, vi } from 'vitest'
import { handler as clusters } from '../../functions/clusters.ts'
import { handler } from '../../functions/preferences.ts'
import { bearer, bootstrapPlatform } from '../support/fixtures.ts'
import { jsonRequest, type TestResponse, send } from '../support/request.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))
await bootstrapPlatform()

type Headers = Record<string, string>

const layoutPath = '/api/v1/users/me/dashboard-layout'
const filtersPath = '/api/v1/users/me/saved-filters'
const widget = (widgetId: string) => ({ widgetId, x: 0, y: 0, w: 4, h: 2 })
const newUser = () => bearer(['Viewer'])

const saveLayout = (user: Headers, layout: unknown, more: Headers = {}): Promise<TestResponse> =>
  send(handler, { ...jsonRequest(layoutPath, { layout }, { ...user, ...more }), method: 'PATCH' })
const saveFilter = (user: Headers, filter: unknown, more: object = {}): Promise<TestResponse> =>
  send(handler, jsonRequest(filtersPath, { name: 'mine', context: 'clusters', filter, ...more }, user))
const listClusters = (user: Headers, query: string): Promise<TestResponse> =>
  send(clusters, { target: `/api/v1/clusters?${query}`, headers: user })

test('matches If-Match against strong tags and *', async () => {
  const user = await newUser()
  const { etag = '' } = (await saveLayout(user, [widget('a')])).headers
  const changed = await saveLayout(user, [widget('b')], { 'If-Match': `"other", ${etag}` })
  expect(changed.status).toBe(204)
  for (const stale of ['"other"', `W/${changed.headers['etag']}`]) {
    const { status, json } = await saveLayout(user, [widget('c')], { 'If-Match': stale })
    expect([stale, status, json.error]).toEqual([stale, 412, 'precondition_failed'])
  }
  expect((await saveLayout(user, [widget('d')], { 'If-Match': '*' })).status).toBe(204)
})

test.each(['', 'abc', '"a" "b"', '"a",', Array.from({ length: 21 }, () => '"a"').join()])(
  'rejects the If-Match header %j',
  async (tag) => {
    const { status, json } = await saveLayout(await newUser(), [], { 'If-Match': tag })
    expect([status, json.details]).toMatchObject([400, [{ in: 'header', path: '/if-match' }]])
  },
)

test.each([
  ['a widget without a position', [{ widgetId: 'a' }]],
  ['a position above the limit', [{ ...widget('a'), y: 10_001 }]],
  ['a widget id of 101 characters', [widget('a'.repeat(101))]],
  ['201 widgets', Array.from({ length: 201 }, () => widget('a'))],
])('rejects a layout with %s', async (_, layout) => {
  const { status, json } = await saveLayout(await newUser(), layout)
  expect([status, json.error]).toEqual([400, 'validation_failed'])
})

const nested = (levels: number): unknown => (levels === 1 ? {} : { x: nested(levels - 1) })

test.each([
  ['17 levels', { filter: nested(17) }],
  ['more than 16 KiB', { filter: { x: 'ä'.repeat(8192) } }],
  ['a name of 101 characters', { name: 'a'.repeat(101) }],
  ['an empty context', { context: '' }],
  ['a context of 51 characters', { context: 'a'.repeat(51) }],
])('rejects a filter with %s', async (_, body) => {
  const { status, json } = await saveFilter(await newUser(), {}, body)
  expect([status, json.error]).toEqual([400, 'validation_failed'])
})

test('accepts a filter of 16 levels and one of 16 KiB', async () => {
  const user = await newUser()
  expect((await saveFilter(user, nested(16))).status).toBe(201)
  expect((await saveFilter(user, { x: 'a'.repeat(16_384 - '{"x":""}'.length) })).status).toBe(201)
})

test('lists up to 100 filters of any size, newest first, and rejects one more until one is removed', async () => {
  const user = await newUser()
  const large = { x: 'a'.repeat(16_000) }
  for (let round = 0; round < 10; round++) {
    const saved = await Promise.all(Array.from({ length: 10 }, () => saveFilter(user, large)))
    expect(saved.map(({ status }) => status)).toEqual(saved.map(() => 201))
  }
  expect(await saveFilter(user, {})).toMatchObject({ status: 409, json: { error: 'limit_reached' } })
  const { json } = await send(handler, { target: filtersPath, headers: user })
  const ids: string[] = json.items.map(({ id }: { id: string }) => id)
  expect(ids).toHaveLength(100)
  expect(ids).toEqual(ids.toSorted().toReversed())
  await send(handler, { method: 'DELETE', target: `${filtersPath}/${ids[50]}`, headers: user })
  const two = await Promise.all([saveFilter(user, {}), saveFilter(user, {})])
  expect(two.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409])
})

test('applies the search of a saved filter unless the query has its own', async () => {
  const user = await bearer(['ClusterAdmin'])
  for (const name of ['hypervisor', 'cloud']) {
    await send(clusters, jsonRequest('/api/v1/clusters', { name, type: 'Hypervisor' }, user))
  }
  const names = async (query: string): Promise<string[]> =>
    (await listClusters(user, query)).json.items.map(({ name }: { name: string }) => name)
  const { id } = (await saveFilter(user, { search: 'CLO' })).json
  expect(await names(`filterId=${id}`)).toEqual(['cloud'])
  expect(await names(`filterId=${id}&search=hyp`)).toEqual(['hypervisor'])
})

test.each(['LAYOUT', ''])('does not find the filter %j', async (filterId) => {
  const { status, json } = await listClusters(await newUser(), `filterId=${filterId}`)
  expect([status, json.error]).toEqual([404, 'filter_not_found'])
})

test.each([
  ['another key', { status: 'Offline', site: 'x' }],
  ['several values', { status: ['Offline'] }],
  ['a search that is not text', { search: 1 }],
])('does not apply a filter with %s to clusters', async (_, filter) => {
  const user = await newUser()
  const { id } = (await saveFilter(user, filter)).json
  const { status, json } = await listClusters(user, `filterId=${id}`)
  expect([status, json.error]).toEqual([422, 'filter_not_applicable'])
})
