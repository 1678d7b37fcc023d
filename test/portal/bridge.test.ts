import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { openBridge } from '../../packages/portal/src/pages/modules/bridge/bridge.ts'
import type { PortalMessage } from '../../packages/portal/src/pages/modules/bridge/messages.ts'
import { isModulePath } from '../../packages/portal/src/pages/modules/bridge/module-path.ts'
import { startServer } from '../support/http-server.ts'

const basePaths = ['/modules/hello', '/api/hello']

const modulePaths = `/api/hello /api/hello/ /api/hello/orders/7?page=2&name=%2F..%2F /modules/hello
  /modules/hello/settings?tab=a/../b /api/hello/J%C3%BCrgen%20B /api/hello/a..b/.hidden
  /api/hello/a%2Fb /api/hello/a%3Fb%23c /api/hello/100%25 /api/hello/%252e%252e/v1/users /api/hello//v1/
  /api/hello/%0d%0aHost:x`

test.for(modulePaths.split(/\s+/))('accepts the module path %s', (path) => {
  expect(isModulePath(path, basePaths)).toBe(true)
})

const otherPaths = String.raw`/api/hello2 /api/hell /api/v1/users /api / api/hello //example.com/api/hello ///api/hello
  https://example.com/api/hello http:/api/hello \\example.com/api/hello /\example.com/api/hello /api/hello/../v1/users
  /api/hello/./../v1/users /api/hello/.. /api/hello/%2e%2e/v1/users /api/hello/%2E%2e/v1/users /api/hello/.%2e/v1/users
  /api/hello/..%2fv1/users /api/hello/..%5cv1/users /api/hello/..\v1\users /api/hello%2f..%2fv1/users
  /api/hello/a%2F..%2Fb /api/hello/%c0%ae%c0%ae/v1/users /api//hello /API/hello /api/hello/%00 /api/hello#x /api/hello?x#y /api/hello@example.com/../v1`

test.for([
  ...otherPaths.split(/\s+/),
  '',
  '/api/hello/\t../v1',
  '/api/hello\n/x',
  ' /api/hello',
  '/api/hello ',
  '/api/hello?\u00e9',
  '/api/hello/\u2025/v1',
  '/api/hello/\uff0e\uff0e/v1',
  `/api/hello/${'a'.repeat(2000)}`,
  7,
  undefined,
  ['/api/hello'],
  { toString: () => '/api/hello' },
])('rejects the path %j', (path) => {
  expect(isModulePath(path, basePaths)).toBe(false)
})

type Fetch = (request: Request) => Promise<Response>

function recordingBridge(fetch: Fetch, origin = 'https://platform.example.com') {
  const [received, sent, opened]: [any[], Request[], string[]] = [[], [], []]
  const bridge = openBridge({
    moduleId: 'hello',
    origin,
    basePaths,
    fetch: (request) => {
      sent.push(request)
      return fetch(request)
    },
    context: () => ({ theme: 'dark', locale: 'de', timeZone: 'Europe/Berlin' }),
    send: (message: PortalMessage) => void received.push(message),
    open: (path) => void opened.push(path),
  })
  return { ...bridge, received, sent, opened }
}

const respondOk: Fetch = async () => new Response('fine', { headers: { 'x-one': '1' } })
const request = (rest: object = {}) => ({ platform: 'request', id: 1, method: 'GET', path: '/api/hello', ...rest })

test('forwards allowed headers only and returns the response as text', async () => {
  const { receive, received, sent } = recordingBridge(respondOk)
  const headers = { 'Content-Type': 'text/csv', Cookie: 'a=b', Authorization: 'Bearer x', 'X-Forwarded-For': '1.2.3.4' }
  receive(request({ id: 'a', method: 'POST', path: '/api/hello/orders?x=1', headers, body: 'a,b' }))
  const response = { platform: 'response', id: 'a', status: 200, headers: { 'x-one': '1' }, body: 'fine' }
  await expect.poll(() => received).toMatchObject([response])
  const [message] = sent
  expect([message?.method, message?.url]).toEqual(['POST', 'https://platform.example.com/api/hello/orders?x=1'])
  expect([...(message?.headers.keys() ?? [])]).toEqual(['content-type'])
  expect(await message?.text()).toBe('a,b')
})

