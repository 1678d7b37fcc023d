import * as fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { jsonRequest, send, type TestRequest } from '../support/request.ts'
import { handler } from './api.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_VALIDATE_RESPONSES: '1', PLAT_LOG_LEVEL: 'error' }))

const mebibyte = 1024 * 1024
const addThing = (body: unknown) => send(handler, jsonRequest('/things', body))
const sendAs = (type: string | undefined, body: TestRequest['body'] = '{"name": "abc"}') =>
  send(handler, {
    method: 'POST',
    target: '/things',
    headers: type === undefined ? {} : { 'content-type': type },
    body,
  })

test.each([
  '',
  '{"name": "abc"',
  'name=abc',
  '[]',
  'null',
  '"abc"',
  '1',
  '['.repeat(10_000),
  '{"name": "abc",}',
  '{"name": "abc"} // comment',
  '{"name": NaN}',
  '{"name": "a\nb"}',
  '\ufeff{"name": "abc"}',
])('rejects the body %j as invalid JSON', async (body) => {
  const { status, json } = await addThing(body)
  expect([status, json.error]).toEqual([400, 'invalid_json'])
})

test.each(['application/json', 'application/json;charset=UTF-8', 'Application/JSON ; charset="utf-8"'])(
  'reads a body of type %s',
  async (type) => {
    expect((await sendAs(type)).status).toBe(200)
  },
)

test.each([
  undefined,
  'text/plain',
  'application/x-www-form-urlencoded',
  'application/jsonp',
  'application/json-patch+json',
  'application/json; charset=utf-16',
  'application/json, text/plain',
])('rejects a body of type %s', async (type) => {
  const { status, json } = await sendAs(type)
  expect([status, json.error]).toEqual([400, 'unsupported_media_type'])
})

test('decodes Base64 and rejects bytes that are not UTF-8', async () => {
  const body = { name: 'grüße 🎉' }
  expect((await sendAs('APPLICATION/JSON; charset="utf-8"', JSON.stringify(body))).json.body).toEqual(body)
  const invalidBytes = Buffer.concat([Buffer.from('{"name": "abc'), Buffer.of(0xff), Buffer.from('"}')])
  expect((await sendAs('Application/Json ', invalidBytes)).json.error).toBe('invalid_json')
})

test('limits bodies to the size of the endpoint, by default 64 KiB if it is public, in decoded bytes', async () => {
  const ofSize = (bytes: number): string => `{"name": "abc", "payload": {}}${' '.repeat(bytes - 30)}`
  expect((await addThing(ofSize(4 * mebibyte))).status).toBe(200)
  const { status, json } = await addThing(ofSize(4 * mebibyte + 1))
  expect([status, json.error]).toEqual([413, 'payload_too_large'])
  expect((await addThing(`{"name": "abc", "x": "${'ü'.repeat(2 * mebibyte)}"}`)).status).toBe(413)
  const image = { method: 'POST', target: '/touch', headers: { 'content-type': 'image/png' } }
  expect((await send(handler, { ...image, body: new Uint8Array(mebibyte / 16) })).status).toBe(204)
  expect((await send(handler, { ...image, body: new Uint8Array(mebibyte / 16 + 1) })).status).toBe(413)
})

test('lets the gateway read a longer body only where the endpoint accepts one', async () => {
  const pending = (path: string) =>
    handler({
      rawPath: path,
      rawQueryString: '',
      headers: {},
      isBase64Encoded: false,
      isBodyPending: true,
      requestContext: { http: { method: 'POST', sourceIp: '192.0.2.1' } },
    })
  expect(await pending('/things')).toMatchObject({ statusCode: 100, headers: { 'x-body-limit': `${4 * mebibyte}` } })
  expect(await pending('/touch')).toMatchObject({ statusCode: 413 })
  expect(await pending('/nowhere')).toMatchObject({ statusCode: 404 })
})

