import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { text as readText } from 'node:stream/consumers'
import { assert, expect } from 'vitest'
import { sampled } from '../support/long.ts'
import { describeResponse, expectStatus, parseJson } from './support/answer.ts'
import type { Client } from './support/client.ts'
import type { Contract } from './support/contract.ts'
import {
  ambiguousValues,
  type DeriveInvalid,
  type InvalidBody,
  notAnObject,
  otherContentType,
  tooLarge,
  unusualText,
  wrongType,
} from './support/corpus.ts'
import type { Operation, Schema } from './support/document.ts'
import type { Platform } from './support/platform.ts'
import { sampleOf } from './support/sample.ts'
import { test } from './support/test.ts'

/** Request targets that HTTP clients would normalise. */
const unusualTargets = [
  '/api/v1/../../etc/passwd',
  '/api/v1/%2e%2e/%2e%2e/%2e%2e/etc/passwd',
  '/api/v1/clusters/..%2f..%2f..%2fetc%2fpasswd',
  '/api/v1/clusters/%2e%2e%2fjobs',
  '/api/v1/clusters/%252e%252e%252fjobs',
  '/relay/..%2fopenapi.json',
  '/relay/%2e%2e/relay/relay.mjs',
  String.raw`/api/v1/clusters/..\..\health`,
  '/api/v1/clusters/..%5c..%5chealth',
  '//api/v1/clusters',
  '/api//v1/clusters',
  '/./api/v1/clusters',
  '/api/v1/clusters/%00',
  '/api/v1/clusters/%0d%0aset-cookie:%20a=b',
  '/api/v1/clusters%3fstatus=Healthy',
  '/api/v1/clusters%23top',
  '/api/v1/clusters/%ff',
  '/api/v1/clusters/%zz',
  '/api/v1/clusters/%',
  '/api/v1/clusters/%ed%a0%80',
  '/api/v1/jobs/__proto__',
  '/api/v1/jobs/constructor',
  `/api/v1/jobs/${'x'.repeat(4000)}`,
]

const unusualValues = ['', '%00', '__proto__', '-1', '1e400', '%F0%9F%92%A5', '9'.repeat(400), '[]', '%', '%zz', '%ff']

/** Returns a request for each query parameter of each operation with each value. */
const queryCases = ({ operations }: Contract) =>
  operations.flatMap(({ method, template, parameters = [] }) =>
    parameters
      .filter((parameter) => parameter.in === 'query')
      .flatMap(({ name, schema }) =>
        unusualValues.map((value) => ({
          method,
          name,
          isFreeText: isFreeText(schema),
          target: `${template.replaceAll(/\{\w+\}/g, 'nothing')}?${name}=${value}`,
        })),
      ),
  )

const isFreeText = ({ type, enum: named, format, pattern }: Schema): boolean =>
  type === 'string' && (named ?? format ?? pattern) === undefined

/** Sends a GET request with an unchanged target: `fetch` would resolve dots and backslashes. */
async function sendTarget({ options, contract }: Platform, target: string, authorization: string): Promise<number> {
  const { protocol, hostname, port, pathname } = new URL(options.baseUrl)
  const request = (protocol === 'https:' ? httpsRequest : httpRequest)({
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port,
    path: pathname.replace(/\/$/, '') + target,
    headers: { authorization },
  })
  request.end()
  const [incoming]: IncomingMessage[] = await once(request, 'response')
  assert(incoming !== undefined)
  const text = await readText(incoming)
  const headers = new Headers(Object.entries(incoming.headersDistinct).map(([name, values]) => [name, String(values)]))
  const status = incoming.statusCode ?? 0
  contract.check({ method: 'GET', path: target, status, headers, text, body: parseJson(text) })
  return status
}

test('rejects paths that decode to another path', async ({ platform }) => {
  const { accessToken } = await platform.signIn()
  for (const target of unusualTargets) {
    expect([400, 404], target).toContain(await sendTarget(platform, target, `Bearer ${accessToken}`))
  }
})

