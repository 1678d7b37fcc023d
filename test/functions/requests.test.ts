import { allowsUnknownInput, bodySchemaOf, mayOmitBody } from '@platform/contract/endpoint'
import * as Cluster from '@platform/core/clusters/cluster'
import { enroll } from '@platform/core/relays/enrollment'
import * as fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import type * as z from 'zod'
import { bearer, bootstrapPlatform, enrollRequest, newCaller, newRelayKey, relayToken } from '../support/fixtures.ts'
import { type TestRequest, type TestResponse, send } from '../support/request.ts'
import { isProtected, type Operation, operations, requestTo, takesBody, withParameters } from './operations.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))
await bootstrapPlatform()

const administrator = await bearer(['PlatformAdmin'])
const key = newRelayKey()
const sameOrigin = { 'sec-fetch-site': 'same-origin', origin: 'https://platform.example.com' }
const cluster = await Cluster.register(await newCaller(), { name: 'fuzzed', type: 'Hypervisor' })
const relay = await enroll({ ...enrollRequest(cluster.enrollmentToken), publicKey: key.wire })

async function sendPermitted(operation: Operation, parts: Partial<TestRequest>): Promise<TestResponse> {
  const { access, sameOriginOnly } = operation.endpoint
  const request = { ...requestTo(operation), ...parts }
  const relayHeaders = () =>
    relayToken(relay.relayId, key.privateKey, request.target, Buffer.from(parts.body ?? '').toString())
  const credentials = access === 'relay' ? await relayHeaders() : administrator
  const headers = { ...parts.headers, ...(isProtected(operation) && credentials), ...(sameOriginOnly && sameOrigin) }
  return send(operation.handler, { ...request, headers })
}

const jsonHeaders = { 'content-type': 'application/json' }
const bodyOperations = operations.filter(takesBody)

const fieldValue = fc.oneof(
  fc.constantFrom('a\0b', '\uffff', '', ' ', '\u202e', 'x'.repeat(5000), '__proto__', 'InvokeScript', 'Hypervisor'),
  fc.constantFrom(0, -1, 1.5, 2 ** 31, 2 ** 53 - 1, 5e-324, true, false, null),
  fc.jsonValue({ maxDepth: 4 }),
)

/** Includes the documented example, so that some bodies are valid. */
function valueOf(schema: z.ZodType): fc.Arbitrary<unknown> {
  const { example } = schema.meta() ?? {}
  return example === undefined ? fieldValue : fc.oneof(fieldValue, fc.constant(example))
}

test.each(bodyOperations)('$name never returns 500 for random bodies', async (operation) => {
  const fields = Object.entries<z.ZodType>(bodySchemaOf(operation.endpoint)?.shape ?? {})
  const values = Object.fromEntries(fields.map(([field, schema]) => [field, valueOf(schema)]))
  const property = fc.asyncProperty(fc.record(values, { requiredKeys: [] }), async (body) => {
    const { status } = await sendPermitted(operation, { headers: jsonHeaders, body: JSON.stringify(body) })
    expect(status).toBeLessThan(500)
  })
  // Shrinking a failure could exceed the time limit of the test.
  await fc.assert(property, { numRuns: 20, seed: 20261121, endOnFailure: true })
})

/** Browsers are redirected to the sign-in page for every error. */
const redirectsErrors = ({ endpoint }: Operation): boolean =>
  endpoint.responses[302] !== undefined && endpoint.errors === undefined
const withId = operations.filter(
  (operation) =>
    operation.endpoint.path.includes('{') && operation.endpoint.access !== 'relay' && !redirectsErrors(operation),
)
const invalidIds = ['x', ' ', 'ü', '\uffff', '🎉', '__proto__', 'constructor', '*', "' OR 1=1 --", 'x'.repeat(200)]

test.each(withId)('$name finds nothing for an invalid id', async (operation) => {
  for (const id of [...invalidIds, 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa'.toUpperCase()]) {
    const target = withParameters(operation.endpoint.path, () => id)
    expect((await sendPermitted(operation, { target })).status).toBe(
      takesBody(operation) && !mayOmitBody(operation.endpoint) ? 400 : 404,
    )
  }
})

const strictOperations = operations.filter(
  ({ endpoint }) => !allowsUnknownInput(endpoint) && endpoint.responses[302] === undefined,
)

test.each(strictOperations)('$name rejects an unknown parameter', async (operation) => {
  const target = `${requestTo(operation).target}?labell=env%3Dprod`
  const { status, json } = await sendPermitted(operation, {
    target,
    ...(takesBody(operation) && { headers: jsonHeaders, body: '{}' }),
  })
  expect([status, json.details[0]]).toMatchObject([400, { in: 'query', path: '/labell', code: 'unknown_parameter' }])
})

const changes = strictOperations.filter(({ method, endpoint }) => method !== 'GET' && !endpoint.validatesBody)

test.each(changes)('$name rejects an unknown member of the body', async (operation) => {
  const body = JSON.stringify({ organisationID: 'org_2' })
  const { status, json } = await sendPermitted(operation, { headers: jsonHeaders, body })
  expect(status).toBe(400)
  expect(json.details).toContainEqual(
    expect.objectContaining({ in: 'body', path: '/organisationID', code: 'unknown_field' }),
  )
})
