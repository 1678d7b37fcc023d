import { expect, test, vi } from 'vitest'
import { messageOf } from '@platform/contract/errors'
import { shiftClock } from '@platform/core/clock'
import { type TestResponse, send } from '../support/request.ts'
import { bearer, bootstrapPlatform } from '../support/fixtures.ts'
import { handlerOf, isProtected, requestTo, type Row, rows } from './table.ts'
import { publicPortalHeaders } from '../support/browser-session.ts'
import { writes } from './writes.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))

await bootstrapPlatform()

const listSites = (headers: Record<string, string>): Promise<TestResponse> =>
  send(handlerOf('sites'), { target: '/api/v1/sites', headers })

const challenge = (access: string): string => (access === 'relay' ? 'Relay' : 'Bearer')

test.each(rows.filter(isProtected))('$name without a token answers 401', async (row) => {
  const { status, headers, json } = await send(row.handler, requestTo(row))
  expect(status).toBe(401)
  expect(headers['www-authenticate']).toBe(challenge(row.endpoint.access))
  expect(json).toEqual({
    error: 'unauthenticated',
    message: messageOf('unauthenticated'),
    traceId: headers['x-trace-id'],
  })
})

const token = (await bearer(['OrgAdmin'])).authorization.slice('Bearer '.length)

test('an expired token answers 401 token_expired, whether the process knew it or not', async () => {
  const [known, unknown] = await Promise.all([bearer(['Viewer']), bearer(['Viewer'])])
  expect((await listSites(known)).status).toBe(200)
  shiftClock(16 * 60_000)
  try {
    for (const headers of [known, unknown]) {
      const { status, json } = await listSites(headers)
      expect([status, json.error]).toEqual([401, 'token_expired'])
    }
  } finally {
    shiftClock(-16 * 60_000)
  }
})

test.each(rows.filter(isProtected))('$name as a caller of the other kind answers 401', async (row) => {
  const scheme = row.endpoint.access === 'relay' ? await bearer(['PlatformAdmin']) : { authorization: `Relay ${token}` }
  expect((await send(row.handler, requestTo(row, scheme))).status).toBe(401)
})

const isForUsers = (row: Row): boolean => isProtected(row) && row.endpoint.access !== 'relay'
const cookie = { cookie: `__Host-plat_access=${(await bearer(['PlatformAdmin'])).authorization.split(' ')[1]}` }

test.each(rows.filter(isForUsers))(
  '$name by the cookie of a browser, as another page has it sent, answers 403',
  async (row) => {
    const before = writes()
    const elsewhere = { ...publicPortalHeaders, origin: 'https://other.example.com', 'sec-fetch-site': 'same-site' }
    const { status, json, headers } = await send(row.handler, requestTo(row, { ...elsewhere, ...cookie }))
    expect([status, json]).toEqual([
      403,
      { error: 'cross_origin_request', message: messageOf('cross_origin_request'), traceId: headers['x-trace-id'] },
    ])
    expect(writes()).toBe(before)
  },
)

test.each(rows.filter(isForUsers))('$name by the cookie of a browser is as good as by a token', async (row) => {
  const answer = await send(row.handler, requestTo(row, { ...publicPortalHeaders, ...cookie }))
  expect([401, 403], answer.text).not.toContain(answer.status)
})

test.each(rows.filter(({ endpoint }) => endpoint.access === 'relay'))('$name takes no cookie', async (row) => {
  expect((await send(row.handler, requestTo(row, { ...publicPortalHeaders, ...cookie }))).status).toBe(401)
})
