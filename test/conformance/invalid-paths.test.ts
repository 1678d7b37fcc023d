import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, show } from './support/answer.ts'
import type { Contract } from './support/contract.ts'
import type { Schema } from './support/document.ts'
import { sendUnchanged } from './support/raw.ts'

/** Request targets that HTTP clients would normalise. */
const strangeTargets = [
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

const strangeValues = ['', '%00', '__proto__', '-1', '1e400', '%F0%9F%92%A5', '9'.repeat(400), '[]', '%', '%zz', '%ff']

/** Every query parameter of every operation, for resources that do not exist. */
const queryParameters = ({ operations }: Contract) =>
  operations.flatMap(({ method, template, parameters = [] }) =>
    parameters
      .filter((parameter) => parameter.in === 'query')
      .map(({ name, schema }) => ({ method, path: template.replaceAll(/\{\w+\}/g, 'nothing'), name, schema })),
  )

/** Whether the schema accepts any text, as for identifiers. */
const isFreeText = ({ type, enum: named, format, pattern }: Schema): boolean =>
  type === 'string' && (named ?? format ?? pattern) === undefined

test('rejects paths that decode to another path', async ({ platform }) => {
  const { accessToken } = await platform.signIn()
  for (const target of strangeTargets) {
    const answer = await sendUnchanged(platform, target, { authorization: `Bearer ${accessToken}` })
    expect(answer.status === 400 || answer.status === 404, `${target} was answered with ${answer.status}`).toBe(true)
  }
})

test('rejects identifiers of arbitrary characters or finds nothing', async ({ admin: client }) => {
  const identifiers = ['%F0%9F%92%A5', '%20', '.hidden', "'%20OR%201=1--", '$(id)', 'a'.repeat(200), 'a'.repeat(2000)]
  for (const id of identifiers) {
    for (const path of [`/api/v1/clusters/${id}`, `/api/v1/jobs/${id}`, `/api/v1/jobs/${id}/output`]) {
      const { status } = await client.get(path)
      expect(status === 400 || status === 404, `${path} was answered with ${status}`).toBe(true)
    }
  }
})

test('rejects invalid query parameters and ignores unknown ones', async ({ platform, admin: client }) => {
  const { contract } = platform
  for (const { method, path, name, schema } of queryParameters(contract)) {
    for (const value of isFreeText(schema) ? [] : strangeValues) {
      expectStatus(await client.send(method, `${path}?${name}=${value}`), 400, 'validation_failed')
    }
  }
  expectStatus(await client.get('/api/v1/clusters?__proto__=1&constructor=2&%00=3&%ff=4&pageSize=1'), 200)
})

test('finds nothing for an unknown value of a free-text parameter', async ({ platform, admin: client }) => {
  const { contract } = platform
  for (const { method, path, name, schema } of queryParameters(contract)) {
    for (const value of isFreeText(schema) ? strangeValues : []) {
      // An empty search matches everything.
      if (name === 'search' && value === '') continue
      const answer = await client.send(method, `${path}?${name}=${value}`)
      // Invalid callbacks redirect to a page that explains the error.
      const isRefused = [302, 400, 404].includes(answer.status)
      expect(isRefused || (answer.status === 200 && answer.body.items.length === 0), show(answer)).toBe(true)
    }
  }
})
