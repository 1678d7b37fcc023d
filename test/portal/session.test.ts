import type { BrowserContext, Page, Request } from 'playwright-core'
import { expect } from 'vitest'
import { isLong } from '../support/long.ts'
import { button, field, heading, mainLink } from '../support/portal/locators.ts'
import { waitForPage } from '../support/portal/open.ts'
import { test } from '../support/portal/shared.ts'

/** Browser sessions: renewed in use, ended in all tabs, and never shared between users. */

const unauthorized = [/^response 401 /]

/** Removes the access token, as after fifteen minutes; the refresh token stays. */
const expireAccessToken = (context: BrowserContext) => context.clearCookies({ name: 'plat_access' })

const isRefresh = (request: Request): boolean => request.url().endsWith('/api/v1/auth/session/refresh')

async function clickSignOut(page: Page): Promise<void> {
  await button(page, /^Account of/).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
}

async function register(page: Page, name: string): Promise<void> {
  await field(page, 'Name').fill(name)
  await button(page, 'Register cluster').click()
}
const registered = (page: Page, name: string) => heading(page, `Start the relay of ${name}`, 2).waitFor()

test('a request with an expired token is repeated once, after one renewal, with the same idempotency key', async ({
  open,
  api,
}) => {
  const page = await open('/clusters/register', { allow: unauthorized })
  const keys: (string | undefined)[] = []
  let renewals = 0
  page.on('request', (request) => {
    if (isRefresh(request)) renewals += 1
    const isPost = request.method() === 'POST' && request.url().endsWith('/api/v1/clusters')
    if (isPost) keys.push(request.headers()['idempotency-key'])
  })
  await expireAccessToken(page.context())
  await register(page, 'once only')
  await registered(page, 'once only')
  expect(renewals).toBe(1)
  expect(keys).toHaveLength(2)
  expect(keys[0]).toMatch(/^\S{8,}$/)
  expect(keys[1]).toBe(keys[0])
  expect((await (await api.admin).get('/api/v1/clusters?search=once')).body.totalCount).toBe(1)
})

test('retrying after a lost response does not create a second resource', async ({ open, api }) => {
  const page = await open('/clusters/register', { allow: [/^failed POST /, /^console error: .*ERR_FAILED /] })
  await page.route(
    '**/api/v1/clusters',
    async (route) => {
      await route.fetch()
      await route.abort()
    },
    { times: 1 },
  )
  await register(page, 'lost and found')
  await page.getByRole('alert').getByText('The platform cannot be reached').waitFor()
  await button(page, 'Register cluster').click()
  await registered(page, 'lost and found')
  expect((await (await api.admin).get('/api/v1/clusters?search=lost')).body.totalCount).toBe(1)
})

test.runIf(isLong)('a rate-limited renewal does not end the session', async ({ open, api: _isSetUp }) => {
  const page = await open('/clusters/register', { allow: [...unauthorized, /^response 429 /] })
  const json = { error: 'rate_limited', message: 'Too many requests.', traceId: 'trace-of-the-renewal' }
  await page.route('**/session/refresh', (route) =>
    route.fulfill({ status: 429, json, headers: { 'retry-after': '30' } }),
  )
  await expireAccessToken(page.context())
  await register(page, 'renewed later')
  await page.getByRole('alert').getByText('trace-of-the-renewal').waitFor()
  expect(page.url()).toContain('/clusters/register')
  await page.unroute('**/session/refresh')
  await button(page, 'Register cluster').click()
  await registered(page, 'renewed later')
})

test('a sign-out during a renewal waits for it and leaves no session', async ({ open, api: _isSetUp }) => {
  const page = await open('/dashboard', { allow: unauthorized })
  const events: string[] = []
  page.on('request', (request) => {
    if (request.method() === 'DELETE') events.push('signed out')
  })
  const [started, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await page.route('**/session/refresh', async (route) => {
    started.resolve()
    await held.promise
    events.push('renewed')
    await route.continue()
  })
  await expireAccessToken(page.context())
  await mainLink(page, 'Clusters').first().click()
  await started.promise
  await clickSignOut(page)
  const pendingLocks = async () => {
    const { pending }: any = await page.evaluate('navigator.locks.query()')
    return pending.map(({ name }: any) => name)
  }
  await expect.poll(pendingLocks).toContain('session')
  held.resolve()
  await heading(page, 'Sign in').waitFor()
  expect(events).toEqual(['renewed', 'signed out'])
  expect(await page.context().cookies()).toEqual([])
})

test('a sign-out ends the session in every tab', async ({ open, api: _isSetUp }) => {
  const page = await open('/dashboard', { allow: unauthorized })
  const other = await page.context().newPage()
  await other.goto('/clusters')
  await waitForPage(other)
  await clickSignOut(page)
  await heading(page, 'Sign in').waitFor()
  await heading(other, 'Sign in').waitFor()
  expect(new URL(other.url()).searchParams.get('returnTo')).toBe('/clusters')
  expect(new URL(page.url()).search).toBe('')
  expect(await page.context().cookies()).not.toContainEqual(expect.objectContaining({ name: 'plat_refresh' }))
})

test('a tab shows no data of the previous user after another one signed in', async ({ open, api, user }) => {
  const page = await open('/settings/account')
  await page.getByText(`${user.username}@example.com`).first().waitFor()
  const { username, password } = await api.newPerson('Viewer')
  const other = await page.context().newPage()
  await other.goto('/sign-in?returnTo=/clusters')
  await heading(other, 'Clusters').waitFor()
  // A second sign-in in the same browser.
  await other.evaluate(
    async (credentials) => {
      const { fetch, BroadcastChannel }: any = globalThis
      const headers = { 'content-type': 'application/json' }
      await fetch('/api/v1/auth/session', { method: 'POST', headers, body: JSON.stringify(credentials) })
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- channels have no target origin
      new BroadcastChannel('session').postMessage('changed')
    },
    { username, password },
  )
  await button(page, `Account of ${username}`).waitFor()
  expect(await page.getByText(`${user.username}@example.com`).count()).toBe(0)
})

test.runIf(isLong)(
  'works without TLS, where browsers offer no locks, clipboard or UUIDs',
  async ({ newPage, api: _isSetUp }) => {
    const page = await newPage({ as: 'anonymous', allow: unauthorized })
    await page.addInitScript(() => {
      const { Navigator, Crypto }: any = globalThis
      for (const name of ['locks', 'clipboard']) delete Navigator.prototype[name]
      delete Crypto.prototype.randomUUID
    })
    await page.goto('/clusters')
    await heading(page, 'Sign in').waitFor()
    await field(page, 'User name').fill('ada')
    await field(page, 'Password').fill('wrong password')
    await button(page, 'Sign in').click()
    await button(page, 'Copy trace id').click()
    await page.getByText('Select the text and copy it.').waitFor()
  },
)
