import { expect, test, vi } from 'vitest'
import { portalPath } from '@platform/contract/portal-paths'
import { handler } from '../../functions/gateway/modules.ts'
import { send } from '../support/request.ts'
import { type Instance, runInstance } from '../support/hostile-module.ts'
import { countStoreCalls } from '../support/store-calls.ts'
import { ada, answering, get } from './module-traffic.ts'

await vi.hoisted(() => {
  // Requests go past the host; nothing is deployed here.
  process.env['PLAT_MODULE_HOST_URL'] = 'http://127.0.0.1:9'
  return import('../support/without-rate-limits.ts')
})

const document = { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate', accept: 'text/html,*/*;q=0.8' }
const opened = (target: string, headers: Record<string, string> = document) => send(handler, { target, headers })

const pageOf = ({ moduleId }: Instance): string => `/modules/${moduleId}`

/** Where an answer leads: what the portal is told to show. */
const openedBy = ({ headers }: { headers: Record<string, string> }) => {
  const { pathname, searchParams } = new URL(headers['location'] ?? '', 'https://platform.example.com')
  return [pathname, searchParams.get('open')]
}

test('a browser that opens a page of a module is led to the portal, and nobody is asked: neither module nor store', async () => {
  await using module = await runInstance()
  const page = pageOf(module)
  const calls = await countStoreCalls(async () => {
    for (const headers of [document, { ...document, ...ada }]) {
      const answer = await opened(`${page}/deep?q=1&r=%C3%A9`, headers)
      expect([answer.status, openedBy(answer)]).toEqual([302, ['/', `${page}/deep?q=1&r=%C3%A9`]])
      expect(answer.headers).toMatchObject({ vary: 'sec-fetch-dest', 'cache-control': 'no-store' })
    }
  })
  expect([calls, module.requests]).toEqual([0, []])
})

test('a frame gets the page itself, and whoever keeps it knows what for', async () => {
  await using module = await runInstance()
  module.respondWith(answering({ 'content-type': 'text/html', 'cache-control': 'max-age=9' }, '<p>page</p>'))
  const page = pageOf(module)
  for (const dest of ['iframe', 'frame', 'empty', 'script', undefined]) {
    const { status, text, headers } = await get(page, { ...ada, ...(dest && { 'sec-fetch-dest': dest }) })
    expect([dest, status, text]).toEqual([dest, 200, '<p>page</p>'])
    expect(headers['vary']).toBe('authorization, cookie, sec-fetch-dest')
  }
})

test('what is no opening of a page goes to the module, or is refused as ever', async () => {
  await using module = await runInstance()
  expect((await opened(module.api)).status).toBe(401)
  const posted = { method: 'POST', target: pageOf(module), headers: document }
  expect((await send(handler, posted)).status).toBe(401)
  expect((await send(handler, { ...posted, method: 'HEAD' })).status).toBe(401)
})

test.each([
  '/modules/hello',
  '/modules/hello/',
  '/modules/hello/a%20b/%C3%A9',
  '/modules/hello?next=https://attacker.example/%0d%0aset-cookie:a=b',
])('where %s leads is a place of the portal, and the answer one header', async (target) => {
  const answer = await opened(target)
  expect(answer.headers['location']).toMatch(/^\/\?open=%2Fmodules%2Fhello[\w%.~!*'()-]*$/)
  const [path, place] = openedBy(answer)
  expect([path, place]).toEqual(['/', target])
  if (!target.includes('%20')) expect(place).toMatch(portalPath)
})

test.each(['/modules/..//attacker.example', '/modules/%2F%2Fattacker.example', '/modules/a%5Cb'])(
  'nobody is led by a strange path: %s',
  async (target) => {
    const { status, json, headers } = await opened(target)
    expect([status, json.error, headers['location']]).toEqual([400, 'invalid_path', undefined])
  },
)
