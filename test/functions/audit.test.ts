import { newId } from '@platform/core/id'
import { beforeAll, expect, test, vi } from 'vitest'
import { drainOutbox, writeOutboxRecords } from '../core/support/outbox.ts'
import { bearer, bootstrapPlatform, newCaller } from '../support/fixtures.ts'
import { jsonRequest, send } from '../support/request.ts'
import { handlerOf } from './operations.ts'

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
])('rejects the entry %j at %s', async (body, pointer) => {
  const { status, json } = await send(handlerOf('audit'), jsonRequest(path, body, await bearer(['PlatformAdmin'])))
  expect([status, json.error, json.details[0].path]).toEqual([400, 'validation_failed', pointer])
})

test('links the pages of an export', async () => {
  const organisationId = newId('org')
  const headers = await bearer(['PlatformAdmin'], organisationId)
  const read = (query: string) => send(handlerOf('audit'), { target: `${path}/export${query}`, headers })
  const audits = Array.from({ length: 1005 }, (_, index) => ({
    audit: { action: 'test.change', resource: `${index}` },
  }))
  await writeOutboxRecords(await newCaller(organisationId), audits)
  await drainOutbox(organisationId)
  for (const [format, type, lines] of [
    ['ndjson', 'application/x-ndjson', 1005],
    ['csv', 'text/csv; charset=utf-8', 1006],
  ]) {
    const next = `?format=${format}&after=1000`
    const [first, second] = [await read(`?format=${format}`), await read(next)]
    expect(first.headers).toMatchObject({
      'content-type': type,
      'content-disposition': `attachment; filename="audit.${format}"`,
      link: `<${path}/export${next}>; rel="next"`,
    })
    expect(second.headers).not.toHaveProperty('link')
    expect((first.text + second.text).split('\n').filter(Boolean)).toHaveLength(Number(lines))
  }
  expect((await read('?after=1005')).text).toBe('')
  for (const after of ['x', '1e3', '9'.repeat(13)]) expect((await read(`?after=${after}`)).status).toBe(400)
})
