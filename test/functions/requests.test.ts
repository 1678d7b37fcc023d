import { bodySchemaOf } from '@platform/contract/endpoint'
import * as fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import type * as z from 'zod'
import * as Cluster from '@platform/core/clusters/cluster'
import { enroll } from '@platform/core/relays/enrollment'
import { jsonRequest, type TestResponse, send, type TestRequest } from '../support/request.ts'
import { bearer, newCaller, enrollRequest, newRelayKey, relayToken, bootstrapPlatform } from '../support/fixtures.ts'
import { isProtected, requestTo, type Row, rows, takesBody, withParameters } from './table.ts'
import { sampled } from '../support/long.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))

await bootstrapPlatform()
const administrator = await bearer(['PlatformAdmin'])
const key = newRelayKey()
/** What the browser says of a request that a page of the platform makes. */
const fromPage = { 'sec-fetch-site': 'same-origin', origin: 'https://platform.example.com' }
const cluster = await Cluster.register(await newCaller(), { name: 'fuzzed', type: 'Hypervisor' })
const relay = await enroll({ ...enrollRequest(cluster.enrollmentToken), publicKey: key.wire })

/** A request by somebody who may make it. */
async function sendAllowed(row: Row, sent: Partial<TestRequest>): Promise<TestResponse> {
  const { access } = row.endpoint
  const request = { ...requestTo(row), ...sent }
  const identity =
    access === 'relay'
      ? await relayToken(relay.relayId, key.privateKey, request.target, Buffer.from(sent.body ?? '').toString())
      : administrator
  const headers = { ...sent.headers, ...(isProtected(row) && identity), ...(row.endpoint.sameOriginOnly && fromPage) }
  return send(row.handler, { ...request, headers })
}

const asJson = { 'content-type': 'application/json' }
const nested = (levels: number): string => `{"x": ${'['.repeat(levels)}${']'.repeat(levels)}}`
const withBody = rows.filter(takesBody)

const unreadable: [name: string, sent: Partial<TestRequest>, error: string][] = [
  ['no body', {}, 'invalid_json'],
  ['an empty body', { headers: asJson, body: '' }, 'invalid_json'],
  ['half an object', { headers: asJson, body: '{"name"' }, 'invalid_json'],
  ['an array', { headers: asJson, body: '[{}]' }, 'invalid_json'],
  ['null', { headers: asJson, body: 'null' }, 'invalid_json'],
  ['ten thousand brackets', { headers: asJson, body: '['.repeat(10_000) }, 'invalid_json'],
  ['text', { headers: { 'content-type': 'text/plain' }, body: '{}' }, 'unsupported_media_type'],
  [
    'a form',
    { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'a=b' },
    'unsupported_media_type',
  ],
  ['JSON without a type', { body: '{}' }, 'unsupported_media_type'],
  ['ten thousand levels', { headers: asJson, body: nested(10_000) }, 'validation_failed'],
  ['a number beyond a double', { headers: asJson, body: '{"x": 1e400}' }, 'validation_failed'],
  ['an unsafe integer', { headers: asJson, body: '{"x": 9007199254740993}' }, 'validation_failed'],
  ['a lone surrogate', { headers: asJson, body: String.raw`{"x": "\ud800"}` }, 'validation_failed'],
  ['__proto__', { headers: asJson, body: '{"__proto__": {"x": 1}}' }, 'validation_failed'],
]

test.each(
  withBody.flatMap((row) => unreadable.map(([what, sent, error]) => ({ name: row.name, row, what, sent, error }))),
)('$name with $what is refused', async ({ row, sent, error }) => {
  const { status, json } = await sendAllowed(row, sent)
  const expected = row.endpoint.validatesBody ? refusedByVerb(error) : [400, error]
  expect([status, json.error]).toEqual(expected)
})

/** Where the verb checks the body (D2), one that cannot be read is none, and an object is asked for its token first. */
function refusedByVerb(error: string): [number, string] {
  return error === 'validation_failed' ? [422, 'initial_admin_token_invalid'] : [400, 'invalid_json']
}

test.each(sampled(rows, 10))('$name with a body above 4 MiB answers 413, whoever sends it', async (row) => {
  const body = ' '.repeat(4 * 1024 * 1024 + 1)
  const { status, json } = await send(row.handler, { ...requestTo(row), headers: asJson, body })
  expect([status, json.error]).toEqual([413, 'payload_too_large'])
})

