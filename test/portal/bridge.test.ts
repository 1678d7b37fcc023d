import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { openBridge } from '../../packages/portal/src/pages/modules/bridge/bridge.ts'
import type { PortalMessage } from '../../packages/portal/src/pages/modules/bridge/messages.ts'
import { isOwnPath } from '../../packages/portal/src/pages/modules/bridge/own-path.ts'
import { startServer } from '../support/http-server.ts'

/** What a module's page can have the portal do, and what it cannot. */

const bases = ['/modules/hello', '/api/hello']

test.for([
  '/api/hello',
  '/api/hello/',
  '/api/hello/orders/7?page=2&name=%2F..%2F#',
  '/modules/hello',
  '/modules/hello/settings?tab=a/../b',
  '/api/hello/J%C3%BCrgen%20B',
  '/api/hello/a..b/.hidden',
])('%s is a path of the module', (path) => {
  expect(isOwnPath(path.replace('#', ''), bases)).toBe(true)
})

test.for([
  '/api/hello2',
  '/api/hell',
  '/api/v1/users',
  '/api',
  '/',
  '',
  'api/hello',
  '//example.com/api/hello',
  '///api/hello',
  'https://example.com/api/hello',
  'http:/api/hello',
  '\\\\example.com/api/hello',
  '/\\example.com/api/hello',
  '/api/hello/../v1/users',
  '/api/hello/./../v1/users',
  '/api/hello/..',
  '/api/hello/%2e%2e/v1/users',
  '/api/hello/%2E%2e/v1/users',
  '/api/hello/.%2e/v1/users',
  '/api/hello/..%2fv1/users',
  '/api/hello/..%5cv1/users',
  '/api/hello/..\\v1\\users',
  '/api/hello%2f..%2fv1/users',
  '/api/hello/%252e%252e/v1/users',
  '/api/hello/%c0%ae%c0%ae/v1/users',
  '/api/hello//v1',
  '/api//hello',
  '/API/hello',
  '/api/hello/\t../v1',
  '/api/hello\n/x',
  ' /api/hello',
  '/api/hello ',
  '/api/hello/%00',
  '/api/hello/%0d%0aHost:x',
  '/api/hello#x',
  '/api/hello?x#y',
  '/api/hello?\u00e9',
  '/api/hello/\u2025/v1',
  '/api/hello/\uff0e\uff0e/v1',
  '/api/hello@example.com/../v1',
  `/api/hello/${'a'.repeat(2000)}`,
  7,
  undefined,
  ['/api/hello'],
  { toString: () => '/api/hello' },
])('%j is none', (path) => {
  expect(isOwnPath(path, bases)).toBe(false)
})

type Fetch = (request: Request) => Promise<Response>

/** A bridge to a page; what the page hears, and what the portal asks for. */
function bridgeBy(fetch: Fetch, origin = 'https://platform.example.com') {
  const [heard, asked, opened]: [any[], Request[], string[]] = [[], [], []]
  const bridge = openBridge({
    moduleId: 'hello',
    origin,
    bases,
    fetch: (request) => {
      asked.push(request)
      return fetch(request)
    },
    surroundings: () => ({ theme: 'dark', locale: 'de', timeZone: 'Europe/Berlin' }),
    send: (message: PortalMessage) => void heard.push(message),
    open: (path) => void opened.push(path),
  })
  return { ...bridge, heard, asked, opened }
}

const ok: Fetch = async () => new Response('fine', { headers: { 'x-one': '1' } })
const request = (rest: object = {}) => ({ platform: 'request', id: 1, method: 'GET', path: '/api/hello', ...rest })

test('a call goes to the module with what it may know, and its answer comes back as text', async () => {
  const { receive, heard, asked } = bridgeBy(ok)
  const headers = { 'Content-Type': 'text/csv', Cookie: 'a=b', Authorization: 'Bearer x', 'X-Forwarded-For': '1.2.3.4' }
  receive(request({ id: 'a', method: 'POST', path: '/api/hello/orders?x=1', headers, body: 'a,b' }))
  await expect.poll(() => heard).toHaveLength(1)
  expect(heard[0]).toMatchObject({
    platform: 'response',
    id: 'a',
    status: 200,
    headers: { 'x-one': '1' },
    body: 'fine',
  })
  const [sent] = asked
  expect([sent?.method, sent?.url]).toEqual(['POST', 'https://platform.example.com/api/hello/orders?x=1'])
  expect([...(sent?.headers.keys() ?? [])]).toEqual(['content-type'])
  expect(await sent?.text()).toBe('a,b')
})

