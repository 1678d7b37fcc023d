import { expect, test } from 'vitest'
import { PlatformError, platformError } from '@platform/core/error'
import {
  cookieOf,
  accessCookie,
  sessionCookies,
  clearedCookies,
  refreshCookie,
  renewedCookies,
} from '@platform/http/cookies'
import { refuseCrossOrigin } from '@platform/http/same-origin'

type Headers = Record<string, string>

const portal = { host: 'platform.example.com', origin: 'https://platform.example.com' }
const here = { host: '127.0.0.1:8080', origin: 'http://127.0.0.1:8080' }

/** What a request is refused with; 'nothing' where it is let through. */
function refusalOf(headers: Headers, method = 'POST'): string {
  const http = { method, sourceIp: '192.0.2.1' }
  try {
    refuseCrossOrigin({ rawPath: '/', rawQueryString: '', headers, isBase64Encoded: false, requestContext: { http } })
    return 'nothing'
  } catch (error) {
    return error instanceof PlatformError ? error.code : String(error)
  }
}

test.each<[string, Headers]>([
  ['a page of the portal', { ...portal, 'sec-fetch-site': 'same-origin' }],
  ['a page on this machine', { ...here, 'sec-fetch-site': 'same-origin' }],
  ['an older browser', portal],
  ['an older browser on this machine', here],
  ['an older browser, by name', { host: 'localhost:8080', origin: 'http://localhost:8080' }],
  ['an older browser, by IPv6', { host: '[::1]:8080', origin: 'http://[::1]:8080' }],
  ['a host with the port that its scheme means', { ...portal, host: 'platform.example.com:443' }],
  ['a host in capitals', { ...portal, host: 'Platform.Example.COM' }],
  ['a proxy that names another host', { ...portal, host: '10.0.0.7:8080', 'sec-fetch-site': 'same-origin' }],
])('what %s sends is let through', (_, headers) => {
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
    expect(refusalOf(headers, method)).toBe('nothing')
})

test.each<[string, Headers]>([
  ['another site', { ...portal, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }],
  ['a sibling domain', { ...portal, origin: 'https://other.example.com', 'sec-fetch-site': 'same-site' }],
  ['another port of this machine', { ...here, origin: 'http://127.0.0.1:9999', 'sec-fetch-site': 'same-site' }],
  ['another site, in an older browser', { ...portal, origin: 'https://evil.example' }],
  ['another port, in an older browser', { ...here, origin: 'http://127.0.0.1:9999' }],
  ['another name of this machine', { ...here, origin: 'http://localhost:8080' }],
  ['a name that begins like ours', { ...portal, origin: 'https://platform.example.com.evil.example' }],
  ['a name that ends like ours', { ...portal, origin: 'https://evil-platform.example.com' }],
  ['a page in a sandbox', { host: portal.host, origin: 'null' }],
  ['a page that lies in Origin alone', { ...portal, 'sec-fetch-site': 'cross-site' }],
  ['a word that is none', { ...portal, 'sec-fetch-site': 'same-origin,cross-site' }],
  ['an origin that is none', { host: portal.host, origin: 'platform.example.com' }],
])('what %s sends is refused, whatever the method', (_, headers) => {
  for (const method of ['GET', 'HEAD', 'POST', 'DELETE'])
    expect(refusalOf(headers, method)).toBe('cross_origin_request')
})

test('where nothing tells the origin reading is let through, and nothing else', () => {
  for (const [method, refusal] of [
    ['GET', 'nothing'],
    ['HEAD', 'nothing'],
    ['POST', 'cross_origin_request'],
    ['DELETE', 'cross_origin_request'],
  ]) {
    expect(refusalOf({ host: portal.host }, method)).toBe(refusal)
    // As an address that somebody has typed.
    expect(refusalOf({ host: portal.host, 'sec-fetch-site': 'none' }, method)).toBe(refusal)
  }
})

test.each([
  'http://platform.example.com',
  'http://192.168.1.5:8080',
  'http://evil.example:8080',
  'http://localhost.evil.example',
  'http://127.0.0.1.evil.example',
])('a page that came by plain HTTP over a network, %s, is told to use https', (origin) => {
  const headers = { host: new URL(origin).host, origin }
  expect(refusalOf(headers)).toBe('https_required')
  expect(refusalOf({ ...headers, 'sec-fetch-site': 'same-origin' })).toBe('https_required')
})

