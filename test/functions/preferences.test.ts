import { expect, test, vi } from 'vitest'
import { newId } from '@platform/core/id'
import { handler as clusters } from '../../functions/clusters.ts'
import { handler } from '../../functions/preferences.ts'
import { posting, type Received, send } from '../support/event.ts'
import { bearer } from '../support/tokens.ts'
import { started } from '../support/world.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_LIMIT_API_PER_MINUTE: '10000', PLAT_LIMIT_API_BURST: '10000' }))

await started()

const layoutPath = '/api/v1/users/me/dashboard-layout'
const filtersPath = '/api/v1/users/me/saved-filters'
const widget = (widgetId: string) => ({ widgetId, x: 0, y: 0, w: 4, h: 2 })

const member = (organisationId?: string) => bearer(['Viewer'], organisationId)
type Headers = Record<string, string>

const readLayout = (who: Headers): Promise<Received> => send(handler, { target: layoutPath, headers: who })
const saveLayout = (who: Headers, layout: unknown, more: Headers = {}): Promise<Received> =>
  send(handler, { ...posting(layoutPath, { layout }, { ...who, ...more }), method: 'PATCH' })
const listFilters = async (who: Headers) => (await send(handler, { target: filtersPath, headers: who })).json.items
const saveFilter = (who: Headers, filter: unknown, more: object = {}): Promise<Received> =>
  send(handler, posting(filtersPath, { name: 'mine', context: 'clusters', filter, ...more }, who))
const removeFilter = (who: Headers, id: string): Promise<Received> =>
  send(handler, { method: 'DELETE', target: `${filtersPath}/${id}`, headers: who })

test('there is no layout until one is saved, and then it is as it was saved last', async () => {
  const user = await member()
  expect(await readLayout(user)).toMatchObject({ status: 204, text: '' })
  expect(await saveLayout(user, [widget('a')])).toMatchObject({ status: 204, text: '' })
  expect((await saveLayout(user, [widget('b'), widget('c')])).status).toBe(204)
  const { status, json } = await readLayout(user)
  expect([status, json]).toEqual([200, { layout: [widget('b'), widget('c')], updatedAt: expect.any(String) }])
  expect((await saveLayout(user, [])).status).toBe(204)
  expect((await readLayout(user)).json.layout).toEqual([])
})

test('a layout belongs to one user', async () => {
  const organisationId = newId('org')
  const [one, other] = [await member(organisationId), await member(organisationId)]
  await saveLayout(one, [widget('a')])
  expect((await readLayout(other)).status).toBe(204)
})

test('what GET answers can be sent back', async () => {
  const user = await member()
  await saveLayout(user, [widget('a')])
  const { json } = await readLayout(user)
  const sent = { ...posting(layoutPath, json, user), method: 'PATCH' }
  expect((await send(handler, sent)).status).toBe(204)
  expect((await readLayout(user)).json.layout).toEqual(json.layout)
})

test('If-Match saves over the layout that it names and over no other', async () => {
  const user = await member()
  expect((await saveLayout(user, [], { 'If-Match': '*' })).status).toBe(412)
  const saved = await saveLayout(user, [widget('a')])
  const { etag = '' } = (await readLayout(user)).headers
  expect(saved.headers['etag']).toBe(etag)
  const changed = await saveLayout(user, [widget('b')], { 'If-Match': `"other", ${etag}` })
  expect(changed.status).toBe(204)
  for (const stale of [etag, '"other"', `W/${changed.headers['etag']}`]) {
    const { status, json } = await saveLayout(user, [widget('c')], { 'If-Match': stale })
    expect([stale, status, json.error]).toEqual([stale, 412, 'precondition_failed'])
  }
  expect((await readLayout(user)).json.layout).toEqual([widget('b')])
  expect((await saveLayout(user, [widget('d')], { 'If-Match': '*' })).status).toBe(204)
})