test('rejects invalid and unknown query parameters', async ({ platform, admin: client }) => {
  const cases = queryCases(platform.contract).filter((each) => !each.isFreeText)
  for (const { method, target } of sampled(cases, 5))
    expectStatus(await client.send(method, target), 400, 'validation_failed')
  for (const query of ['__proto__=1', 'constructor=2', '%00=3', '%ff=4', 'Page=1'])
    expectStatus(await client.get(`/api/v1/clusters?${query}&pageSize=1`), 400, 'validation_failed')
})

test('finds nothing for an unknown value of a free-text parameter', async ({ platform, admin: client }) => {
  const cases = queryCases(platform.contract).filter((each) => each.isFreeText)
  for (const { method, name, target } of sampled(cases, 10)) {
    // The parameters `search` and `name` match part of a name, which may contain any of the values.
    const isPart = ['search', 'name'].includes(name)
    const response = await client.send(method, target)
    // Invalid callbacks redirect to a page that explains the error.
    const isRejected = [302, 400, 404].includes(response.status)
    expect(
      isRejected || (response.status === 200 && (isPart || response.body.items.length === 0)),
      describeResponse(response),
    ).toBe(true)
  }
})

/** Returns a function that selects the client for an operation. Operations without a permission get a separate user. */
async function clientsByScheme(platform: Platform): Promise<(operation: Operation) => Client> {
  const { client: relay } = await platform.newRelay()
  const { client: user } = await platform.newUser('Viewer')
  const admin = platform.anonymous.withToken((await platform.signIn()).accessToken)
  return ({ security: [required = {}] = [], 'x-permission': permission }) => {
    if ('relayToken' in required) return relay
    if (!('bearer' in required)) return platform.anonymous
    return permission === undefined ? user : admin
  }
}

let clients: ReturnType<typeof clientsByScheme> | undefined

const pathOf = (template: string): string => template.replaceAll(/\{\w+\}/g, 'nothing')

async function violationsOf(client: Client, { method, template }: Operation, bad: InvalidBody): Promise<string[]> {
  const { body, type = 'application/json' } = bad
  const description = `to ${type} ${String(body).slice(0, 200)}`
  try {
    const response = await client.attempt(method, pathOf(template), { body, headers: { 'content-type': type } })
    return response.status >= 400 && response.status < 500 ? [] : [`${describeResponse(response)} ${description}`]
  } catch (error) {
    return [`${error instanceof Error ? error.message : String(error)} ${description}`]
  }
}

const kinds: [kind: string, deriveInvalid: DeriveInvalid][] = [
  ['a missing body and a body that is not a JSON object', notAnObject],
  ['a body of another content type', otherContentType],
  ['fields of the wrong type', wrongType],
  ['text with control characters and lone surrogates', unusualText],
  ['out-of-range numbers, deep nesting and __proto__', ambiguousValues],
  ['a body above 4 MiB', tooLarge],
]

/** A body of only nulls is valid for the settings of an organisation, because null unsets a setting. */
const isValid = ({ template }: Operation, { body }: InvalidBody): boolean =>
  template === '/api/v1/organisation/settings' && /^\{("\w+":null,?)+\}$/.test(String(body))

test.for(kinds)('every operation rejects %s', async ([, deriveInvalid], { platform }) => {
  const { contract } = platform
  const clientOf = await (clients ??= clientsByScheme(platform))
  const violations: string[] = []
  for (const operation of contract.operations) {
    const schema = operation.requestBody?.content['application/json']?.schema
    const bodies = schema === undefined ? [] : sampled(deriveInvalid(sampleOf(contract.document, schema)), 24)
    for (const invalidBody of bodies.filter((each) => !isValid(operation, each)))
      violations.push(...(await violationsOf(clientOf(operation), operation, invalidBody)))
  }
  expect(violations).toEqual([])
})

test('ignores an unexpected body, or rejects it when it is large', async ({ platform }) => {
  const clientOf = await (clients ??= clientsByScheme(platform))
  for (const operation of sampled(platform.contract.operations)) {
    if (operation.method === 'GET' || operation.requestBody !== undefined) continue
    for (const body of ['{', '['.repeat(10_000), 'x'.repeat(5_000_000)]) {
      const response = await clientOf(operation).attempt(operation.method, pathOf(operation.template), { body })
      expect(response.status, describeResponse(response)).toBeLessThan(500)
    }
  }
})
