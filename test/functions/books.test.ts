import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { eventNames } from '@platform/contract/event'
import { eventCatalog } from '@platform/contract/event-catalog'
import { config } from '@platform/core/config'
import { newId } from '@platform/core/id'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { settle, tellAll } from '../core/support/books.ts'
import { posting, type Received, send } from '../support/event.ts'
import { logged } from '../support/output.ts'
import { bearer } from '../support/tokens.ts'
import { callerOf, started } from '../support/world.ts'
import { handlerOf } from './table.ts'
import { handler as consumeEvents } from '../../functions/queue/events.ts'

await vi.hoisted(() => import('../support/unlimited.ts'))
const assetsDir = mkdtempSync(join(tmpdir(), 'assets-'))
beforeAll(async () => {
  config.PLAT_ASSETS_DIR = assetsDir
  await started()
})
afterAll(() => rmSync(assetsDir, { recursive: true }))

const path = '/api/v1/platform/audit'

/** Somebody who may do everything in an organisation of their own. */
async function administrator() {
  const organisationId = newId('org')
  const headers = await bearer(['PlatformAdmin'], organisationId)
  const audit = (query = '', method = 'GET'): Promise<Received> =>
    send(handlerOf('audit'), { method, target: `${path}${query}`, headers })
  const write = (body: unknown, more: Record<string, string> = {}): Promise<Received> =>
    send(handlerOf('audit'), posting(path, body, { ...headers, ...more }))
  return { organisationId, headers, audit, write }
}

/** What the queue of events holds, as its consumer gets it. */
async function messages(): Promise<{ messageId: string; body: string }[]> {
  const request = new ReceiveMessageCommand({ QueueUrl: config.PLAT_QUEUE_EVENTS, MaxNumberOfMessages: 10 })
  const { Messages = [] } = await new SQSClient().send(request)
  return Messages.map(({ MessageId = '', Body = '' }) => ({ messageId: MessageId, body: Body }))
}

const change = { action: 'change.approved', resource: 'clus_1', detail: 'By the board.\nTwo lines.' }

test('an extra entry is accepted, and joins the chain when its message is consumed', async () => {
  const { audit, write, organisationId } = await administrator()
  expect(await write(change)).toMatchObject({ status: 204, text: '' })
  expect((await audit()).json).toEqual({ items: [], totalCount: 0, page: 1, pageSize: 20 })
  const Records = await messages()
  expect(Records.map(({ body }) => JSON.parse(body))).toContainEqual({ organisationId })
  expect(await consumeEvents({ Records })).toEqual({ batchItemFailures: [] })
  const { json } = await audit()
  expect(json).toMatchObject({ totalCount: 1, items: [{ ...change, extra: true, seq: 1, address: '192.0.2.1' }] })
})

test('an extra entry that is sent again with its key is written once', async () => {
  const { audit, write, organisationId } = await administrator()
  const key = { 'Idempotency-Key': 'once' }
  const [first, second] = [await write(change, key), await write(change, key)]
  expect([first.status, second.status, second.headers['idempotency-replayed']]).toEqual([204, 204, 'true'])
  expect(await write({ ...change, detail: 'Another' }, key)).toMatchObject({ status: 422 })
  await settle(organisationId)
  expect((await audit()).json.totalCount).toBe(1)
})

test.each([
  [{ ...change, action: '' }, '/action'],
  [{ ...change, action: 'x'.repeat(101) }, '/action'],
  [{ ...change, resource: 'two\nlines' }, '/resource'],
  [{ ...change, detail: 'x'.repeat(2001) }, '/detail'],
  [{ ...change, detail: 'bell \u0007' }, '/detail'],
  [{ ...change, detail: 7 }, '/detail'],
  [{ action: 'a', resource: 'b' }, '/detail'],
])('the entry %j is refused at %s', async (body, pointer) => {
  const { status, json } = await (await administrator()).write(body)
  expect([status, json.error, json.details[0].path]).toEqual([400, 'validation_failed', pointer])
})

