import { newId } from '@platform/core/id'
import { beforeAll, expect, test, vi } from 'vitest'
import { drainOutbox, writeOutboxRecords } from '../core/support/outbox.ts'
import { bearer, bootstrapPlatform, newCaller } from '../support/fixtures.ts'
import { jsonRequest, type TestResponse, send } from '../support/request.ts'
import { handlerOf } from './table.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))
beforeAll(bootstrapPlatform)

const path = '/api/v1/platform/audit'
const entry = { action: 'change.approved', resource: 'clus_1', detail: 'By the board.\nTwo lines.' }

test.each([
  [{ ...entry, action: '' }, '/action'],
  [{ ...entry, action: 'x'.repeat(101) }, '/action'],
  [{ ...entry, resource: 'two\nlines' }, '/resource'],
  [{ ...entry, detail: 'x'.repeat(2001) }, '/detail'],
  [{ ...entry, detail: 'bell \u0007' }, '/detail'],
  [{ ...entry, detail: 7 }, '/detail'],
])('rejects the extra entry %j and names %s', async (body, pointer) => {
  const { status, json } = await send(handlerOf('audit'), jsonRequest(path, body, await bearer(['PlatformAdmin'])))
  expect([status, json.error, json.details[0].path]).toEqual([400, 'validation_failed', pointer])
})

test('links the parts of an export, which together hold all entries', async () => {
  const organisationId = newId('org')
  const headers = await bearer(['PlatformAdmin'], organisationId)
  const read = (target: string): Promise<TestResponse> => send(handlerOf('audit'), { target, headers })
  const entries = Array.from({ length: 1005 }, (_, index) => ({
    audit: { action: 'test.change', resource: `${index}` },
  }))
  await writeOutboxRecords(await newCaller(organisationId), entries)
  await drainOutbox(organisationId)
  for (const [format, type] of [
    ['ndjson', 'application/x-ndjson'],
    ['csv', 'text/csv; charset=utf-8'],
  ]) {
    const next = `${path}/export?format=${format}&after=1000`
    const first = await read(`${path}/export?format=${format}`)
    expect(first.status).toBe(200)
    expect(first.headers).toMatchObject({
      'content-type': type,
      'content-disposition': `attachment; filename="audit.${format}"`,
      link: `<${next}>; rel="next"`,
    })
    const second = await read(next)
    expect(second.headers).not.toHaveProperty('link')
    const lines = (first.text + second.text).split('\n').filter(Boolean)
    expect(lines).toHaveLength(format === 'csv' ? 1006 : 1005)
  }
  expect((await read(`${path}/export`)).headers['content-type']).toBe('application/x-ndjson')
  expect((await read(`${path}/export?after=1005`)).text).toBe('')
  for (const after of ['x', '1e3', '9'.repeat(13)]) {
    expect((await read(`${path}/export?after=${after}`)).status).toBe(400)
  }
})
