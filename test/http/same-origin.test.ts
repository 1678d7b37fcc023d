import { expect, test } from 'vitest'
import { shiftClock } from '@platform/core/clock'
import { PlatformError, platformError } from '@platform/core/error'
import {
  accessCookie,
  browserSecretsOf,
  cookieOf,
  setSessionCookies,
  clearCookies,
  refreshCookie,
  renewCookies,
  signInCookies,
} from '@platform/http/cookies'
import { rejectCrossOrigin } from '@platform/http/same-origin'

type Headers = Record<string, string>

const portal = { host: 'platform.example.com', origin: 'https://platform.example.com' }
const localHeaders = { host: '127.0.0.1:8080', origin: 'http://127.0.0.1:8080' }

const publicUrl = 'https://public.example.com:8443/'

/** Returns the error code if the request is rejected, else 'none'. */
async function errorCodeOf(headers: Headers, method = 'POST'): Promise<string> {
  const http = { method, sourceIp: '192.0.2.1' }
  const event = { rawPath: '/', rawQueryString: '', headers, isBase64Encoded: false, requestContext: { http } }
  try {
    await rejectCrossOrigin(event, async () => publicUrl)
    return 'none'
  } catch (error) {
    return error instanceof PlatformError ? error.code : String(error)
  }
}

test.each<[string, Headers]>([
  ['a page of the portal', { ...portal, 'sec-fetch-site': 'same-origin' }],
  ['a page on this machine', { ...localHeaders, 'sec-fetch-site': 'same-origin' }],
  ['an older browser', portal],
  ['an older browser on this machine', localHeaders],
  ['an older browser, by name', { host: 'localhost:8080', origin: 'http://localhost:8080' }],
  ['an older browser, by IPv6', { host: '[::1]:8080', origin: 'http://[::1]:8080' }],
  ['a host with the default port', { ...portal, host: 'platform.example.com:443' }],
  ['a host in capitals', { ...portal, host: 'Platform.Example.COM' }],
  [
    'the public URL behind a proxy that removes the port',
    { host: 'public.example.com', origin: publicUrl.slice(0, -1) },
  ],
  ['the public URL behind a proxy that names another host', { host: '10.0.0.7', origin: publicUrl.slice(0, -1) }],
  ['a proxy that names another host', { ...portal, host: '10.0.0.7:8080', 'sec-fetch-site': 'same-origin' }],
])('accepts requests of %s', async (_, headers) => {
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
    expect(await errorCodeOf(headers, method)).toBe('none')
})

test.each<[string, Headers]>([
  ['another site', { ...portal, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }],
  ['a sibling domain', { ...portal, origin: 'https://other.example.com', 'sec-fetch-site': 'same-site' }],
  ['another port of this machine', { ...localHeaders, origin: 'http://127.0.0.1:9999', 'sec-fetch-site': 'same-site' }],
  ['another site, in an older browser', { ...portal, origin: 'https://evil.example' }],
  ['another port, in an older browser', { ...localHeaders, origin: 'http://127.0.0.1:9999' }],
  ['another name of this machine', { ...localHeaders, origin: 'http://localhost:8080' }],
  ['a name that begins like ours', { ...portal, origin: 'https://platform.example.com.evil.example' }],
  ['a name that ends like ours', { ...portal, origin: 'https://evil-platform.example.com' }],
  ['another port of the public URL', { host: '10.0.0.7', origin: 'https://public.example.com' }],
  ['the public URL over plain HTTP', { host: '10.0.0.7', origin: 'http://public.example.com:8443' }],
  ['a sibling of the public URL', { host: '10.0.0.7', origin: publicUrl.slice(0, -1), 'sec-fetch-site': 'same-site' }],
  ['a page in a sandbox', { host: portal.host, origin: 'null' }],
  ['a page with a forged Origin', { ...portal, 'sec-fetch-site': 'cross-site' }],
  ['an invalid Sec-Fetch-Site', { ...portal, 'sec-fetch-site': 'same-origin,cross-site' }],
  ['an invalid Origin', { host: portal.host, origin: 'platform.example.com' }],
])('rejects requests of %s with any method', async (_, headers) => {
  for (const method of ['GET', 'HEAD', 'POST', 'DELETE'])
    expect(await errorCodeOf(headers, method)).toBe('cross_origin_request')
})

test('accepts only GET and HEAD from requests without an origin', async () => {
  for (const [method, code] of [
    ['GET', 'none'],
    ['HEAD', 'none'],
    ['POST', 'cross_origin_request'],
    ['DELETE', 'cross_origin_request'],
  ]) {
    expect(await errorCodeOf({ host: portal.host }, method)).toBe(code)
    expect(await errorCodeOf({ host: portal.host, 'sec-fetch-site': 'none' }, method)).toBe(code)
  }
})

test.each([
  'http://platform.example.com',
  'http://192.168.1.5:8080',
  'http://evil.example:8080',
  'http://localhost.evil.example',
  'http://127.0.0.1.evil.example',
])('requires HTTPS of a page from %s', async (origin) => {
  const headers = { host: new URL(origin).host, origin }
  expect(await errorCodeOf(headers)).toBe('https_required')
  expect(await errorCodeOf({ ...headers, 'sec-fetch-site': 'same-origin' })).toBe('https_required')
})

