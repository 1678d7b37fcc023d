import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { PlatformProcess } from '../support/platform.ts'
import { launchChromium } from '../support/portal/chromium.ts'

/** The page of somebody else, on another port of the same machine: the same site to a browser, which sends its cookies. */
async function startNeighbour() {
  const server = createServer((_, response) => void response.setHeader('content-type', 'text/html').end('<body>'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { url, [Symbol.asyncDispose]: close }
}

const credentials = { username: 'ada', password: 'correct horse battery' }

test('in a real browser the session is kept in cookies, and a page on another port can neither use nor replace nor end it', async () => {
  await using platform = await PlatformProcess.start()
  await using neighbour = await startNeighbour()
  const api = await platform.setUp()
  const browser = await launchChromium()
  await using parts = new AsyncDisposableStack()
  parts.defer(() => browser.close())
  const context = await browser.newContext()
  const page = await context.newPage()

  /** Calls the API from the page that is open, as a script of it would; answers status and body. */
  const call = (path: string, method = 'GET', body?: object): Promise<[number, any]> =>
    page.evaluate(
      async ([address, how, json]) => {
        const headers = { 'content-type': 'application/json' }
        const answer = await fetch(address, { method: how, ...(json && { headers, body: json }) })
        return [answer.status, JSON.parse((await answer.text()) || 'null')] as [number, unknown]
      },
      [path, method, body === undefined ? '' : JSON.stringify(body)] as const,
    )
  const sitesCount = async () => (await (await api.admin).get('/api/v1/sites')).body.items.length

  // Of this origin, and without a policy of its own that would forbid calls.
  const ownPage = `${platform.url}/health/live`
  await page.goto(ownPage)
  expect(await call('/api/v1/auth/session', 'POST', credentials)).toEqual([200, { expiresIn: 900 }])
  expect(await call('/api/v1/auth/me')).toMatchObject([200, { username: 'ada' }])
  expect(await call('/api/v1/sites', 'POST', { name: 'from the portal' })).toMatchObject([201, {}])
  expect(await page.evaluate('document.cookie')).toBe('')
  const kept = await context.cookies()
  expect(kept.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite])).toEqual([
    ['plat_access', true, 'Strict'],
    ['plat_refresh', true, 'Strict'],
  ])

  const sites = await sitesCount()
  await page.goto(neighbour.url)
  for (const [path, method] of [
    ['/api/v1/auth/session', 'POST'],
    ['/api/v1/auth/session/refresh', 'POST'],
    ['/api/v1/auth/logout', 'POST'],
    ['/api/v1/sites', 'POST'],
    ['/api/v1/sites', 'GET'],
  ] as const) {
    const answered = page.waitForResponse((answer) => answer.url() === platform.url + path)
    // As text, a browser sends JSON to anybody without asking first.
    const text = JSON.stringify({ ...credentials, name: 'from elsewhere' })
    await page.evaluate(
      ([address, how, body]) => {
        const sent = how === 'GET' ? {} : { headers: { 'content-type': 'text/plain' }, body }
        return fetch(address, { method: how, mode: 'no-cors', credentials: 'include', ...sent }).then(() => undefined)
      },
      [platform.url + path, method, text] as const,
    )
    // Not 401: the browser has sent the cookies. What refuses them is the platform.
    expect([path, (await answered).status()]).toEqual([path, 403])
  }

  const posted = page.waitForResponse((answer) => answer.request().method() === 'POST')
  const form = `Object.assign(document.createElement('form'), { method: 'POST', action: '${platform.url}/api/v1/auth/logout' })`
  await page.evaluate(`document.body.appendChild(${form}).submit()`)
  expect(await (await posted).json()).toMatchObject({ error: 'cross_origin_request' })
  expect(await sitesCount()).toBe(sites)
  expect(await context.cookies()).toEqual(kept)

  await page.goto(ownPage)
  expect(await call('/api/v1/auth/session/refresh', 'POST')).toEqual([200, { expiresIn: 900 }])
  expect(await call('/api/v1/auth/session', 'DELETE')).toEqual([204, null])
  expect(await context.cookies()).toEqual([])
  expect((await call('/api/v1/auth/me'))[0]).toBe(401)
})
