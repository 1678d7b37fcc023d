import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus } from './support/answer.ts'

const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const parent = '00f067aa0ba902b7'

/** Invalid `traceparent` headers. */
const badTraces = [
  'text',
  trace,
  `00-${trace}`,
  `00-${'0'.repeat(32)}-${parent}-01`,
  `00-${trace}-${'0'.repeat(16)}-01`,
  `ff-${trace}-${parent}-01`,
  `00-${trace.toUpperCase()}-${parent}-01`,
]

test('requires a token before it checks anything else', async ({ anonymous, platform }) => {
  const { contract } = platform
  const guarded = contract.operations.filter(({ security = [] }) => security.length > 0)
  expect(guarded.length).toBeGreaterThan(0)
  for (const { method, template } of guarded) {
    const path = template.replaceAll(/\{\w+\}/g, 'nothing')
    expectStatus(await anonymous.send(method, path, method === 'GET' ? {} : { body: '{' }), 401, 'unauthenticated')
  }
})

test('returns 404 as JSON for unknown paths and methods', async ({ platform }) => {
  const unknown = [
    ['POST', '/'],
    ['GET', '/api'],
    ['GET', '/api/v1'],
    ['GET', '/api/v2/clusters'],
    ['GET', '/api/v1/clusters/'],
    ['GET', '/API/V1/CLUSTERS'],
    ['PUT', '/api/v1/clusters'],
    ['OPTIONS', '/api/v1/clusters'],
    ['POST', '/health/live'],
    ['DELETE', '/api/v1/auth/me'],
    ['PATCH', '/no/such/path'],
  ] as const
  for (const client of [platform.anonymous, await platform.admin]) {
    for (const [method, path] of unknown) expectStatus(await client.send(method, path), 404, 'route_not_found')
  }
})

test('serves the portal to browsers on any path and to API clients at the root only', async ({
  anonymous,
  platform,
}) => {
  const { options } = platform
  const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
  for (const [path, headers, status] of [
    ['/', {}, 200],
    ['/', browser, 200],
    ['/dashboard', browser, 200],
    ['/no/such/page', browser, 404],
  ] as const) {
    // HTML pages are not part of the contract.
    const response = await fetch(`${options.baseUrl}${path}`, { headers })
    expect(response.status, path).toBe(status)
    expect(response.headers.get('content-type') ?? '', path).toMatch(/^text\/html\b/)
    expect(response.headers.get('content-security-policy') ?? '', path).toMatch(/frame-ancestors 'none'/)
  }
  for (const path of ['/dashboard', '/assets/none-00000000.js']) {
    expectStatus(await anonymous.get(path), 404, 'route_not_found')
  }
})

test('keeps the trace id of the caller', async ({ platform, admin }) => {
  const headers = { traceparent: `00-${trace}-${parent}-01` }
  const answers = [
    await platform.anonymous.get('/health/live', headers),
    await platform.anonymous.get('/api/v1/auth/me', headers),
    await platform.anonymous.get('/no/such/path', headers),
    await admin.get('/api/v1/clusters/nothing', headers),
  ]
  for (const answer of answers) expect(answer.headers.get('x-trace-id'), answer.path).toBe(trace)
})

test('replaces an invalid trace id by a new one', async ({ anonymous }) => {
  const seen = new Set<string | null>()
  for (const traceparent of badTraces) {
    const { headers } = await anonymous.get('/health/live', { traceparent })
    expect(headers.get('x-trace-id'), traceparent).not.toBe(trace)
    seen.add(headers.get('x-trace-id'))
  }
  expect(seen.size).toBe(badTraces.length)
})

test('returns the rate limit state to signed-in callers', async ({ admin }) => {
  const { headers } = await admin.get('/api/v1/sites')
  const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) =>
    Number(headers.get(`ratelimit-${name}`) ?? Number.NaN),
  )
  expect(Number(limit)).toBeGreaterThan(0)
  expect(Number(remaining)).toBeLessThan(Number(limit))
  expect(Number(remaining)).toBeGreaterThanOrEqual(0)
  expect(Number(reset)).toBeGreaterThanOrEqual(0)
})
