import * as fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { jsonRequest, type TestResponse, send, type TestRequest } from '../support/request.ts'
import { handler } from './endpoints.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_VALIDATE_RESPONSES: '1', PLAT_LOG_LEVEL: 'error' }))

const ask = (sent: TestRequest): Promise<TestResponse> => send(handler, sent)
const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
const withDepth = (levels: number): TestRequest =>
  jsonRequest('/things', `{"name": "abc", "payload": {"x": ${nested(levels)}}}`)

test.each([
  ['a number beyond a double', '{"name": "abc", "payload": {"n": 1e400}}', '/payload/n', 'unsafe_number'],
  ['an integer beyond 2^53', '{"name": "abc", "payload": {"n": [9007199254740993]}}', '/payload/n/0', 'unsafe_number'],
  ['a huge integer', '{"name": "abc", "payload": {"n": -1e200}}', '/payload/n', 'unsafe_number'],
  ['a lone surrogate', String.raw`{"name": "abc\ud800"}`, '/name', 'invalid_unicode'],
  [
    'a lone surrogate in a name',
    String.raw`{"name": "abc", "payload": {"\udc00": 1}}`,
    '/payload/\ufffd',
    'invalid_unicode',
  ],
  ['__proto__', '{"name": "abc", "__proto__": {"admin": true}}', '/__proto__', 'reserved_key'],
  ['__proto__ inside', '{"name": "abc", "payload": {"a": {"__proto__": 1}}}', '/payload/a/__proto__', 'reserved_key'],
  ['a field that is not declared', '{"name": "abc", "other": {"n": 1e999}}', '/other/n', 'unsafe_number'],
])('%s answers 400 and is named by a JSON Pointer', async (_, body, path, code) => {
  const { status, json } = await ask(jsonRequest('/things', body))
  expect([status, json.error]).toEqual([400, 'validation_failed'])
  expect(json.details).toEqual([{ in: 'body', path, code, message: expect.any(String) }])
})

test('a body may be twenty deep and no deeper, however deep it is', async () => {
  expect((await ask(withDepth(18))).status).toBe(200)
  for (const levels of [19, 10_000, 1_000_000]) {
    const { status, json } = await ask(withDepth(levels))
    expect(status).toBe(400)
    expect(json).toMatchObject({ error: 'validation_failed', details: [{ code: 'too_deep' }] })
  }
})

test('at most fifty details are given', async () => {
  const kinds = Array.from({ length: 80 }, () => 'c')
  expect((await ask(jsonRequest('/things', { name: 'abc', kinds }))).json.details).toHaveLength(50)
  const numbers = `[${Array.from({ length: 80 }, () => '1e400').join()}]`
  expect(
    (await ask(jsonRequest('/things', `{"name": "abc", "payload": {"n": ${numbers}}}`))).json.details,
  ).toHaveLength(50)
})

test('details name each field that must change, and repeat no value', async () => {
  const { text, json } = await ask(jsonRequest('/things', { name: 7_654_321, kinds: ['a', 'hidden'], payload: [] }))
  expect(json.details.map(({ path }: { path: string }) => path)).toEqual(['/name', '/kinds/1', '/payload'])
  expect(text).not.toMatch(/hidden|7654321/)
})

test('a name with a slash or a tilde is escaped in the pointer', async () => {
  const { json } = await ask(jsonRequest('/things', '{"name": "abc", "payload": {"a/b~c": 1e400}}'))
  expect(json.details[0].path).toBe('/payload/a~1b~0c')
})

test('NUL and other odd text passes where a schema lets it', async () => {
  const payload = { text: 'a\0b\uffff\u2028' }
  expect((await ask(jsonRequest('/things', { name: 'abc', payload }))).json.body.payload).toEqual(payload)
})

test('JSON within the bounds passes unchanged', async () => {
  const portable = fc.object({
    maxDepth: 10,
    key: fc.string({ unit: 'grapheme' }).filter((name) => name !== '__proto__'),
    values: [
      fc.string({ unit: 'grapheme' }),
      fc.maxSafeInteger(),
      fc.boolean(),
      fc.constant(null),
      fc.double({ noNaN: true, min: -1e15, max: 1e15 }).map((number) => (Object.is(number, -0) ? 0 : number)),
    ],
  })
  await fc.assert(
    fc.asyncProperty(portable, async (payload) => {
      const { json } = await ask(jsonRequest('/things', { name: 'abc', payload }))
      expect(json.body.payload).toEqual(payload)
    }),
    { numRuns: 200 },
  )
})
