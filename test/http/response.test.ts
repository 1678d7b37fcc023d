import { createRoute, json } from '@platform/contract/endpoint'
import { headersOf } from '@platform/http/request'
import { httpResponse, toResult } from '@platform/http/response'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { request } from './api.ts'

test('returns each cookie beside the headers', () => {
  const cookies = ['a=1; Expires=Sat, 21 Nov 2026 09:30:00 GMT', 'b=2']
  expect(toResult(httpResponse(200, '', { 'x-a': 'b' }, cookies))).toMatchObject({ cookies, headers: { 'x-a': 'b' } })
  expect(toResult(httpResponse(200, '', {}))).not.toHaveProperty('cookies')
})

test.each(['a\r\nset-cookie: b=1', 'a\nb', 'a\u0000', '\u2028', '\u{1f36a}'])(
  'rejects the header value %j',
  (value) => {
    expect(() => httpResponse(302, null, { location: value })).toThrow('location')
    expect(() => httpResponse(200, '', {}, ['a=1', `b=${value}`])).toThrow('set-cookie')
  },
)

test.each([204, 205, 304])('rejects a body with the status %i', (status) => {
  expect(() => httpResponse(status, 'text', {})).toThrow(`${status}`)
  expect(() => httpResponse(status, Buffer.of(1), {})).toThrow(`${status}`)
  expect(httpResponse(status, null, {}).body).toBeNull()
})

test('encodes bytes in Base64, except short text', () => {
  const longBody = Buffer.alloc(64 * 1024 + 1, 'a')
  for (const [body, text, isBase64Encoded] of [
    [Buffer.from('grüß'), 'grüß', false],
    [Buffer.of(0xff, 0xd8), '/9g=', true],
    [longBody, longBody.toString('base64'), true],
    ['a\ud83cb €', 'a\ufffdb €', false],
  ] as const) {
    expect(toResult(httpResponse(200, body, {}))).toMatchObject({ body: text, isBase64Encoded })
  }
})

test('adds the cookies of a request to its headers', () => {
  const requestContext = { http: { method: 'GET', sourceIp: '192.0.2.1' } }
  const event = { rawPath: '/', rawQueryString: '', headers: { accept: '*/*' }, isBase64Encoded: false, requestContext }
  expect(headersOf({ ...event, cookies: ['a=1', 'b=2'] })).toEqual({ accept: '*/*', cookie: 'a=1; b=2' })
  expect(headersOf(event)).toEqual({ accept: '*/*' })
})

test('reports a missing body as an internal error', async () => {
  const responses = { 200: { description: 'A body', content: json(z.unknown()) } }
  const common = { method: 'get', path: '/empty', access: 'public', tags: ['Test'], summary: 'Test' } as const
  const handler = serve(route(createRoute({ ...common, responses }), () => result(200, undefined)))
  expect(await request('/empty', handler)).toMatchObject({ status: 500, json: { error: 'internal_error' } })
})
