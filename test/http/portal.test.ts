import { type Encoding, packFiles, type PortalFile, type PortalFiles } from '@platform/http/portal/pack'
import { servePortal } from '@platform/http/portal/serve'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { expect, test, vi } from 'vitest'
import type { TestRequest } from '../support/request.ts'
import { request as requestFrom } from './api.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_LOG_LEVEL: 'info' }))

function fileOf(contentType: string, text: string, isHashed = true): PortalFile {
  const identity = Buffer.from(text)
  const bodies = { identity, gzip: gzipSync(identity), br: brotliCompressSync(identity) }
  return { contentType, isHashed, tag: `tag-of-${text.length}`, bodies }
}

const page = '<!doctype html><title>The portal</title>'
const script = 'console.log(1) // '.repeat(20_000)
const portal: PortalFiles = {
  shell: fileOf('text/html; charset=utf-8', page, false),
  files: new Map([
    ['/assets/main-1a2b3c4d.js', fileOf('text/javascript; charset=utf-8', script)],
    ['/icon.svg', fileOf('image/svg+xml', '<svg/>', false)],
  ]),
}
const handler = servePortal(async () => packFiles(portal))

const request = (sent: TestRequest) => requestFrom(sent, handler)

const browser = {
  accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'accept-encoding': 'gzip, deflate, br',
}
const open = (target: string, headers: Record<string, string> = {}) =>
  request({ target, headers: { accept: browser.accept, ...headers } })
const mainScript = '/assets/main-1a2b3c4d.js'
const notFound = expect.objectContaining({ error: 'route_not_found' })

test.each([
  ['a browser', 'gzip, deflate, br', 'br'],
  ['a client that excludes Brotli', 'gzip;q=0.5, br;q=0', 'gzip'],
  ['a client that accepts any encoding', '*', 'br'],
  ['a client that accepts any encoding except Brotli', 'br;q=0, *', 'gzip'],
  ['a client with unusual spelling', ' GZIP ; q=1.0 ', 'gzip'],
  ['a client with other encodings', 'zstd, deflate', 'identity'],
  ['a client that excludes everything', 'identity;q=0', 'identity'],
  ['an invalid weight', 'br;q=much', 'identity'],
  ['no header', '', 'identity'],
] as [string, string, Encoding][])('serves %s the smallest acceptable encoding', async (_, accepted, encoding) => {
  const { status, headers, bytes } = await request({ target: mainScript, headers: { 'accept-encoding': accepted } })
  expect(status).toBe(200)
  expect(headers['content-encoding']).toBe(encoding === 'identity' ? undefined : encoding)
  expect(headers['vary']).toBe('accept-encoding')
  const decoded = { br: brotliDecompressSync, gzip: gunzipSync, identity: (content: Buffer) => content }[encoding](
    bytes,
  )
  expect(decoded.toString()).toBe(script)
})

test('files with hashed names are cached permanently, others are revalidated', async () => {
  const [hashedResponse, iconResponse] = [await request({ target: mainScript }), await request({ target: '/icon.svg' })]
  expect(hashedResponse.headers).toMatchObject({
    'cache-control': 'public, max-age=31536000, immutable',
    'content-type': 'text/javascript; charset=utf-8',
    'x-content-type-options': 'nosniff',
  })
  expect(iconResponse.headers).toMatchObject({ 'cache-control': 'no-cache', 'content-type': 'image/svg+xml' })
})

test('returns 304 for the same encoding only', async () => {
  const { headers } = await open('/', browser)
  const revalidation = await open('/', { ...browser, 'if-none-match': `"other", W/${headers['etag']}` })
  expect([revalidation.status, revalidation.text, revalidation.headers['etag']]).toEqual([304, '', headers['etag']])
  expect(revalidation.headers).toMatchObject({ 'cache-control': 'no-cache', vary: 'accept, accept-encoding' })
  expect(revalidation.headers['content-security-policy']).toBe(headers['content-security-policy'])
  const response = await open('/', { 'if-none-match': headers['etag'] ?? '' })
  expect([response.status, response.text]).toEqual([200, page])
})

test.each(['/', mainScript, '/nowhere'])('HEAD %s returns the headers of GET without a body', async (target) => {
  const get = await open(target, browser)
  const head = await request({ method: 'HEAD', target, headers: browser })
  const { 'x-trace-id': headTraceId, ...headHeaders } = head.headers
  const { 'x-trace-id': getTraceId, ...getHeaders } = get.headers
  expect([head.status, head.bytes.length, headHeaders]).toEqual([get.status, 0, getHeaders])
  expect(headTraceId).not.toBe(getTraceId)
})

