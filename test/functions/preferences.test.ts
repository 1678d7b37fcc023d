import { expect, test, vi } from 'vitest'
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

const saveLayout = (user: Headers, layout: unknown, headers: Headers = {}): Promise<TestResponse> =>
  send(handler, { ...jsonRequest(layoutPath, { layout }, { ...user, ...headers }), method: 'PATCH' })
const saveFilter = (user: Headers, filter: unknown, headers: object = {}): Promise<TestResponse> =>
  send(handler, jsonRequest(filtersPath, { name: 'mine', context: 'clusters', filter, ...headers }, user))

test('matches If-Match against strong tags and *', async () => {
  const user = await newUser()
  const { etag = '' } = (await saveLayout(user, [widget('a')])).headers
  const changedResponse = await saveLayout(user, [widget('b')], { 'If-Match': `"other", ${etag}` })
  expect(changedResponse.status).toBe(204)
  for (const staleEtag of ['"other"', `W/${changedResponse.headers['etag']}`]) {
    const { status, json } = await saveLayout(user, [widget('c')], { 'If-Match': staleEtag })
    expect([staleEtag, status, json.error]).toEqual([staleEtag, 412, 'precondition_failed'])
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
  expect((await saveLayout(await newUser(), layout)).json.error).toBe('validation_failed')
})

const nestedObject = (levels: number): unknown => (levels === 1 ? {} : { x: nestedObject(levels - 1) })

test.each([
  ['17 levels', { filter: nestedObject(17) }],
  ['more than 16 KiB', { filter: { x: 'ä'.repeat(8192) } }],
  ['a name of 101 characters', { name: 'a'.repeat(101) }],
  ['a context of 51 characters', { context: 'a'.repeat(51) }],
])('rejects a filter with %s', async (_, body) => {
  expect((await saveFilter(await newUser(), {}, body)).json.error).toBe('validation_failed')
})

test('stores up to 100 filters of 16 KiB, newest first', async () => {
  const user = await newUser()
  const largestFilter = { x: 'a'.repeat(16_384 - '{"x":""}'.length) }
  expect((await saveFilter(user, nestedObject(16))).status).toBe(201)
  for (let round = 0; round < 9; round++) {
    const savedResponses = await Promise.all(Array.from({ length: 11 }, () => saveFilter(user, largestFilter)))
    expect(savedResponses.map(({ status }) => status)).toEqual(savedResponses.map(() => 201))
  }
  expect(await saveFilter(user, {})).toMatchObject({
    status: 409,
    json: { error: 'limit_reached', limit: 100, used: 100 },
  })
  const { json } = await send(handler, { target: filtersPath, headers: user })
  const ids: string[] = json.items.map(({ id }: { id: string }) => id)
  expect(ids).toHaveLength(100)
  expect(ids).toEqual(ids.toSorted().toReversed())
  await send(handler, { method: 'DELETE', target: `${filtersPath}/${ids[50]}`, headers: user })
  const responses = await Promise.all([saveFilter(user, {}), saveFilter(user, {})])
  expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409])
})
