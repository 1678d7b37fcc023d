import { gzipSync } from 'node:zlib'
import { until } from '../../conformance/support/until.ts'
import type { Page, Request, Response } from 'playwright-core'

/** The requests that a page sends while something is done, as `GET /api/v1/clusters?page=1`. */
export async function requestsDuring(page: Page, act: () => Promise<unknown>): Promise<string[]> {
  const sent: string[] = []
  const add = (request: Request) => {
    const { pathname, search } = new URL(request.url())
    sent.push(`${request.method()} ${pathname}${search}`)
  }
  page.on('request', add)
  await act()
  page.off('request', add)
  return sent
}

/** A script that a page has loaded. Bytes are those of its gzip, with whatever the server packs it. */
export interface LoadedScript {
  path: string
  gzipBytes: number
}

/** The scripts that a page loads while something is done. Each counts once. */
export async function scriptsDuring(page: Page, act: () => Promise<unknown>): Promise<LoadedScript[]> {
  const found = new Map<string, Promise<Buffer>>()
  const add = (response: Response) => {
    const { pathname } = new URL(response.url())
    if (/javascript/.test(response.headers()['content-type'] ?? '') && response.ok())
      found.set(pathname, response.body())
  }
  page.on('response', add)
  await act()
  page.off('response', add)
  const all = [...found].map(async ([path, body]) => ({ path, gzipBytes: gzipSync(await body, { level: 9 }).length }))
  return Promise.all(all)
}

/** Asked for something that the server holds back until there is news. */
const isHeld = (request: Request) => /[?&]wait(Seconds)?=/.test(request.url())

/**
 * Lets time pass for a page whose clock is Playwright's (`page.clock.install()` before it was opened), second by second: what it asks for
 * is answered before the next second begins.
 */
export async function passSeconds(page: Page, seconds: number): Promise<void> {
  const open = new Set<Request>()
  const begin = (request: Request) => isHeld(request) || open.add(request)
  const end = (request: Request) => open.delete(request)
  page.on('request', begin).on('requestfinished', end).on('requestfailed', end)
  for (let second = 0; second < seconds; second++) {
    await page.clock.runFor(1000)
    await until('what the page has asked for is answered', async () => open.size === 0)
  }
  page.off('request', begin).off('requestfinished', end).off('requestfailed', end)
}

/** Lets time pass in the same way until something is so, two minutes at most: what the page would wait for, nobody waits for. */
export async function passUntil(page: Page, isSo: () => Promise<boolean>): Promise<void> {
  for (let second = 0; second < 120; second++) {
    if (await isSo()) return
    await passSeconds(page, 1)
  }
  throw new Error('It is not so after two minutes of the page’s time.')
}

/** Stops the clock of a page that was opened after `page.clock.install()`: from here on only `passSeconds` moves it. */
export async function stopClock(page: Page): Promise<void> {
  const nowMs = await page.evaluate(() => Date.now())
  await page.clock.pauseAt(nowMs + 1000)
}
