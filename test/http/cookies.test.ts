import { expect, test } from 'vitest'
import { headersOf } from '@platform/http/request'
import { httpResponse, toResult } from '@platform/http/response'
import { browserOf, signInCookie } from '@platform/http/cookies'

const event = (given: object) => ({
  rawPath: '/',
  rawQueryString: '',
  headers: { accept: '*/*' },
  isBase64Encoded: false,
  requestContext: { http: { method: 'GET', sourceIp: '192.0.2.1' } },
  ...given,
})

test('the cookies of an answer stand beside its headers, each by itself', () => {
  const given = ['a=1; Expires=Sat, 21 Nov 2026 09:30:00 GMT', 'b=2']
  const { cookies, headers } = toResult(httpResponse(200, '', { 'x-a': 'b' }, given))
  expect(cookies).toEqual(given)
  expect(headers).toEqual({ 'x-a': 'b' })
  expect(toResult(httpResponse(200, '', {}))).not.toHaveProperty('cookies')
})

test.each(['a\r\nset-cookie: b=1', 'a\nb', 'a\u0000', '\u2028', '\u{1f36a}'])(
  'a header that would not arrive as it is is not sent: %j',
  (value) => {
    expect(() => httpResponse(302, null, { location: value })).toThrow('location')
    expect(() => httpResponse(200, '', {}, ['a=1', `b=${value}`])).toThrow('set-cookie')
  },
)

test('a body that is no short text goes out in Base64, and says so', () => {
  expect(toResult(httpResponse(200, Buffer.from('grüß'), {}))).toMatchObject({ body: 'grüß', isBase64Encoded: false })
  expect(toResult(httpResponse(200, Buffer.of(0xff, 0xd8), {}))).toMatchObject({ body: '/9g=', isBase64Encoded: true })
  const long = Buffer.alloc(64 * 1024 + 1, 'a')
  expect(toResult(httpResponse(200, long, {}))).toMatchObject({ body: long.toString('base64'), isBase64Encoded: true })
  expect(toResult(httpResponse(204, null, {}))).toMatchObject({ body: '', isBase64Encoded: false })
})

test('cookies of a request are found among its headers', () => {
  expect(headersOf(event({ cookies: ['a=1', 'b=2'] }))).toEqual({ accept: '*/*', cookie: 'a=1; b=2' })
  expect(headersOf(event({}))).toEqual({ accept: '*/*' })
})

test('the secret of a browser comes back as it was handed out, from a cookie that no neighbour can set', () => {
  const [set = ''] = signInCookie('secret')
  expect(set).toMatch(/^__Host-.*; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=\d+$/)
  expect(browserOf({ cookie: `other=1; ${set.split(';')[0]}; plat_sign_in=x` })).toBe('secret')
  for (const cookie of [undefined, '', 'plat_sign_in=x', '__Secure-plat_sign_in=x', '__Host-plat_sign_in']) {
    expect(browserOf({ cookie })).toBe('')
  }
  expect(signInCookie(undefined)).toEqual([])
})