test('passes an unvalidated body to its use case, or nothing if it is unreadable', async () => {
  const add = async (body: unknown) => (await send(handler, jsonRequest('/unchecked', body))).json
  expect(await add({ name: 1, other: 2 })).toEqual({ isPresent: true, body: { name: 1, other: 2 } })
  expect(await add(`{"a": ${'['.repeat(100)}${']'.repeat(100)}}`)).toMatchObject({ isPresent: true })
  for (const body of ['', '{', '[]', 'null', 'x']) expect(await add(body)).toEqual({ isPresent: false })
})

// The unit `binary` includes the same characters, but takes a second to create.
const codePoints = fc.nat(0x10_ff_ff).map((code) => String.fromCodePoint(code))

test('never returns 500 for random bytes', async () => {
  const types = fc.constantFrom('application/json', 'application/json; charset=utf-8', 'text/plain', 'image/png')
  const bodies = fc.oneof(fc.string({ unit: codePoints }), fc.json(), fc.uint8Array())
  const property = fc.asyncProperty(bodies, types, async (body, type) => {
    expect([200, 400]).toContain((await sendAs(type, body)).status)
  })
  await fc.assert(property, { numRuns: 500 })
})

const surrogate = String.raw`{"name": "abc\ud800"}`
const surrogateKey = String.raw`{"name": "abc", "payload": {"\udc00": 1}}`

test.each([
  ['{"name": "abc", "payload": {"n": 1e400}}', '/payload/n', 'unsafe_number'],
  ['{"name": "abc", "payload": {"n": [9007199254740993]}}', '/payload/n/0', 'unsafe_number'],
  ['{"name": "abc", "payload": {"n": -1e200}}', '/payload/n', 'unsafe_number'],
  ['{"name": "abc", "payload": {"a/b~c": 1e400}}', '/payload/a~1b~0c', 'unsafe_number'],
  ['{"name": "abc", "other": {"n": 1e999}}', '/other/n', 'unsafe_number'],
  [surrogate, '/name', 'invalid_unicode'],
  [surrogateKey, '/payload/\ufffd', 'invalid_unicode'],
  ['{"name": "abc", "__proto__": {"admin": true}}', '/__proto__', 'reserved_key'],
  ['{"name": "abc", "payload": {"a": {"__proto__": 1}}}', '/payload/a/__proto__', 'reserved_key'],
])('rejects the body %s at %s', async (body, path, code) => {
  const { status, json } = await addThing(body)
  expect([status, json.error]).toEqual([400, 'validation_failed'])
  expect(json.details).toEqual([{ in: 'body', path, code, message: expect.any(String) }])
})

test('limits nesting to twenty levels', async () => {
  const nestedBody = (levels: number) => `{"name": "abc", "payload": {"x": ${'['.repeat(levels)}${']'.repeat(levels)}}}`
  expect((await addThing(nestedBody(18))).status).toBe(200)
  for (const levels of [19, 1_000_000]) {
    const { status, json } = await addThing(nestedBody(levels))
    expect([status, json.error, json.details[0].code]).toEqual([400, 'validation_failed', 'too_deep'])
  }
})

test('returns at most fifty details, without values', async () => {
  const kinds = Array.from({ length: 80 }, () => 'c')
  expect((await addThing({ name: 'abc', kinds })).json.details).toHaveLength(50)
  const numbers = `[${Array.from({ length: 80 }, () => '1e400').join()}]`
  expect((await addThing(`{"name": "abc", "payload": {"n": ${numbers}}}`)).json.details).toHaveLength(50)
  const { text, json } = await addThing({ name: 7_654_321, kinds: ['a', 'hidden'], payload: [] })
  expect(json.details.map(({ path }: { path: string }) => path)).toEqual(['/name', '/kinds/1', '/payload'])
  expect(text).not.toMatch(/hidden|7654321/)
})

test('preserves valid JSON', async () => {
  const payload = { text: 'a\0b\uffff\u2028' }
  expect((await addThing({ name: 'abc', payload })).json.body.payload).toEqual(payload)
  const json = fc.object({
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
  const property = fc.asyncProperty(json, async (value) => {
    expect((await addThing({ name: 'abc', payload: value })).json.body.payload).toEqual(value)
  })
  await fc.assert(property, { numRuns: 200 })
})
