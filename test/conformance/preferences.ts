import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import type { Journeys } from './support/platform.ts'
import { until } from './support/until.ts'

const layoutPath = '/api/v1/users/me/dashboard-layout'
const filtersPath = '/api/v1/users/me/saved-filters'
const clustersPath = '/api/v1/clusters'

const widget = (widgetId: string) => ({ widgetId, x: 0, y: 1, w: 4, h: 3 })

export const preferences: Journeys = {
  'nobody has a dashboard layout until it is saved; then it is the user’s own': async (platform) => {
    const [{ client }, { client: other }] = [await platform.newPerson('Viewer'), await platform.newPerson('Viewer')]
    const none = await client.get(layoutPath)
    assert.deepEqual([none.status, none.text], [204, ''])
    for (const layout of [[widget('a'), widget('Ω 💥')], [], [widget('b')]]) {
      answered(await client.patch(layoutPath, { layout }), 204)
      const saved = answered(await client.get(layoutPath), 200)
      assert.deepEqual(saved.layout, layout)
      assert.ok(Date.parse(saved.updatedAt) > 0)
    }
    answered(await other.get(layoutPath), 204)
  },

  'with If-Match a layout is saved only over the one that the tag names': async (platform) => {
    const { client } = await platform.newPerson('Viewer')
    const save = (name: string, headers = {}) => client.patch(layoutPath, { layout: [widget(name)] }, headers)
    answered(await save('first', { 'if-match': '*' }), 412, 'precondition_failed')
    answered(await save('first'), 204)
    const etag = (await client.get(layoutPath)).headers.get('etag') ?? ''
    assert.match(etag, /^"[^"]+"$/)
    assert.equal((await client.get(layoutPath, { 'if-none-match': etag })).status, 304)
    answered(await save('second', { 'if-match': etag }), 204)
    assert.equal((await client.get(layoutPath, { 'if-none-match': etag })).status, 200)
    answered(await save('third', { 'if-match': etag }), 412, 'precondition_failed')
    const { headers, body } = await client.get(layoutPath)
    assert.deepEqual(body.layout, [widget('second')])
    assert.notEqual(headers.get('etag'), etag)
    answered(await save('last'), 204)
  },

  'of eight that save over one layout at once one wins': async (platform) => {
    const { client } = await platform.newPerson('Viewer')
    answered(await client.patch(layoutPath, { layout: [] }), 204)
    const etag = (await client.get(layoutPath)).headers.get('etag') ?? ''
    const names = Array.from({ length: 8 }, (_, index) => `widget ${index}`)
    const answers = await Promise.all(
      names.map((name) => client.patch(layoutPath, { layout: [widget(name)] }, { 'if-match': etag })),
    )
    const winners = names.filter((_, index) => answers[index]?.status === 204)
    assert.equal(winners.length, 1)
    for (const answer of answers) if (answer.status !== 204) answered(answer, 412, 'precondition_failed')
    assert.equal(answered(await client.get(layoutPath), 200).layout[0].widgetId, winners[0])
  },

  'a layout that is wrong is refused, and the saved one stays': async (platform) => {
    const { client } = await platform.newPerson('Viewer')
    answered(await client.patch(layoutPath, { layout: [widget('a')] }), 204)
    const wrong: [unknown, string][] = [
      [undefined, 'body /layout'],
      [{}, 'body /layout'],
      [[{ ...widget('a'), x: -1 }], 'body /layout/0/x'],
      [[{ ...widget('a'), w: 1.5 }], 'body /layout/0/w'],
      [[widget('a'), widget('')], 'body /layout/1/widgetId'],
    ]
    for (const [layout, field] of wrong) {
      assert.deepEqual(refusedFields(await client.patch(layoutPath, { layout })), [field])
    }
    assert.deepEqual(answered(await client.get(layoutPath), 200).layout, [widget('a')])
  },

  'filters are saved as they are, listed and removed': async (platform) => {
    const [{ client }, { client: other }] = [await platform.newPerson('Viewer'), await platform.newPerson('Viewer')]
    const filter = { status: 'Offline', nested: { list: [1, 0.5, null, true, 'Ω 💥'] }, constructor: '' }
    const saved = answered(await client.post(filtersPath, { name: 'mine', context: 'clusters', filter }), 201)
    assert.deepEqual([saved.name, saved.context, saved.filter], ['mine', 'clusters', filter])
    const second = answered(await client.post(filtersPath, { name: 'mine', context: 'jobs', filter: {} }), 201)
    assert.deepEqual(answered(await client.get(filtersPath), 200).items, [second, saved])
    assert.deepEqual(answered(await other.get(filtersPath), 200).items, [])
    answered(await other.delete(`${filtersPath}/${saved.id}`), 404, 'filter_not_found')
    answered(await client.delete(`${filtersPath}/${saved.id}`), 204)
    answered(await client.delete(`${filtersPath}/${saved.id}`), 404, 'filter_not_found')
    assert.deepEqual(answered(await client.get(filtersPath), 200).items, [second])
  },

  'a filter that is wrong is refused': async (platform) => {
    const { client } = await platform.newPerson('Viewer')
    const good = { name: 'mine', context: 'clusters', filter: {} }
    const wrong: [object, string[]][] = [
      [{}, ['body /name', 'body /context', 'body /filter']],
      [{ ...good, name: ' ' }, ['body /name']],
      [{ ...good, filter: [] }, ['body /filter']],
      [{ ...good, filter: 'status' }, ['body /filter']],
      [{ ...good, filter: { text: 'x'.repeat(17_000) } }, ['body /filter']],
    ]
    for (const [json, fields] of wrong) assert.deepEqual(refusedFields(await client.post(filtersPath, json)), fields)
    assert.deepEqual(answered(await client.get(filtersPath), 200).items, [])
  },

  'a saved filter narrows the list of clusters; other parameters win over it': async (platform) => {
    const { client } = await platform.newPerson('Viewer')
    const [cloud, local] = [await platform.newCluster({ type: 'CloudLocal' }), await platform.newCluster()]
    const filter = { type: 'CloudLocal', status: 'Pending' }
    const { id } = answered(await client.post(filtersPath, { name: 'mine', context: 'clusters', filter }), 201)
    const shows = (query: string, { id: clusterId }: any) =>
      until(`${query} shows ${clusterId}`, async () => {
        const { items, totalCount } = answered(await client.get(`${clustersPath}?pageSize=100&${query}`), 200)
        return items.some((item: any) => item.id === clusterId) && { items, totalCount }
      })
    const { items, totalCount } = await shows(`filterId=${id}`, cloud)
    assert.ok(items.every((item: any) => item.type === 'CloudLocal' && item.status === 'Pending'))
    assert.equal(Math.min(totalCount, 100), items.length)
    await shows(`filterId=${id}&type=Hypervisor`, local)
    const none = answered(await client.get(`${clustersPath}?filterId=${id}&status=Healthy&pageSize=100`), 200)
    assert.ok(none.items.every((item: any) => item.status === 'Healthy' && item.type === 'CloudLocal'))
  },

  'a filter of somebody else, or of another list, is not applied': async (platform) => {
    const [{ client }, { client: other }] = [await platform.newPerson('Viewer'), await platform.newPerson('Viewer')]
    const save = async (context: string, filter: object) =>
      answered(await client.post(filtersPath, { name: 'mine', context, filter }), 201).id
    const mine = await save('clusters', { status: 'Offline' })
    for (const id of ['nothing', 'filter_00000000000000000000000000', mine]) {
      answered(await other.get(`${clustersPath}?filterId=${id}`), 404, 'filter_not_found')
    }
    for (const id of [await save('jobs', {}), await save('clusters', { status: 'Gone' })]) {
      answered(await client.get(`${clustersPath}?filterId=${id}`), 422, 'filter_not_applicable')
    }
  },
}