test.each(['/', '/dashboard', '/clusters/clus_01/', '/jobs/batches/batch_01', '/settings/identity?consent=granted'])(
  'serves the page to a browser at %s',
  async (target) => {
    const { status, text, headers } = await open(target)
    expect([status, text, headers['content-type']]).toEqual([200, page, 'text/html; charset=utf-8'])
    expect(headers['cache-control']).toBe('no-cache')
  },
)

test.each(['/nowhere', '/clusters/a/b', '/health/lives', '/api', '/index.html', '/constructor'])(
  'serves the page with 404 and without caching at %s',
  async (target) => {
    const { status, text, headers } = await open(target)
    expect([status, text]).toEqual([404, page])
    expect([headers['cache-control'], headers['etag']]).toEqual(['no-store', undefined])
    expect(headers['content-security-policy']).toContain("default-src 'none'")
  },
)

test('serves the page at the root to every client', async () => {
  expect((await request({ target: '/' })).text).toBe(page)
  expect((await request({ target: '/', headers: { accept: 'application/json' } })).text).toBe(page)
})

test.each([
  ['an API client', { target: '/dashboard', headers: { accept: 'application/json' } }],
  ['a client without Accept', { target: '/dashboard' }],
  ['a client that accepts anything', { target: '/dashboard', headers: { accept: '*/*' } }],
  ['another method of an unknown path', { method: 'POST', target: '/nowhere', headers: browser }],
  ['a file of another version', { target: '/assets/main-00000000.js', headers: browser }],
  ['a file by another spelling', { target: '/Assets/main-1a2b3c4d.js' }],
  ['an inherited property name', { target: '/assets/constructor', headers: browser }],
  ['a path below a file', { target: '/icon.svg/', headers: { accept: 'image/*' } }],
])('returns 404 as JSON without caching for %s', async (_, sent: TestRequest) => {
  const { status, json, headers } = await request(sent)
  expect([status, json]).toEqual([404, notFound])
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-store' })
})

test.each([
  ['POST', '/'],
  ['DELETE', mainScript],
  ['PUT', '/dashboard'],
])('rejects %s of %s', async (method, target) => {
  const { status, json, headers } = await request({ method, target, headers: browser })
  expect([status, json.error, headers['allow']]).toEqual([405, 'method_not_allowed', 'GET, HEAD, OPTIONS'])
})

test.each(['/assets/../icon.svg', '/assets/%2e%2e/icon.svg', '/..%5Cicon.svg', '/%252e%252e/etc/passwd', '/assets//x'])(
  'rejects the path %s',
  async (target) => {
    const { status, json } = await open(target)
    expect([status, json.error]).toEqual([400, 'invalid_path'])
  },
)

test('the security policy allows only files of the portal, and no framing', async () => {
  const { headers } = await open('/')
  const policy = new Map(
    (headers['content-security-policy'] ?? '').split('; ').map((part) => part.split(/ (.*)/) as [string, string]),
  )
  expect(Object.fromEntries(policy)).toMatchObject({
    'default-src': "'none'",
    'script-src': "'self'",
    'style-src': "'self'",
    'connect-src': "'self'",
    'worker-src': "'none'",
    'frame-src': "'self'",
    'base-uri': "'none'",
    'form-action': "'none'",
    'frame-ancestors': "'none'",
    'require-trusted-types-for': "'script'",
  })
  expect(headers['content-security-policy']).not.toMatch(/unsafe|https?:|\*/)
  expect(headers).toMatchObject({
    'x-content-type-options': 'nosniff',
    'cross-origin-opener-policy': 'same-origin',
    'referrer-policy': 'same-origin',
    'permissions-policy': expect.stringContaining('camera=()'),
  })
})

const transportSecurity = async (headers: Record<string, string>) =>
  (await open('/', headers)).headers['strict-transport-security']

test('sends Strict-Transport-Security only over TLS', async () => {
  expect(await transportSecurity({ 'x-forwarded-proto': 'https' })).toBe('max-age=31536000')
  expect(await transportSecurity({ 'x-forwarded-proto': 'http' })).toBeUndefined()
  expect(await transportSecurity({})).toBeUndefined()
})

test('reads files again after a failure', async () => {
  let reads = 0
  const failingPortal = servePortal(async () => {
    if (++reads === 1) throw new Error('no such file')
    return packFiles(portal)
  })
  const statuses: number[] = []
  for (let time = 0; time < 3; time++) statuses.push((await requestFrom('/', failingPortal)).status)
  expect([statuses, reads]).toEqual([[500, 200, 200], 2])
})
