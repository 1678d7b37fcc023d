import assert from 'node:assert/strict'
import { answered } from './support/answer.ts'
import type { Journeys } from './support/platform.ts'

const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const parent = '00f067aa0ba902b7'

/** Texts that are no `traceparent` of W3C Trace Context. */
const badTraces = [
  'text',
  trace,
  `00-${trace}`,
  `00-${'0'.repeat(32)}-${parent}-01`,
  `00-${trace}-${'0'.repeat(16)}-01`,
  `ff-${trace}-${parent}-01`,
  `00-${trace.toUpperCase()}-${parent}-01`,
]

export const everyAnswer: Journeys = {
  'an operation that needs a token refuses a call without one before it looks at anything else': async ({
    anonymous,
    contract,
  }) => {
    const guarded = contract.operations.filter(({ security = [] }) => security.length > 0)
    assert.ok(guarded.length > 0)
    for (const { method, template } of guarded) {
      const path = template.replaceAll(/\{\w+\}/g, 'nothing')
      answered(await anonymous.send(method, path, method === 'GET' ? {} : { body: '{' }), 401, 'unauthenticated')
    }
  },

  'an unknown path or method answers 404 as JSON, signed in or not': async (platform) => {
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
      for (const [method, path] of unknown) answered(await client.send(method, path), 404, 'route_not_found')
    }
  },

  'a browser gets the portal wherever it goes, a client of the API at the root alone': async ({
    anonymous,
    options,
  }) => {
    const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
    for (const [path, headers, status] of [
      ['/', {}, 200],
      ['/', browser, 200],
      ['/dashboard', browser, 200],
      ['/no/such/page', browser, 404],
    ] as const) {
      // A page is no answer of the API: the contract says nothing of it.
      const response = await fetch(`${options.baseUrl}${path}`, { headers })
      assert.equal(response.status, status, path)
      assert.match(response.headers.get('content-type') ?? '', /^text\/html\b/, path)
      assert.match(response.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/, path)
    }
    for (const path of ['/dashboard', '/assets/none-00000000.js']) {
      answered(await anonymous.get(path), 404, 'route_not_found')
    }
  },

  'a trace that the caller began goes on': async (platform) => {
    const headers = { traceparent: `00-${trace}-${parent}-01` }
    const admin = await platform.admin
    const answers = [
      await platform.anonymous.get('/health/live', headers),
      await platform.anonymous.get('/api/v1/auth/me', headers),
      await platform.anonymous.get('/no/such/path', headers),
      await admin.get('/api/v1/clusters/nothing', headers),
    ]
    for (const answer of answers) assert.equal(answer.headers.get('x-trace-id'), trace, answer.path)
  },

  'what is no trace is replaced by a fresh one': async ({ anonymous }) => {
    const seen = new Set<string | null>()
    for (const traceparent of badTraces) {
      const { headers } = await anonymous.get('/health/live', { traceparent })
      assert.notEqual(headers.get('x-trace-id'), trace, traceparent)
      seen.add(headers.get('x-trace-id'))
    }
    assert.equal(seen.size, badTraces.length)
  },

  'answers to a signed-in caller tell where the caller stands with the rate limit': async (platform) => {
    const { headers } = await (await platform.admin).get('/api/v1/sites')
    const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) =>
      Number(headers.get(`ratelimit-${name}`) ?? Number.NaN),
    )
    assert.ok(Number(limit) > 0 && Number(remaining) < Number(limit) && Number(remaining) >= 0)
    assert.ok(Number(reset) >= 0)
  },
}
