import { expect, test } from 'vitest'
import { headersOf, toResult } from '@platform/http/event'
import { browserOf, signInCookie } from '@platform/http/sign-in-cookie'

const event = (given: object) => ({
  rawPath: '/',
  rawQueryString: '',
  headers: { accept: '*/*' },
  isBase64Encoded: false,
  requestContext: { http: { method: 'GET', sourceIp: '192.0.2.1' } },
  ...given,
})

test('cookies of an answer stand beside its headers, each by itself', async () => {
  const response = new Response('', { headers: { 'x-a': 'b' } })
  for (const cookie of ['a=1; Expires=Sat, 21 Nov 2026 09:30:00 GMT', 'b=2'])
    response.headers.append('set-cookie', cookie)
  const { cookies, headers } = await toResult(response)
  expect(cookies).toEqual(['a=1; Expires=Sat, 21 Nov 2026 09:30:00 GMT', 'b=2'])
  expect(headers).not.toHaveProperty('set-cookie')
  expect(headers).toMatchObject({ 'x-a': 'b' })
  expect(await toResult(new Response(''))).not.toHaveProperty('cookies')
})

test('cookies of a request are found among its headers', () => {
  expect(headersOf(event({ cookies: ['a=1', 'b=2'] }))).toEqual({ accept: '*/*', cookie: 'a=1; b=2' })
  expect(headersOf(event({}))).toEqual({ accept: '*/*' })
})

test('the secret of a browser comes back as it was handed out, from a cookie that no neighbour can set', () => {
  const [, set = ''] = Object.entries(signInCookie('secret'))[0] ?? []
  expect(set).toMatch(/^__Host-.*; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=\d+$/)
  expect(browserOf({ cookie: `other=1; ${set.split(';')[0]}; plat_sign_in=x` })).toBe('secret')
  for (const cookie of [undefined, '', 'plat_sign_in=x', '__Secure-plat_sign_in=x', '__Host-plat_sign_in']) {
    expect(browserOf({ cookie })).toBe('')
  }
  expect(signInCookie(undefined)).toEqual({})
})