/** Values that a field of the right name may hold, right and wrong ones. */
const fieldValue = fc.oneof(
  fc.constantFrom('a\0b', '\uffff', '', ' ', '\u202e', 'x'.repeat(5000), '__proto__', 'InvokeScript', 'Hypervisor'),
  fc.constantFrom(0, -1, 1.5, 2 ** 31, 2 ** 53 - 1, 5e-324, true, false, null),
  fc.jsonValue({ maxDepth: 4 }),
)

/** Of these and the field's documented example, so that some bodies get through. */
function valueOf(schema: z.ZodType): fc.Arbitrary<unknown> {
  const { example } = schema.meta() ?? {}
  return example === undefined ? fieldValue : fc.oneof(fieldValue, fc.constant(example))
}

test.each(withBody)('$name answers no body with a 500', async (row) => {
  const fields = Object.entries<z.ZodType>(bodySchemaOf(row.endpoint)?.shape ?? {})
  const values = Object.fromEntries(fields.map(([field, schema]) => [field, valueOf(schema)]))
  const body = fc.record(values, { requiredKeys: [] })
  const isRefusal = fc.asyncProperty(body, async (fieldsSent) => {
    const sent = jsonRequest(row.endpoint.path, fieldsSent)
    const { status } = await sendAllowed(row, { headers: asJson, body: String(sent.body) })
    expect(status).toBeLessThan(500)
  })
  // A body that fails is told as it is: to look for a smaller one may take longer than a test, and would hide it.
  await fc.assert(isRefusal, { numRuns: 40, seed: 20261121, endOnFailure: true })
})

/** Browsers are sent back to where people sign in, whatever is wrong. */
const isRedirect = ({ endpoint }: Row): boolean =>
  endpoint.responses[302] !== undefined && endpoint.errors === undefined
const withId = rows.filter(
  (row) => row.endpoint.path.includes('{') && row.endpoint.access !== 'relay' && !isRedirect(row),
)
const oddIds = ['x', ' ', 'ü', '\uffff', '🎉', '__proto__', 'constructor', 'null', '*', "' OR 1=1 --", 'x'.repeat(200)]

test.each(withId)('$name about an id that is none answers 404, or 400 where its body is none', async (row) => {
  for (const id of [...oddIds, 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa'.toUpperCase()]) {
    const target = withParameters(row.endpoint.path, () => id)
    expect((await sendAllowed(row, { target })).status).toBe(takesBody(row) ? 400 : 404)
  }
})

test.each(sampled(rows))('$name with a path that hides a traversal answers 400 invalid_path', async (row) => {
  const hidden = [
    '/..%2f..%2fhealth%2flive',
    '/%2e%2e/%2e%2e',
    '/%252e%252e',
    '%5c..%5cx',
    '%00',
    '%0d%0aX:%20y',
    '//x',
  ]
  for (const tail of hidden) {
    const target = `${requestTo(row).target}${tail}`
    const { status, json } = await send(row.handler, { method: row.method, target })
    expect([target, status, json.error]).toEqual([target, 400, 'invalid_path'])
  }
})

test.each(sampled(rows))('$name by another method, or below its path, answers 404', async (row) => {
  const { method, handler } = row
  const { target } = requestTo(row)
  // A parameter of another path may take what is a word in this one.
  const takes = ({ endpoint: { path } }: Row): boolean =>
    new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(target)
  const served = rows.filter(takes).map((other) => other.method)
  const others = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND']
  const wrong = others.filter((other) => !served.includes(other))
  const calls = [...wrong.map((other) => ({ method: other, target })), { method, target: `${target}/a/b/c` }]
  for (const call of [...calls, { method, target: `${target}/` }]) {
    const { status, json } = await send(handler, call)
    expect([call, status, json.error]).toEqual([call, 404, 'route_not_found'])
  }
})

const badPages = [
  '0',
  '-1',
  '1.5',
  '1e2',
  'x',
  '',
  ' 1',
  '01',
  '100000001',
  '99999999999999999999',
  '1%00',
  'NaN',
  '%ff',
]

test.each(['page', 'pageSize'].flatMap((name) => [...badPages, '1&page=1&pageSize=1'].map((value) => [name, value])))(
  'GET /api/v1/clusters?%s=%s answers 400 and names it',
  async (name, value) => {
    const row = rows.find(({ name }) => name === 'GET /api/v1/clusters') as Row
    const { status, json } = await sendAllowed(row, { target: `/api/v1/clusters?${name}=${value}` })
    expect([status, json.error]).toEqual([400, 'validation_failed'])
    expect(json.details).toContainEqual(expect.objectContaining({ in: 'query', path: `/${name}` }))
  },
)
