import { waitFor } from '../wait-for.ts'
import type { Page, Request } from 'playwright-core'
import { waitForPage } from './open.ts'

export async function requestsDuring(page: Page, action: () => Promise<unknown>): Promise<string[]> {
  const requests: string[] = []
  const add = (request: Request) => {
    const { pathname, search } = new URL(request.url())
    requests.push(`${request.method()} ${pathname}${search}`)
  }
  page.on('request', add)
  await action()
  page.off('request', add)
  return requests
}

const pendingRequests = new WeakMap<Page, Set<Request>>()

/** Returns the pending requests of a page. Tracks requests from the first call. */
function pendingOf(page: Page): Set<Request> {
  const pending = pendingRequests.get(page) ?? new Set<Request>()
  if (pendingRequests.has(page)) return pending
  pendingRequests.set(page, pending)
  const end = (request: Request) => pending.delete(request)
  page.on('request', (request) => pending.add(request))
  page.on('requestfinished', end).on('requestfailed', end)
  return pending
}

export async function openWithStoppedClock(page: Page, path: string): Promise<Page> {
  pendingOf(page)
  await page.clock.install()
  await page.goto(path)
  await waitForPage(page)
  await stopClock(page)
  return page
}

/** Stops the clock of a page that was opened after `page.clock.install()`. */
export async function stopClock(page: Page): Promise<void> {
  const pause = async () => page.clock.pauseAt((await page.evaluate(() => Date.now())) + 1000)
  // If a slow page passes that time first, the call pauses the clock but fails. The next call then succeeds.
  await pause().catch(pause)
}

/** Advances a page's installed clock second by second. Waits for pending requests before each second and at the end. */
export async function advanceSeconds(page: Page, seconds: number): Promise<void> {
  const pending = pendingOf(page)
  for (let second = 0; second < seconds; second++) {
    await waitFor('requests to complete', async () => pending.size === 0)
    await page.clock.runFor(1000)
  }
  await waitFor('requests to complete', async () => pending.size === 0)
}

export async function advanceUntil(page: Page, condition: () => Promise<boolean>): Promise<void> {
  for (let second = 0; second < 120; second++) {
    if (await condition()) return
    await advanceSeconds(page, 1)
  }
  throw new Error('The condition did not hold within two minutes of page time.')
}

/** Makes a page report that its tab is hidden or visible, because a headless browser has no background tabs. */
export function setVisible(page: Page, isVisible: boolean): Promise<void> {
  return page.evaluate((isVisible) => {
    const { document, Event }: any = globalThis
    const define = (name: string, value: unknown) =>
      Object.defineProperty(document, name, { configurable: true, get: () => value })
    define('visibilityState', isVisible ? 'visible' : 'hidden')
    define('hidden', !isVisible)
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))
  }, isVisible)
}

type UrlPattern = Parameters<Page['route']>[0]

const failure = { error: 'database_unavailable', message: 'Not now.', traceId: 'trace-4711' }

export async function failRequests(page: Page, url: UrlPattern, method?: string): Promise<() => Promise<void>> {
  await page.route(url, (route) =>
    method === undefined || route.request().method() === method
      ? route.fulfill({ status: 503, json: failure })
      : route.fallback(),
  )
  return () => page.unroute(url)
}

export async function holdRequests(page: Page, url: UrlPattern, method: string): Promise<() => void> {
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
  await page.route(url, async (route) => {
    if (route.request().method() === method) await isReleased
    await route.fallback()
  })
  return release
}