const tokens = { accessToken: 'a.b.c', refreshToken: 'sess_1.x.y', expiresIn: 900, tokenType: 'Bearer' as const }

test('the tokens go into cookies that no script, no other site and no sibling domain gets at, for as long as they live', () => {
  expect(sessionCookies(portal, tokens)).toMatchObject({
    status: 200,
    body: { expiresIn: 900 },
    cookies: [
      '__Host-plat_access=a.b.c; Secure; HttpOnly; SameSite=Strict; Path=/; Max-Age=900',
      '__Host-plat_refresh=sess_1.x.y; Secure; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800',
    ],
  })
})

test.each(['http://127.0.0.1:8080', 'http://localhost:8080', 'http://[::1]:8080', 'http://plat.localhost'])(
  'over plain HTTP on this machine, %s, they are such that every browser keeps them',
  (origin) => {
    expect(sessionCookies({ origin, host: new URL(origin).host }, tokens).cookies).toEqual([
      'plat_access=a.b.c; HttpOnly; SameSite=Strict; Path=/; Max-Age=900',
      'plat_refresh=sess_1.x.y; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800',
    ])
  },
)

const names = (cookies: readonly string[] = []) => cookies.map((cookie) => cookie.split('=')[0])

test.each([portal, here])('cookies are taken away under the names that they were given under: $origin', (headers) => {
  const { status, cookies } = clearedCookies(headers)
  expect(status).toBe(204)
  expect(names(cookies)).toEqual(names(sessionCookies(headers, tokens).cookies))
  for (const cookie of cookies ?? []) expect(cookie).toMatch(/^[\w-]+=; .*Path=\/; Max-Age=0$/)
})

test('a plain cookie counts on this machine only: elsewhere a neighbour may have put it there', () => {
  const both = 'plat_access=plain; plat_refresh=plain; __Host-plat_access=own; __Host-plat_refresh=own'
  for (const read of [accessCookie, refreshCookie]) {
    expect(read({ ...portal, cookie: both })).toBe('own')
    expect(read({ ...portal, cookie: 'plat_access=plain; plat_refresh=plain' })).toBe('')
    expect(read({ host: portal.host, cookie: 'plat_access=plain; plat_refresh=plain' })).toBe('')
    expect(read({ host: portal.host, cookie: both })).toBe('own')
    // A proxy with TLS that names another host: where the browser tells its origin that counts, else the better name.
    expect(read({ ...portal, host: here.host, cookie: both })).toBe('own')
    expect(read({ host: here.host, cookie: both })).toBe('own')
    // A page that only reads does not tell its origin, but which page it is.
    const page = { host: here.host, referer: `${portal.origin}/clusters` }
    expect(read({ ...page, cookie: both })).toBe('own')
    expect(read({ ...page, cookie: 'plat_access=plain; plat_refresh=plain' })).toBe('')
    expect(read({ host: here.host, referer: `${here.origin}/clusters`, cookie: both })).toBe('plain')
    expect(read({ ...here, cookie: both })).toBe('plain')
    expect(read({ host: here.host, cookie: 'plat_access=plain; plat_refresh=plain' })).toBe('plain')
  }
})

test('of cookies whose names resemble each other the right one is found', () => {
  expect(cookieOf({ cookie: 'xplat_access=1; plat_access_2=2;plat_access=3=; plat_access=4' }, 'plat_access')).toBe(
    '3=',
  )
  expect(cookieOf({}, 'plat_access')).toBe('')
})

test('a refusal takes the cookies away where the tokens are worth nothing any more, and leaves them otherwise', async () => {
  const failing = (error: Error) =>
    renewedCookies(portal, async () => {
      throw error
    })
  await expect(failing(platformError('invalid_refresh_token'))).rejects.toMatchObject({
    code: 'invalid_refresh_token',
    extra: { cookies: clearedCookies(portal).cookies },
  })
  const away = platformError('database_unavailable')
  await expect(failing(away)).rejects.toBe(away)
  expect(away.extra).toEqual({})
})
