import assert from 'node:assert/strict'
import { answered, show } from './support/answer.ts'
import type { Contract } from './support/contract.ts'
import type { Schema } from './support/document.ts'
import type { Journeys } from './support/platform.ts'
import { sendUnchanged } from './support/raw.ts'

/** Request targets that a client library would tidy up before it sends them. */
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

/** Every parameter of every query, at a path that names nothing. */
const queryParameters = ({ operations }: Contract) =>
  operations.flatMap(({ method, template, parameters = [] }) =>
    parameters
      .filter((parameter) => parameter.in === 'query')
      .map(({ name, schema }) => ({ method, path: template.replaceAll(/\{\w+\}/g, 'nothing'), name, schema })),
  )

/** Whether any text is a value: an identifier, for one, is opaque. */
const isFreeText = ({ type, enum: named, format, pattern }: Schema): boolean =>
  type === 'string' && (named ?? format ?? pattern) === undefined

export const badPaths: Journeys = {
  'a path that means another place to whoever decodes it once more is refused, and leads nowhere': async (platform) => {
    const { accessToken } = await platform.signIn()
    for (const target of strangeTargets) {
      const answer = await sendUnchanged(platform, target, { authorization: `Bearer ${accessToken}` })
      assert.ok(answer.status === 400 || answer.status === 404, `${target} was answered with ${answer.status}`)
    }
  },

  'an identifier of any characters names nothing, or is refused': async (platform) => {
    const client = await platform.admin
    const identifiers = ['%F0%9F%92%A5', '%20', '.hidden', "'%20OR%201=1--", '$(id)', 'a'.repeat(200), 'a'.repeat(2000)]
    for (const id of identifiers) {
      for (const path of [`/api/v1/clusters/${id}`, `/api/v1/jobs/${id}`, `/api/v1/jobs/${id}/output`]) {
        const { status } = await client.get(path)
        assert.ok(status === 400 || status === 404, `${path} was answered with ${status}`)
      }
    }
  },

  'a query that is wrong is refused, one that nobody asked for is left alone': async ({ admin, contract }) => {
    const client = await admin
    for (const { method, path, name, schema } of queryParameters(contract)) {
      for (const value of isFreeText(schema) ? [] : strangeValues) {
        answered(await client.send(method, `${path}?${name}=${value}`), 400, 'validation_failed')
      }
    }
    answered(await client.get('/api/v1/clusters?__proto__=1&constructor=2&%00=3&%ff=4&pageSize=1'), 200)
  },

  'a query that may be any text finds nothing where it names nothing, or is refused': async ({ admin, contract }) => {
    const client = await admin
    for (const { method, path, name, schema } of queryParameters(contract)) {
      for (const value of isFreeText(schema) ? strangeValues : []) {
        // A search for nothing in particular finds everything.
        if (name === 'search' && value === '') continue
        const answer = await client.send(method, `${path}?${name}=${value}`)
        // A browser that comes back with nonsense is led to the page that says so.
        const isRefused = [302, 400, 404].includes(answer.status)
        assert.ok(isRefused || (answer.status === 200 && answer.body.items.length === 0), show(answer))
      }
    }
  },
}