test.each([
  'from=yesterday',
  'to=2026-02-30T00:00:00Z',
  'from=2026-01-01',
  'page=0',
  'pageSize=101',
  `actor=${'x'.repeat(41)}`,
])('the audit trail cannot be asked for %s', async (query) => {
  expect(await (await administrator()).audit(`?${query}`)).toMatchObject({ status: 400 })
})

/** A time as it is written an hour east of Greenwich. */
const zoned = (ms: number): string => encodeURIComponent(new Date(ms + 3_600_000).toISOString().replace('Z', '+01:00'))

test('filters by time take ISO times of any zone', async () => {
  const { audit, write, organisationId } = await administrator()
  await write(change)
  await settle(organisationId)
  const at = Date.parse((await audit()).json.items[0].at)
  const count = async (query: string) => (await audit(`?${query}`)).json.totalCount
  expect(await count(`from=${zoned(at)}`)).toBe(1)
  expect(await count(`to=${zoned(at)}`)).toBe(0)
  expect(await count(`action=change.approved&from=${zoned(at)}&to=${zoned(at + 1)}`)).toBe(1)
  expect(await count(`action=change.approved&from=${zoned(at + 1)}`)).toBe(0)
  expect(await count('from=0000-01-01T00:00:00Z&to=9999-12-31T23:59:59Z&resource=clus_1')).toBe(1)
})

test('nothing changes or removes an entry', async () => {
  const { audit, write, organisationId } = await administrator()
  await write(change)
  await settle(organisationId)
  const { id } = (await audit()).json.items[0]
  for (const method of ['PUT', 'PATCH', 'DELETE']) {
    for (const target of ['', `/${id}`, '/1']) expect((await audit(target, method)).status).toBe(404)
  }
  expect((await audit('/verify')).json).toMatchObject({ valid: true, entries: 1 })
})

test('an export is followed from part to part by its links', async () => {
  const { audit, organisationId } = await administrator()
  const told = Array.from({ length: 1005 }, (_, index) => ({ audit: { action: 'test.change', resource: `${index}` } }))
  await tellAll(await callerOf(organisationId), told)
  await settle(organisationId)
  for (const [format, type] of [
    ['ndjson', 'application/x-ndjson'],
    ['csv', 'text/csv; charset=utf-8'],
  ]) {
    const first = await audit(`/export?format=${format}`)
    expect([first.status, first.headers['content-type']]).toEqual([200, type])
    expect(first.headers['content-disposition']).toBe(`attachment; filename="audit.${format}"`)
    expect(first.headers['link']).toBe(`<${path}/export?format=${format}&after=1000>; rel="next"`)
    const [, next = ''] = /<([^>]+)>/.exec(first.headers['link'] ?? '') ?? []
    const second = await audit(next.slice(path.length))
    expect(second.headers).not.toHaveProperty('link')
    const lines = (first.text + second.text).split('\n').filter(Boolean)
    expect(lines).toHaveLength(format === 'csv' ? 1006 : 1005)
  }
  expect((await audit('/export')).headers['content-type']).toBe('application/x-ndjson')
  expect((await audit('/export?after=1005')).text).toBe('')
  for (const query of ['format=xml', 'after=-1', 'after=x', 'after=1e3', `after=${'9'.repeat(13)}`]) {
    expect((await audit(`/export?${query}`)).status).toBe(400)
  }
})

test('the chain is verified over HTTP, from any entry on', async () => {
  const { audit, write, organisationId } = await administrator()
  await write(change)
  await write(change)
  await settle(organisationId)
  const { json } = await audit('/verify')
  const [newest] = (await audit()).json.items
  expect(json).toEqual({ valid: true, entries: 2, headSeq: 2, headHash: newest.hash })
  expect((await audit('/verify?after=1')).json).toMatchObject({ valid: true, entries: 1 })
})