test('a tag that is none is refused', async () => {
  const user = await member()
  for (const tag of ['', 'abc', '"a" "b"', '"a",', Array.from({ length: 21 }, () => '"a"').join()]) {
    const { status, json } = await saveLayout(user, [], { 'If-Match': tag })
    expect([status, json.details]).toMatchObject([400, [{ in: 'header', path: '/if-match' }]])
  }
})

test('of ten who save over one layout at once one wins', async () => {
  const user = await member()
  const { etag = '' } = (await saveLayout(user, [widget('first')])).headers
  const save = async (index: number) => (await saveLayout(user, [widget(`w${index}`)], { 'If-Match': etag })).status
  const statuses = await Promise.all(Array.from({ length: 10 }, (_, index) => save(index)))
  expect(statuses.filter((status) => status === 412)).toHaveLength(9)
  const [{ widgetId }] = (await readLayout(user)).json.layout
  expect(widgetId).toBe(`w${statuses.indexOf(204)}`)
})

test('whoever holds the layout already is told so', async () => {
  const user = await member()
  const { etag = '' } = (await saveLayout(user, [widget('a')])).headers
  expect(await send(handler, { target: layoutPath, headers: { ...user, 'If-None-Match': etag } })).toMatchObject({
    status: 304,
    text: '',
  })
})

test.each([
  ['no list', { layout: {} }],
  ['a widget without a place', { layout: [{ widgetId: 'a' }] }],
  ['a negative place', { layout: [{ ...widget('a'), x: -1 }] }],
  ['half a cell', { layout: [{ ...widget('a'), w: 1.5 }] }],
  ['a place far away', { layout: [{ ...widget('a'), y: 10_001 }] }],
  ['no name', { layout: [widget('')] }],
  ['a name of 101 characters', { layout: [widget('a'.repeat(101))] }],
  ['201 widgets', { layout: Array.from({ length: 201 }, () => widget('a')) }],
])('a layout with %s is refused', async (_, body) => {
  const { status, json } = await send(handler, { ...posting(layoutPath, body, await member()), method: 'PATCH' })
  expect([status, json.error]).toEqual([400, 'validation_failed'])
})

test('filters are saved as they are, listed newest first, and removed', async () => {
  const user = await member()
  const filter = { status: 'Offline', nested: { list: [1, 0.5, null, true, 'ü🎉'], empty: {} }, '': '', constructor: 1 }
  const first = await saveFilter(user, filter, { name: ' first ', context: 'jobs' })
  expect(first).toMatchObject({ status: 201, json: { name: 'first', context: 'jobs', filter } })
  const second = await saveFilter(user, {})
  expect(await listFilters(user)).toEqual([second.json, first.json])
  expect((await removeFilter(user, first.json.id)).status).toBe(204)
  expect(await listFilters(user)).toEqual([second.json])
  expect((await removeFilter(user, first.json.id)).json.error).toBe('filter_not_found')
})

test('a filter belongs to one user: another neither sees nor removes it', async () => {
  const organisationId = newId('org')
  const [owner, colleague] = [await member(organisationId), await member(organisationId)]
  const { id } = (await saveFilter(owner, {})).json
  expect(await listFilters(colleague)).toEqual([])
  expect((await removeFilter(colleague, id)).status).toBe(404)
  expect(await listFilters(owner)).toHaveLength(1)
})

const nested = (levels: number): unknown => (levels === 1 ? {} : { x: nested(levels - 1) })

test.each([
  ['no filter', { filter: undefined }],
  ['a list', { filter: [] }],
  ['a text', { filter: 'status' }],
  ['17 levels', { filter: nested(17) }],
  ['more than 16 KiB', { filter: { x: 'ä'.repeat(8192) } }],
  ['no name', { filter: {}, name: ' ' }],
  ['a name of 101 characters', { filter: {}, name: 'a'.repeat(101) }],
  ['no context', { filter: {}, context: '' }],
  ['a context of 51 characters', { filter: {}, context: 'a'.repeat(51) }],
])('a filter with %s is refused', async (_, body) => {
  const { status, json } = await saveFilter(await member(), body.filter, body)
  expect([status, json.error]).toEqual([400, 'validation_failed'])
})