const tokens = { accessToken: 'a.b.c', refreshToken: 'sess_1.x.y', expiresIn: 900, tokenType: 'Bearer' as const }

test('stores tokens in HttpOnly, same-site cookies for their lifetime', () => {
  expect(setSessionCookies(portal, tokens)).toMatchObject({
    status: 200,
    body: { expiresIn: 900 },
    cookies: [
      '__Host-plat_access=a.b.c; Secure; HttpOnly; SameSite=Strict; Path=/; Max-Age=900',
      '__Host-plat_refresh=sess_1.x.y; Secure; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800',
    ],
  })
})

test.each(['http://127.0.0.1:8080', 'http://localhost:8080', 'http://[::1]:8080', 'http://plat.localhost'])(
  'omits the __Host- prefix of cookies over plain HTTP on this machine: %s',
  (origin) => {
    expect(setSessionCookies({ origin, host: new URL(origin).host }, tokens).cookies).toEqual([
      'plat_access=a.b.c; HttpOnly; SameSite=Strict; Path=/; Max-Age=900',
      'plat_refresh=sess_1.x.y; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800',
    ])
  },
)

const names = (cookies: readonly string[] = []) => cookies.map((cookie) => cookie.split('=')[0])

test.each([portal, localHeaders])('clears the same cookies for $origin', (headers) => {
  const { status, cookies } = clearCookies(headers)
  expect(status).toBe(204)
  expect(names(cookies)).toEqual(names(setSessionCookies(headers, tokens).cookies))
  for (const cookie of cookies ?? []) expect(cookie).toMatch(/^[\w-]+=; .*Path=\/; Max-Age=0$/)
})

test('accepts cookies without the __Host- prefix on this machine only', () => {
  const bothCookies = 'plat_access=plain; plat_refresh=plain; __Host-plat_access=own; __Host-plat_refresh=own'
  for (const read of [accessCookie, refreshCookie]) {
    expect(read({ ...portal, cookie: bothCookies })).toBe('own')
    expect(read({ ...portal, cookie: 'plat_access=plain; plat_refresh=plain' })).toBe('')
    expect(read({ host: portal.host, cookie: 'plat_access=plain; plat_refresh=plain' })).toBe('')
    expect(read({ host: portal.host, cookie: bothCookies })).toBe('own')
    // A TLS proxy may change the host, so the origin decides. Without an origin, the prefixed cookie takes precedence.
    expect(read({ ...portal, host: localHeaders.host, cookie: bothCookies })).toBe('own')
    expect(read({ host: localHeaders.host, cookie: bothCookies })).toBe('own')
    // Reads have a Referer instead of an Origin.
    const page = { host: localHeaders.host, referer: `${portal.origin}/clusters` }
    expect(read({ ...page, cookie: bothCookies })).toBe('own')
    expect(read({ ...page, cookie: 'plat_access=plain; plat_refresh=plain' })).toBe('')
    expect(read({ host: localHeaders.host, referer: `${localHeaders.origin}/clusters`, cookie: bothCookies })).toBe(
      'plain',
    )
    expect(read({ ...localHeaders, cookie: bothCookies })).toBe('plain')
    expect(read({ host: localHeaders.host, cookie: 'plat_access=plain; plat_refresh=plain' })).toBe('plain')
  }
})

test('matches cookie names exactly', () => {
  expect(cookieOf({ cookie: 'xplat_access=1; plat_access_2=2;plat_access=3=; plat_access=4' }, 'plat_access')).toBe(
    '3=',
  )
  expect(cookieOf({}, 'plat_access')).toBe('')
})

test('clears the cookies for an invalid refresh token only', async () => {
  const failWith = (error: Error) =>
    renewCookies(portal, async () => {
      throw error
    })
  await expect(failWith(platformError('invalid_refresh_token'))).rejects.toMatchObject({
    code: 'invalid_refresh_token',
    extra: { cookies: clearCookies(portal).cookies },
  })
  const unavailableError = platformError('database_unavailable')
  await expect(failWith(unavailableError)).rejects.toBe(unavailableError)
  expect(unavailableError.extra).toEqual({})
})

test('binds each of eight sign-ins by a cookie that sibling domains cannot set', () => {
  const jar = new Map([['plat_sign_in_0123456789', 'x']])
  const headers = () => ({ cookie: [...jar].map((pair) => pair.join('=')).join('; ') })
  const secrets = Array.from({ length: 11 }, (_, index) => `secret-${index}`)
  for (const secret of secrets) {
    for (const cookie of signInCookies(headers(), secret)) {
      expect(cookie).toMatch(/^__Host-[^;]*; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=\d+$/)
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      if (cookie.endsWith('Max-Age=0')) jar.delete(name)
      else jar.set(name, value)
    }
    shiftClock(1)
  }
  expect(browserSecretsOf(headers())).toEqual(secrets.slice(-8))
  const [name = ''] = [...jar.keys()].slice(-1)
  for (const cookie of [undefined, '=;=', `${name}0=x`, `${name.replace('__Host-', '')}=x`, 'plat_sign_in=x']) {
    expect(browserSecretsOf({ cookie })).toEqual([])
  }
  const manyCookies = Array.from({ length: 300 }, () => `${name}=x`).join('; ')
  expect(signInCookies({ cookie: manyCookies }, 'x').join('').length).toBeLessThan(4000)
  expect(signInCookies(headers(), undefined)).toEqual([])
})