test('notifications are listed, marked and counted', async () => {
  const organisationId = newId('org')
  const user = await callerOf(organisationId, 'Operator')
  const { issueAccessToken } = await import('@platform/core/signing/access-token')
  const token = await issueAccessToken({ ...user, roles: ['Operator'] })
  const headers = { authorization: `Bearer ${token}` }
  const alert = (sessionId: string) => ({
    events: [{ name: 'session.reuse_detected' as const, subject: sessionId, data: { userId: user.userId, sessionId } }],
  })
  await tellAll({ kind: 'system', organisationId }, [alert(newId('sess')), alert(newId('sess')), alert(newId('sess'))])
  await settle(organisationId)

  const target = '/api/v1/notifications'
  const get = async (query = '') => send(handlerOf('notifications'), { target: `${target}${query}`, headers })
  const mark = async (body: unknown) =>
    send(handlerOf('notifications'), { ...posting(target, body, headers), method: 'PATCH' })
  const first = await get()
  expect(first.json).toMatchObject({ totalCount: 3, unreadCount: 3, page: 1, pageSize: 20 })
  expect(first.json.items[0]).toMatchObject({ type: 'SecurityAlert', read: false, severity: 'critical' })
  expect(await mark({ ids: [first.json.items[1].id] })).toMatchObject({ status: 204, text: '' })
  expect((await get('?unreadOnly=true&pageSize=1')).json).toMatchObject({ totalCount: 2, unreadCount: 2, pageSize: 1 })
  expect((await get('?unreadOnly=false')).json).toMatchObject({ totalCount: 3, unreadCount: 2 })
  expect((await mark({ ids: ['nothing'], markAllRead: true })).status).toBe(204)
  expect((await get('?unreadOnly=true')).json).toMatchObject({ items: [], totalCount: 0, unreadCount: 0 })
  for (const bad of [{ ids: 'all' }, { ids: [7] }, { markAllRead: 'yes' }, { ids: Array(1001).fill('x') }]) {
    expect((await mark(bad)).status).toBe(400)
  }
  expect((await get('?unreadOnly=maybe')).status).toBe(400)
})

test('a cluster’s timeline is read by its organisation and is not found by another', async () => {
  const { headers, organisationId } = await administrator()
  const registration = posting('/api/v1/clusters', { name: 'berlin-1', type: 'Hypervisor' }, headers)
  const { id } = (await send(handlerOf('clusters'), registration)).json
  await settle(organisationId)
  const timeline = (who: Record<string, string>) =>
    send(handlerOf('clusters'), { target: `/api/v1/clusters/${id}/timeline?pageSize=1`, headers: who })
  expect((await timeline(headers)).json).toMatchObject({ totalCount: 2, items: [{ kind: expect.any(String) }] })
  const stranger = await timeline(await bearer(['PlatformAdmin']))
  expect([stranger.status, stranger.json.error]).toEqual([404, 'cluster_not_found'])
})

test('the catalog describes every event with a schema that validators accept', async () => {
  const headers = await bearer(['Viewer'])
  const read = () => send(handlerOf('meta'), { target: '/api/v1/events/catalog', headers })
  await logged(async () => expect((await read()).status).toBe(500))
  writeFileSync(join(assetsDir, 'event-catalog.json'), JSON.stringify(eventCatalog()))
  const { status, json, headers: answered } = await read()
  expect([status, answered['cache-control']]).toEqual([200, 'private, max-age=60'])
  expect(json.items.map(({ type }: { type: string }) => type)).toEqual(eventNames.map((name) => `platform.${name}`))
  const ajv = new Ajv2020({ strict: true })
  addFormats.default(ajv)
  for (const { schema, description } of json.items) {
    expect(ajv.compile(schema)({})).toBe(false)
    expect(description).toMatch(/\.$/)
  }
  const schema = json.items.find(({ type }: { type: string }) => type === 'platform.cluster.deleted').schema
  expect(ajv.compile(schema)({ clusterId: newId('clus'), name: 'berlin-1', added: 'by a later release' })).toBe(true)
})