test.for([
  [{ path: '/api/v1/users' }, 'not_allowed'],
  [{ path: 'https://example.com/api/hello' }, 'not_allowed'],
  [{ method: 'TRACE' }, 'not_allowed'],
  [{ method: 'get' }, 'not_allowed'],
  [{ body: 'of a GET' }, 'not_allowed'],
  [{ headers: { accept: 'a\nb' } }, 'not_allowed'],
  [{ method: 'POST', body: '€'.repeat(1_400_000) }, 'too_large'],
] as const)('does not send %j', async ([rest, error]) => {
  const { receive, received, sent } = recordingBridge(respondOk)
  receive(request(rest))
  await expect.poll(() => received).toEqual([{ platform: 'response', id: 1, status: 0, headers: {}, body: '', error }])
  expect(sent).toEqual([])
})

test.for([
  undefined,
  null,
  'request',
  7,
  [],
  {},
  { platform: 'else' },
  { platform: 'request', path: '/api/hello' },
  request({ id: {} }),
  request({ id: 'x'.repeat(101) }),
  request({ path: 7 }),
  request({ method: {} }),
  request({ headers: 'x: y' }),
  request({ headers: { accept: 7 } }),
  request({ body: { x: 1 } }),
  { platform: 'open' },
  { platform: 'open', path: '/settings/users' },
  { platform: 'open', path: '/api/hello' },
  { platform: 'open', path: 'javascript:alert(1)' },
  { platform: 'open', path: '/modules/hello/../../settings/users' },
])('ignores the message %j', async (data) => {
  const { receive, received, sent, opened } = recordingBridge(respondOk)
  receive(data)
  receive(request({ id: 'last' }))
  await expect.poll(() => received).toMatchObject([{ id: 'last' }])
  expect([sent.length, opened]).toEqual([1, []])
})

test('opens pages of its module', () => {
  const { receive, opened } = recordingBridge(respondOk)
  receive({ platform: 'open', path: '/modules/hello/orders?page=2' })
  expect(opened).toEqual(['/modules/hello/orders?page=2'])
})

test('rejects a response that is too large when decompressed', async () => {
  const body = gzipSync(Buffer.alloc(9 * 1024 * 1024, 'a'))
  const headers = { 'content-type': 'text/plain', 'content-encoding': 'gzip' }
  await using server = await startServer(() => ({ status: 200, headers, body }))
  const { receive, received } = recordingBridge((each) => fetch(each), server.url)
  receive(request())
  await expect.poll(() => received).toMatchObject([{ status: 0, error: 'too_large', body: '' }])
})

test('does not follow redirects', async () => {
  await using server = await startServer(({ url }) =>
    url.pathname === '/api/hello'
      ? { status: 307, headers: { location: '/api/v1/users' } }
      : { status: 200, body: 'x' },
  )
  const { receive, received } = recordingBridge((each) => fetch(each), server.url)
  receive(request({ method: 'POST', body: '{}' }))
  await expect.poll(() => received).toMatchObject([{ status: 0, error: 'unreachable' }])
  expect(server.requests.map(({ url }) => url.pathname)).toEqual(['/api/hello'])
})

test('allows ten concurrent requests', async () => {
  const ends: (() => void)[] = []
  const pending: Fetch = () => new Promise((resolve) => ends.push(() => resolve(new Response(''))))
  const { receive, received } = recordingBridge(pending)
  for (let id = 0; id < 12; id += 1) receive(request({ id }))
  expect(received).toMatchObject([10, 11].map((id) => ({ id, error: 'too_many' })))
  ends.shift()?.()
  await expect.poll(() => received).toHaveLength(3)
  receive(request({ id: 'later' }))
  expect(ends).toHaveLength(10)
})

test('sends theme, locale and time zone after a hello and when they change', () => {
  const { receive, sendContext, received } = recordingBridge(respondOk)
  sendContext()
  expect(received).toEqual([])
  receive({ platform: 'hello' })
  sendContext()
  const message = { platform: 'surroundings', theme: 'dark', locale: 'de', timeZone: 'Europe/Berlin' }
  expect(received).toEqual([message, message])
})

test('aborts requests when it ends', async () => {
  const { promise, resolve } = Promise.withResolvers<Response>()
  const { receive, end, received, sent } = recordingBridge(() => promise)
  receive(request())
  end()
  expect(sent[0]?.signal.aborted).toBe(true)
  resolve(new Response('late'))
  await new Promise(setImmediate)
  expect(received).toEqual([])
})