test('a filter may be 16 levels deep and 16 KiB large', async () => {
  const user = await member()
  expect((await saveFilter(user, nested(16))).status).toBe(201)
  expect((await saveFilter(user, { x: 'a'.repeat(16_384 - '{"x":""}'.length) })).status).toBe(201)
})

test('a hundred filters of any size are all listed, and there is no room for more until one is removed', async () => {
  const user = await member()
  const large = { x: 'a'.repeat(16_000) }
  for (let round = 0; round < 10; round++) {
    const saved = await Promise.all(Array.from({ length: 10 }, () => saveFilter(user, large)))
    expect(saved.map(({ status }) => status)).toEqual(saved.map(() => 201))
  }
  expect(await saveFilter(user, {})).toMatchObject({ status: 409, json: { error: 'limit_reached' } })
  const items = await listFilters(user)
  expect(items).toHaveLength(100)
  const ids = items.map(({ id }: { id: string }) => id)
  expect(ids).toEqual(ids.toSorted().toReversed())
  expect((await removeFilter(user, ids[50])).status).toBe(204)
  const two = await Promise.all([saveFilter(user, {}), saveFilter(user, {})])
  expect(new Set(two.map(({ status }) => status))).toEqual(new Set([201, 409]))
})

const register = (who: Headers, name: string, type: string): Promise<Received> =>
  send(clusters, posting('/api/v1/clusters', { name, type }, who))
const listClusters = (who: Headers, query: string): Promise<Received> =>
  send(clusters, { target: `/api/v1/clusters?${query}`, headers: who })
const names = ({ json }: Received): string[] => json.items.map(({ name }: { name: string }) => name)

test('a saved filter is applied to the list of clusters; what the query itself says wins', async () => {
  const user = await bearer(['ClusterAdmin'])
  await register(user, 'hypervisor', 'Hypervisor')
  await register(user, 'cloud', 'CloudLocal')
  const { id } = (await saveFilter(user, { type: 'CloudLocal', status: 'Pending' })).json
  const filtered = await listClusters(user, `filterId=${id}`)
  expect([names(filtered), filtered.json.totalCount]).toEqual([['cloud'], 1])
  expect(names(await listClusters(user, `filterId=${id}&type=Hypervisor`))).toEqual(['hypervisor'])
  expect(names(await listClusters(user, `filterId=${id}&status=Offline`))).toEqual([])
  const all = (await saveFilter(user, {})).json.id
  expect(names(await listClusters(user, `filterId=${all}`))).toEqual(['cloud', 'hypervisor'])
  const named = (await saveFilter(user, { search: 'CLO' })).json.id
  expect(names(await listClusters(user, `filterId=${named}`))).toEqual(['cloud'])
  expect(names(await listClusters(user, `filterId=${named}&search=hyp`))).toEqual(['hypervisor'])
})

test('a filter that is not the caller’s is not found', async () => {
  const organisationId = newId('org')
  const [owner, colleague] = [await member(organisationId), await member(organisationId)]
  const { id } = (await saveFilter(owner, {})).json
  for (const [who, filterId] of [
    [colleague, id],
    [await member(), id],
    [owner, newId('filter')],
    [owner, 'LAYOUT'],
    [owner, ''],
  ]) {
    const { status, json } = await listClusters(who, `filterId=${filterId}`)
    expect([status, json.error]).toEqual([404, 'filter_not_found'])
  }
})

test.each([
  ['another key', { status: 'Offline', site: 'x' }, 'clusters'],
  ['an unknown status', { status: 'Gone' }, 'clusters'],
  ['several values', { status: ['Offline'] }, 'clusters'],
  ['a search for no text', { search: 1 }, 'clusters'],
  ['another context', { status: 'Offline' }, 'jobs'],
])('a filter with %s cannot be applied to clusters', async (_, filter, context) => {
  const user = await member()
  const { id } = (await saveFilter(user, filter, { context })).json
  const { status, json } = await listClusters(user, `filterId=${id}`)
  expect([status, json.error]).toEqual([422, 'filter_not_applicable'])
})