test.for([
  [{ path: '/api/v1/users' }, 'not_allowed'],
  [{ path: 'https://example.com/api/hello' }, 'not_allowed'],
  [{ method: 'TRACE' }, 'not_allowed'],
  [{ method: 'get' }, 'not_allowed'],
  [{ body: 'of a GET' }, 'not_allowed'],
  [{ headers: { accept: 'a\nb' } }, 'not_allowed'],
  [{ method: 'POST', body: '€'.repeat(1_400_000) }, 'too_large'],
] as const)('%j is not sent', async ([rest, error]) => {
  const { receive, heard, asked } = bridgeBy(ok)
  receive(request(rest))
  await expect.poll(() => heard).toEqual([{ platform: 'response', id: 1, status: 0, headers: {}, body: '', error }])
  expect(asked).toEqual([])
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
])('%j is passed over', async (data) => {
  const { receive, heard, asked, opened } = bridgeBy(ok)
  receive(data)
  receive(request({ id: 'last' }))
  await expect.poll(() => heard).toMatchObject([{ id: 'last' }])
  expect([asked.length, opened]).toEqual([1, []])
})

test('of an answer no more is taken in than a page can hold, however small it came', async () => {
  const bomb = gzipSync(Buffer.alloc(9 * 1024 * 1024, 'a'))
  await using server = await startServer(() => ({
    status: 200,
    headers: { 'content-type': 'text/plain', 'content-encoding': 'gzip' },
    body: bomb,
  }))
  const { receive, heard } = bridgeBy((each) => fetch(each), server.url)
  receive(request())
  await expect.poll(() => heard).toMatchObject([{ status: 0, error: 'too_large', body: '' }])
})

test('a redirect is not followed', async () => {
  await using server = await startServer(({ url }) =>
    url.pathname === '/api/hello'
      ? { status: 307, headers: { location: '/api/v1/users' } }
      : { status: 200, body: 'x' },
  )
  const { receive, heard } = bridgeBy((each) => fetch(each), server.url)
  receive(request({ method: 'POST', body: '{}' }))
  await expect.poll(() => heard).toMatchObject([{ status: 0, error: 'unreachable' }])
  expect(server.seen.map(({ url }) => url.pathname)).toEqual(['/api/hello'])
})

test('ten calls are under way at a time, and no more; each that ends makes room', async () => {
  const ends: (() => void)[] = []
  const { receive, heard } = bridgeBy(() => new Promise((resolve) => ends.push(() => resolve(new Response('')))))
  for (let id = 0; id < 12; id += 1) receive(request({ id }))
  expect(heard).toMatchObject([
    { id: 10, error: 'too_many' },
    { id: 11, error: 'too_many' },
  ])
  ends.shift()?.()
  await expect.poll(() => heard).toHaveLength(3)
  receive(request({ id: 'later' }))
  expect(ends).toHaveLength(10)
})

test('the surroundings are told to who has asked, and told again when they change', () => {
  const { receive, tellSurroundings, heard } = bridgeBy(ok)
  tellSurroundings()
  expect(heard).toEqual([])
  receive({ platform: 'hello' })
  tellSurroundings()
  const told = { platform: 'surroundings', theme: 'dark', locale: 'de', timeZone: 'Europe/Berlin' }
  expect(heard).toEqual([told, told])
})

test('what comes after the end is told to nobody', async () => {
  const { promise, resolve } = Promise.withResolvers<Response>()
  const { receive, end, heard, asked } = bridgeBy(() => promise)
  receive(request())
  end()
  expect(asked[0]?.signal.aborted).toBe(true)
  resolve(new Response('late'))
  await new Promise(setImmediate)
  expect(heard).toEqual([])
})

test('a page opens pages of its own module', () => {
  const { receive, opened } = bridgeBy(ok)
  receive({ platform: 'open', path: '/modules/hello/orders?page=2' })
  expect(opened).toEqual(['/modules/hello/orders?page=2'])
})
