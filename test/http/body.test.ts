import * as fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { jsonRequest, type TestResponse, send, type TestRequest } from '../support/request.ts'
import { handler } from './endpoints.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_VALIDATE_RESPONSES: '1', PLAT_LOG_LEVEL: 'error' }))

const ask = (sent: TestRequest): Promise<TestResponse> => send(handler, sent)
const json = { 'content-type': 'application/json' }
const mebibyte = 1024 * 1024
const withSize = (bytes: number): string => `{"name": "abc", "payload": {}}${' '.repeat(bytes - 30)}`

test.each([
  ['no body', { method: 'POST', target: '/things' }],
  ['an empty body', jsonRequest('/things', '')],
  ['half an object', jsonRequest('/things', '{"name": "abc"')],
  ['text', jsonRequest('/things', 'name=abc')],
  ['an array', jsonRequest('/things', '[]')],
  ['null', jsonRequest('/things', 'null')],
  ['a string', jsonRequest('/things', '"abc"')],
  ['a number', jsonRequest('/things', '1')],
  ['ten thousand open brackets', jsonRequest('/things', '['.repeat(10_000))],
  ['a trailing comma', jsonRequest('/things', '{"name": "abc",}')],
  ['a comment', jsonRequest('/things', '{"name": "abc"} // comment')],
  ['NaN', jsonRequest('/things', '{"name": NaN}')],
  ['a control character in a string', jsonRequest('/things', '{"name": "a\nb"}')],
  ['a byte order mark', jsonRequest('/things', '\ufeff{"name": "abc"}')],
])('a body that is %s answers 400 invalid_json', async (_, sent) => {
  const { status, json } = await ask(sent)
  expect([status, json.error]).toEqual([400, 'invalid_json'])
})

test.each([
  ['application/json'],
  ['application/json; charset=utf-8'],
  ['application/json;charset=UTF-8'],
  ['Application/JSON ; charset="utf-8"'],
])('a body of type %s is read', async (type) => {
  expect((await ask({ ...jsonRequest('/things', { name: 'abc' }), headers: { 'content-type': type } })).status).toBe(
    200,
  )
})

test.each([
  [undefined],
  ['text/plain'],
  ['application/x-www-form-urlencoded'],
  ['multipart/form-data; boundary=x'],
  ['application/jsonp'],
  ['application/json-patch+json'],
  ['application/json; charset=utf-16'],
  ['application/json, text/plain'],
])('a body of type %s answers 400 unsupported_media_type', async (type) => {
  const { status, json } = await ask({
    ...jsonRequest('/things', { name: 'abc' }),
    headers: type === undefined ? {} : { 'content-type': type },
  })
  expect([status, json.error]).toEqual([400, 'unsupported_media_type'])
})

test('bytes that are not UTF-8 answer 400 invalid_json', async () => {
  const event = { method: 'POST', target: '/things', headers: { 'content-type': 'application/json;charset=utf-8' } }
  const body = Buffer.concat([Buffer.from('{"name": "abc'), Buffer.of(0xff), Buffer.from('"}')])
  // The gateway hands over text, where such bytes have become U+FFFD; a gateway that hands over bytes meets the refusal.
  const { status, json } = await ask({ ...event, headers: { 'content-type': 'Application/Json ' }, body })
  expect([status, json.error]).toEqual([400, 'invalid_json'])
})

test('a body in Base64 is read like any other', async () => {
  const body = JSON.stringify({ name: 'grüße 🎉' })
  const sent = { method: 'POST', target: '/things', headers: { 'content-type': 'APPLICATION/JSON; charset="utf-8"' } }
  const { json } = await ask({ ...sent, body })
  expect(json.body).toEqual({ name: 'grüße 🎉' })
})

test('a body of 4 MiB is read, one byte more answers 413', async () => {
  expect((await ask(jsonRequest('/things', withSize(4 * mebibyte)))).status).toBe(200)
  const { status, json } = await ask(jsonRequest('/things', withSize(4 * mebibyte + 1)))
  expect([status, json.error]).toEqual([413, 'payload_too_large'])
})

test('bytes count, not characters, and not the bytes of their Base64', async () => {
  const text = `{"name": "abc", "x": "${'ü'.repeat(2 * mebibyte)}"}`
  expect((await ask(jsonRequest('/things', text))).status).toBe(413)
  const bytes = new Uint8Array(4 * mebibyte)
  const image = { method: 'POST', target: '/touch', headers: { 'content-type': 'image/png' } }
  expect((await ask({ ...image, body: bytes })).status).toBe(204)
  expect((await ask({ ...image, body: new Uint8Array(4 * mebibyte + 1) })).status).toBe(413)
})

test('a body that the verb checks arrives as it is, and as nothing where it cannot be read', async () => {
  expect((await ask(jsonRequest('/checked', { name: 1, other: 2 }))).json).toEqual({
    isGiven: true,
    body: { name: 1, other: 2 },
  })
  const deep = `{"a": ${'['.repeat(100)}${']'.repeat(100)}}`
  expect((await ask(jsonRequest('/checked', deep))).json).toMatchObject({ isGiven: true })
  const unreadable = ['', '{', '[]', 'null']
  for (const body of unreadable) expect((await ask(jsonRequest('/checked', body))).json).toEqual({ isGiven: false })
  expect((await ask({ method: 'POST', target: '/checked', headers: json, body: 'x' })).json).toEqual({ isGiven: false })
})

test('whatever bytes are sent, the answer is never a 500', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.string({ unit: 'binary' }), fc.json(), fc.uint8Array()),
      fc.constantFrom('application/json', 'application/json; charset=utf-8', 'text/plain', 'image/png'),
      async (body, type) => {
        const { status } = await ask({ method: 'POST', target: '/things', headers: { 'content-type': type }, body })
        expect([200, 400]).toContain(status)
      },
    ),
    { numRuns: 500 },
  )
})
