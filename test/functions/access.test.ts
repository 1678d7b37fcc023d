import { expect, test, vi } from 'vitest'
import { messageOf } from '@platform/contract/errors'
import { shiftClock } from '@platform/core/clock'
import { type Received, send } from '../support/event.ts'
import { bearer } from '../support/tokens.ts'
import { started } from '../support/world.ts'
import { handlerOf, isProtected, requestTo, type Row, rows } from './table.ts'
import { publicPortal } from '../support/browser-session.ts'
import { writes } from './writes.ts'

await vi.hoisted(() => import('../support/unlimited.ts'))

await started()

const listSites = (headers: Record<string, string>): Promise<Received> =>
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
const [head = '', claims = '', signature = ''] = token.split('.')
const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

test.each([
  ['an empty header', ''],
  ['no scheme', token],
  ['another scheme', `Basic ${token}`],
  ['two tokens, as the gateway joins them', `Bearer ${token},Bearer ${token}`],
  ['two tokens in one', `Bearer ${token} ${token}`],
  ['no token', 'Bearer '],
  ['what is no token', 'Bearer abc'],
  ['a token without a signature', `Bearer ${head}.${claims}.`],
  ['the algorithm none', `Bearer ${base64({ alg: 'none', typ: 'at+jwt' })}.${claims}.`],
  ['another algorithm', `Bearer ${base64({ alg: 'HS256', typ: 'at+jwt', kid: 'x' })}.${claims}.${signature}`],
  ['changed claims', `Bearer ${head}.${base64({ sub: 'user', org: 'org', sid: 's', roles: [] })}.${signature}`],
  ['a changed signature', `Bearer ${head}.${claims}.${signature.slice(1)}A`],
  ['ten thousand letters', `Bearer ${'a'.repeat(10_000)}`],
])('%s in Authorization answers 401', async (_, authorization) => {
  const { status, json } = await send(handlerOf('auth'), { target: '/api/v1/auth/me', headers: { authorization } })
  expect([status, json.error]).toEqual([401, 'unauthenticated'])
})

test('the scheme is read without regard to case', async () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
    const headers = { Authorization: `${scheme} ${token}` }
    expect((await listSites(headers)).status).toBe(200)
  }
})

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
    const elsewhere = { ...publicPortal, origin: 'https://other.example.com', 'sec-fetch-site': 'same-site' }
    const { status, json, headers } = await send(row.handler, requestTo(row, { ...elsewhere, ...cookie }))
    expect([status, json]).toEqual([
      403,
      { error: 'cross_origin_request', message: messageOf('cross_origin_request'), traceId: headers['x-trace-id'] },
    ])
    expect(writes()).toBe(before)
  },
)

test.each(rows.filter(isForUsers))('$name by the cookie of a browser is as good as by a token', async (row) => {
  const answer = await send(row.handler, requestTo(row, { ...publicPortal, ...cookie }))
  expect([401, 403], answer.text).not.toContain(answer.status)
})

test.each(rows.filter(({ endpoint }) => endpoint.access === 'relay'))('$name takes no cookie', async (row) => {
  expect((await send(row.handler, requestTo(row, { ...publicPortal, ...cookie }))).status).toBe(401)
})

test('of several things wrong a caller hears the first: token, then permission, then the request', async () => {
  const broken = { method: 'POST', target: '/api/v1/clusters', body: '{broken' }
  const asText = { 'content-type': 'text/plain' }
  const errorFor = async (headers: Record<string, string>) =>
    (await send(handlerOf('clusters'), { ...broken, headers })).json.error
  expect(await errorFor(asText)).toBe('unauthenticated')
  expect(await errorFor({ ...(await bearer(['Viewer'])), ...asText })).toBe('forbidden')
  const operator = await bearer(['ClusterAdmin'])
  expect(await errorFor({ ...operator, ...asText })).toBe('unsupported_media_type')
  expect(await errorFor({ ...operator, 'content-type': 'application/json' })).toBe('invalid_json')
})
