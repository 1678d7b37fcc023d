import { type Encoding, packFiles, type PortalFile, type PortalFiles } from '@platform/http/portal/pack'
import { servePortal } from '@platform/http/portal/serve'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { expect, test, vi } from 'vitest'
import { type TestResponse, send, type TestRequest } from '../support/request.ts'
import { captureLog } from '../support/log.ts'

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

/** Sends a request; what it logs does not matter. */
async function ask(sent: TestRequest): Promise<TestResponse> {
  let received: TestResponse | undefined
  await captureLog(async () => (received = await send(handler, sent)))
  if (received === undefined) throw new Error('no answer')
  return received
}

const browser = {
  accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'accept-encoding': 'gzip, deflate, br',
}
const opened = (target: string, headers: Record<string, string> = {}) =>
  ask({ target, headers: { accept: browser.accept, ...headers } })
const main = '/assets/main-1a2b3c4d.js'
const notFound = expect.objectContaining({ error: 'route_not_found' })

test.each([
  ['a browser, by Brotli', 'gzip, deflate, br', 'br'],
  ['what weighs Brotli down to nothing', 'gzip;q=0.5, br;q=0', 'gzip'],
  ['what takes anything', '*', 'br'],
  ['what takes anything but Brotli', 'br;q=0, *', 'gzip'],
  ['what spells it in its own way', ' GZIP ; q=1.0 ', 'gzip'],
  ['what knows others only', 'zstd, deflate', 'identity'],
  ['what refuses everything', 'identity;q=0', 'identity'],
  ['what says nonsense', 'br;q=much', 'identity'],
  ['what says nothing', '', 'identity'],
] as [string, string, Encoding][])('%s gets the shortest form that it can read', async (_, accepted, encoding) => {
  const { status, headers, bytes } = await ask({ target: main, headers: { 'accept-encoding': accepted } })
  expect(status).toBe(200)
  expect(headers['content-encoding']).toBe(encoding === 'identity' ? undefined : encoding)
  expect(headers['vary']).toBe('accept-encoding')
  const plain = { br: brotliDecompressSync, gzip: gunzipSync, identity: (content: Buffer) => content }[encoding](bytes)
  expect(plain.toString()).toBe(script)
})

test('a file whose name tells its content is kept for ever, any other is asked about each time', async () => {
  const [hashed, icon] = [await ask({ target: main }), await ask({ target: '/icon.svg' })]
  expect(hashed.headers).toMatchObject({
    'cache-control': 'public, max-age=31536000, immutable',
    'content-type': 'text/javascript; charset=utf-8',
    'x-content-type-options': 'nosniff',
  })
  expect(icon.headers).toMatchObject({ 'cache-control': 'no-cache', 'content-type': 'image/svg+xml' })
})

test('who has the very bytes is told so, and who has another form of them is not', async () => {
  const { headers } = await opened('/', browser)
  const again = await opened('/', { ...browser, 'if-none-match': `"other", W/${headers['etag']}` })
  expect([again.status, again.text, again.headers['etag']]).toEqual([304, '', headers['etag']])
  expect(again.headers).toMatchObject({ 'cache-control': 'no-cache', vary: 'accept, accept-encoding' })
  expect(again.headers['content-security-policy']).toBe(headers['content-security-policy'])
  const plain = await opened('/', { 'if-none-match': headers['etag'] ?? '' })
  expect([plain.status, plain.text]).toEqual([200, page])
})

test.each(['/', main, '/nowhere'])('HEAD of %s gets the headers that GET gets, and no body', async (target) => {
  const get = await opened(target, browser)
  const head = await ask({ method: 'HEAD', target, headers: browser })
  const { 'x-trace-id': one, ...own } = head.headers
  const { 'x-trace-id': other, ...its } = get.headers
  expect([head.status, head.bytes.length, own]).toEqual([get.status, 0, its])
  expect(one).not.toBe(other)
})

test.each(['/', '/dashboard', '/clusters/clus_01/', '/jobs/batches/batch_01', '/settings/identity?consent=granted'])(
  'a browser that opens %s gets the page',
  async (target) => {
    const { status, text, headers } = await opened(target)
    expect([status, text, headers['content-type']]).toEqual([200, page, 'text/html; charset=utf-8'])
    expect(headers['cache-control']).toBe('no-cache')
  },
)

test.each(['/nowhere', '/clusters/a/b', '/health/lives', '/api', '/index.html', '/constructor'])(
  'a browser that opens %s gets the page, which says that there is nothing, and does not keep it',
  async (target) => {
    const { status, text, headers } = await opened(target)
    expect([status, text]).toEqual([404, page])
    expect([headers['cache-control'], headers['etag']]).toEqual(['no-store', undefined])
    expect(headers['content-security-policy']).toContain("default-src 'none'")
  },
)

test('the root is the page to everybody', async () => {
  expect((await ask({ target: '/' })).text).toBe(page)
  expect((await ask({ target: '/', headers: { accept: 'application/json' } })).text).toBe(page)
})

test.each([
  ['a client of the API', { target: '/dashboard', headers: { accept: 'application/json' } }],
  ['one that says nothing', { target: '/dashboard' }],
  ['one that takes anything', { target: '/dashboard', headers: { accept: '*/*' } }],
  ['another method', { method: 'POST', target: '/', headers: browser }],
  ['another method at a file', { method: 'DELETE', target: main, headers: browser }],
  ['OPTIONS', { method: 'OPTIONS', target: '/dashboard', headers: browser }],
  ['a file of another version', { target: '/assets/main-00000000.js', headers: browser }],
  ['a file by another spelling', { target: '/Assets/main-1a2b3c4d.js' }],
  ['a name that all objects have', { target: '/assets/constructor', headers: browser }],
  ['a file that is in another one', { target: '/icon.svg/', headers: { accept: 'image/*' } }],
])('%s hears route_not_found as JSON, which nobody keeps', async (_, sent: TestRequest) => {
  const { status, json, headers } = await ask(sent)
  expect([status, json]).toEqual([404, notFound])
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-store' })
})

test.each(['/assets/../icon.svg', '/assets/%2e%2e/icon.svg', '/..%5Cicon.svg', '/%252e%252e/etc/passwd', '/assets//x'])(
  'no path of a file system is made of %s',
  async (target) => {
    const { status, json } = await opened(target)
    expect([status, json.error]).toEqual([400, 'invalid_path'])
  },
)

test('the page lets nothing run that is not a file of the portal, and nobody frame it', async () => {
  const { headers } = await opened('/')
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

const told = async (headers: Record<string, string>) =>
  (await opened('/', headers)).headers['strict-transport-security']

test('a browser that came by TLS is to keep to it, and one that did not is told nothing', async () => {
  expect(await told({ 'x-forwarded-proto': 'https' })).toBe('max-age=31536000')
  expect(await told({ 'x-forwarded-proto': 'http' })).toBeUndefined()
  expect(await told({})).toBeUndefined()
})

test('files that cannot be read are a fault, and are read at the next request', async () => {
  let reads = 0
  const late = servePortal(async () => {
    if (++reads === 1) throw new Error('no such file')
    return packFiles(portal)
  })
  const statuses: number[] = []
  await captureLog(async () => {
    for (let time = 0; time < 3; time++) statuses.push((await send(late, { target: '/' })).status)
  })
  expect([statuses, reads]).toEqual([[500, 200, 200], 2])
})
