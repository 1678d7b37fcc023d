import { gzipSync } from 'node:zlib'
import { signInErrors } from '@platform/contract/sign-in'
import type { BrowserContext, Page, Response } from 'playwright-core'
import { expect } from 'vitest'
import { isLong } from '../support/long.ts'
import { button, field, heading, mainLink, openRegistration } from '../support/portal/locators.ts'
import { type Credentials, type View, waitForPage } from '../support/portal/open.ts'
import { signedOutErrors } from '../support/portal/pages.ts'
import { test } from '../support/portal/test.ts'

/**
 * Tests of the sign-in page and of browser sessions: sessions are renewed in use, end in all tabs, and are never shared
 * between users.
 */

const signedOut: View = {
  as: 'anonymous',
  allow: [...signedOutErrors, /^response (400|401|429) POST \/api\/v1\/auth\/session$/],
}
const unauthorizedErrors = [/^response 401 /]

async function signIn(page: Page, { username, password }: Credentials): Promise<void> {
  await field(page, 'User name').fill(username)
  await field(page, 'Password').fill(password)
  await page.keyboard.press('Enter')
}

async function signOut(page: Page): Promise<void> {
  await button(page, /^Account of/).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
}

/** Removes the access token, as after fifteen minutes; the refresh token stays. */
const expireAccessToken = (context: BrowserContext) => context.clearCookies({ name: 'plat_access' })

async function register(page: Page, name: string): Promise<void> {
  await field(page, 'Name').fill(name)
  await button(page, 'Register cluster').click()
}
const waitForRegistration = (page: Page, name: string) => heading(page, `Start the relay of ${name}`, 2).waitFor()

test('a wrong password shows its trace id and can be corrected', async ({ open, user }) => {
  const page = await open('/', signedOut)
  await page.getByText('Test Platform').waitFor()
  expect(new URL(page.url()).pathname).toBe('/sign-in')
  await signIn(page, { ...user, password: 'wrong password' })
  const alert = page.getByRole('alert')
  await alert.getByText('The username or the password is wrong.').waitFor()
  await alert.getByText('Details', { exact: true }).click()
  await button(alert, 'Copy trace id').waitFor()
  expect(await field(page, 'User name').inputValue()).toBe(user.username)
  await button(page, 'Show password').click()
  expect(await field(page, 'Password').getAttribute('type')).toBe('text')
  await signIn(page, user)
  await page.waitForURL('**/dashboard')
  await page.goBack()
  await expect.poll(() => page.url()).not.toContain('sign-in')
})

test('sign-in and dashboard load at most 215 KB of gzipped JavaScript', async ({ newPage, user }) => {
  const page = await newPage({ as: 'anonymous', allow: signedOutErrors })
  const scripts = new Map<string, Response>()
  page.on('response', (response: Response) => {
    const isScript = /javascript/.test(response.headers()['content-type'] ?? '')
    if (isScript && response.ok()) scripts.set(response.url(), response)
  })
  await page.goto('/sign-in')
  await waitForPage(page)
  await signIn(page, user)
  await page.waitForURL('**/dashboard')
  await waitForPage(page)
  // Waits for prefetched pages, which count too.
  await page.waitForLoadState('networkidle')
  const bodies = await Promise.all([...scripts.values()].map((response) => response.body()))
  const sizes = bodies.map((body) => gzipSync(body, { level: 9 }).length)
  const total = sizes.reduce((sum, bytes) => sum + bytes, 0)
  console.log(`First load: ${total} bytes of gzipped JavaScript`)
  expect(total).toBeGreaterThan(0)
  expect(total).toBeLessThanOrEqual(215_000)
})

test('repeats a request with an expired token once, with the same idempotency key', async ({ open, api }) => {
  const page = await open('/clusters/register', { allow: unauthorizedErrors })
  const keys: (string | undefined)[] = []
  let renewals = 0
  page.on('request', (request) => {
    if (request.url().endsWith('/api/v1/auth/session/refresh')) renewals += 1
    const isPost = request.method() === 'POST' && request.url().endsWith('/api/v1/clusters')
    if (isPost) keys.push(request.headers()['idempotency-key'])
  })
  await expireAccessToken(page.context())
  await register(page, 'once only')
  await waitForRegistration(page, 'once only')
  expect(renewals).toBe(1)
  expect(keys).toHaveLength(2)
  expect(keys[0]).toMatch(/^\S{8,}$/)
  expect(keys[1]).toBe(keys[0])
  expect((await (await api.admin).get('/api/v1/clusters?search=once')).body.totalCount).toBe(1)
})

test('a sign-out ends the session in every tab; a new sign-in returns to the page', async ({ open, user }) => {
  const page = await open('/dashboard', { allow: unauthorizedErrors })
  const otherPage = await page.context().newPage()
  await otherPage.goto('/clusters?status=Offline')
  await waitForPage(otherPage)
  await signOut(page)
  await heading(page, 'Sign in').waitFor()
  await heading(otherPage, 'Sign in').waitFor()
  expect(new URL(page.url()).search).toBe('')
  expect(await page.context().cookies()).not.toContainEqual(expect.objectContaining({ name: 'plat_refresh' }))
  await signIn(otherPage, user)
  await otherPage.waitForURL('**/clusters?status=Offline')
})

test.runIf(isLong)(
  'a signed-in user skips the sign-in page, also after an expired attempt; no parameter leads to another origin',
  async ({ open }) => {
    const page = await open('/sign-in?returnTo=%2Fclusters', { allow: [/^response 404 /, /^response 401 POST /] })
    await page.waitForURL('**/clusters')
    for (const attempt of ['error=sign_in_expired&traceId=0123456789abcdef', 'code=expired']) {
      await page.goto(`/sign-in?${attempt}&returnTo=%2Fjobs`)
      await page.waitForURL('**/jobs')
      await page.goto(`/sign-in?${attempt}&returnTo=%2F%2Fexample.com`)
      await page.waitForURL('**/dashboard')
    }
    for (const path of ['/modules/..//example.com', '/modules/..%2f..//example.com', '//example.com/modules/x']) {
      await page.goto(`/?open=${encodeURIComponent(path)}`)
      await heading(page, /./).waitFor()
      expect(page.url()).not.toContain('//example.com')
    }
  },
)

test.runIf(isLong)('a rate limit shows when to retry', async ({ open, user }) => {
  const page = await open('/sign-in', signedOut)
  const json = { error: 'rate_limited', message: 'Too many requests.', traceId: '0'.repeat(32) }
  const response = { status: 429, json, headers: { 'retry-after': '30' } }
  await page.route('**/api/v1/auth/session', (route) => route.fulfill(response))
  await signIn(page, user)
  await page.getByText(/Try again in 30 seconds, at /).waitFor()
})

test.runIf(isLong)('each sign-in error code in the URL has its own message', async ({ open, api: _tenant }) => {
  const messages = new Set<string>()
  const page = await open('/sign-in', signedOut)
  const alert = page.getByRole('alert')
  for (const error of signInErrors) {
    await page.goto(`/sign-in?error=${error}&traceId=0123456789abcdef`)
    await alert.getByText('Details', { exact: true }).click()
    await alert.getByText('0123456789abcdef').waitFor()
    messages.add((await alert.locator('p').first().textContent()) ?? '')
  }
  expect(messages.size).toBe(signInErrors.length)
  await page.goto('/sign-in?error=Call%20%2B1%20555%200100&traceId=Call%20%2B1%20555%200100')
  await alert.getByText('failed. Try again.').waitFor()
  expect(await page.locator('main').textContent()).not.toContain('555')
})

test.runIf(isLong)('lists directories as text and providers of this origin as buttons', async ({ newPage, origin }) => {
  const page = await newPage(signedOut)
  const provider = (displayName: string, authorizeUrl?: string) => ({ id: displayName, displayName, authorizeUrl })
  const items = [
    { ...provider('Acme <b>login</b>', `${origin}/api/v1/auth/oidc/idp_1/authorize`), type: 'OIDC' },
    { ...provider('Acme staff'), type: 'LDAP' },
    { ...provider('Elsewhere', 'https://example.com/authorize'), type: 'OIDC' },
  ]
  await page.route('**/api/v1/auth/providers', (route) => route.fulfill({ json: { items } }))
  await page.goto('/sign-in')
  await page.getByText('Accounts of Acme staff sign in here too.').waitFor()
  await button(page, 'Continue with Acme <b>login</b>').waitFor()
  expect(await page.getByRole('button', { name: 'Elsewhere' }).count()).toBe(0)
})

test.runIf(isLong)('an invalid code does not block the password form', async ({ open, user }) => {
  const page = await open('/sign-in?code=invalid', { as: 'anonymous', allow: [/^response 40[01] /] })
  await page.getByRole('alert').waitFor()
  await signIn(page, { ...user, password: 'wrong password' })
  await page.getByRole('alert').getByText('password').waitFor()
  await signIn(page, user)
  await page.waitForURL('**/dashboard')
})

test.runIf(isLong)('retrying after a lost response does not create a second resource', async ({ open, api }) => {
  const page = await open('/clusters', { allow: [/^failed POST /, /^console error: .*ERR_FAILED /] })
  await openRegistration(page)
  const loseResponse = async (route: Parameters<Parameters<Page['route']>[1]>[0]) => {
    await route.fetch()
    await route.abort()
  }
  await page.route('**/api/v1/clusters', loseResponse, { times: 1 })
  await register(page, 'lost and found')
  await page.getByRole('alert').getByText('The platform cannot be reached').waitFor()
  await button(page, 'Register cluster').click()
  await waitForRegistration(page, 'lost and found')
  expect((await (await api.admin).get('/api/v1/clusters?search=lost')).body.totalCount).toBe(1)
})

test('a renewal whose response is lost does not end the session', async ({ newPage }) => {
  const lostResponseErrors = [/^failed /, /^console error: (.*ERR_FAILED |ApiError: The platform cannot be reached)/]
  const page = await newPage({ allow: [...unauthorizedErrors, ...lostResponseErrors] })
  const keys: string[] = []
  await page.route('**/session/refresh', async (route) => {
    const { cookie = '', origin = '', 'idempotency-key': key = '' } = await route.request().allHeaders()
    keys.push(key)
    if (keys.length > 1) return route.continue()
    // `route.fetch` would store the cookies of the response.
    const headers = { cookie, origin, 'idempotency-key': key, 'sec-fetch-site': 'same-origin' }
    expect((await fetch(route.request().url(), { method: 'POST', headers })).status).toBe(200)
    return route.abort()
  })
  await expireAccessToken(page.context())
  await page.goto('/dashboard')
  await page.getByText('The platform cannot be reached').first().waitFor()
  await page.reload()
  await heading(page, 'Dashboard').waitFor()
  expect(keys).toEqual([keys[0], keys[0]])
  await expireAccessToken(page.context())
  await page.reload()
  await heading(page, 'Dashboard').waitFor()
  expect(keys[2]).not.toBe(keys[0])
})

test.runIf(isLong)('a rate-limited renewal does not end the session', async ({ open }) => {
  const page = await open('/clusters/register', { allow: [...unauthorizedErrors, /^response 429 /] })
  const json = { error: 'rate_limited', message: 'Too many requests.', traceId: 'trace-of-the-renewal' }
  const response = { status: 429, json, headers: { 'retry-after': '30' } }
  await page.route('**/session/refresh', (route) => route.fulfill(response))
  await expireAccessToken(page.context())
  await register(page, 'renewed later')
  await page.getByRole('alert').getByText('Details', { exact: true }).click()
  await page.getByRole('alert').getByText('trace-of-the-renewal').waitFor()
  expect(page.url()).toContain('/clusters/register')
  await page.unroute('**/session/refresh')
  await button(page, 'Register cluster').click()
  await waitForRegistration(page, 'renewed later')
})

test.runIf(isLong)('a sign-out during a renewal waits for it and leaves no session', async ({ open }) => {
  const page = await open('/dashboard', { allow: unauthorizedErrors })
  const events: string[] = []
  page.on('request', (request) => {
    if (request.method() === 'DELETE') events.push('signed out')
  })
  const [started, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await page.route('**/session/refresh', async (route) => {
    started.resolve()
    await released.promise
    events.push('renewed')
    await route.continue()
  })
  await expireAccessToken(page.context())
  await mainLink(page, 'Clusters').first().click()
  await started.promise
  await signOut(page)
  const readPendingLocks = async () => {
    const { pending }: any = await page.evaluate('navigator.locks.query()')
    return pending.map(({ name }: any) => name)
  }
  await expect.poll(readPendingLocks).toContain('session')
  released.resolve()
  await heading(page, 'Sign in').waitFor()
  expect(events).toEqual(['renewed', 'signed out'])
  // The cookie of the device is no session, and stays.
  expect((await page.context().cookies()).map(({ name }) => name)).toEqual(['plat_device'])
})

test.runIf(isLong)('a tab shows no data of the previous user', async ({ open, api, user }) => {
  const page = await open('/settings/account')
  await page.getByText(`${user.username}@example.com`).first().waitFor()
  const { username, password } = await api.newUser('Viewer')
  const otherPage = await page.context().newPage()
  await otherPage.goto('/sign-in?returnTo=/clusters')
  await heading(otherPage, 'Clusters').waitFor()
  await otherPage.evaluate(
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

test.runIf(isLong)('works without locks, clipboard and UUIDs, which need TLS', async ({ newPage, user }) => {
  const page = await newPage({ as: 'anonymous', allow: unauthorizedErrors })
  await page.addInitScript(() => {
    const { Navigator, Crypto }: any = globalThis
    for (const name of ['locks', 'clipboard']) delete Navigator.prototype[name]
    delete Crypto.prototype.randomUUID
  })
  await page.goto('/clusters')
  await heading(page, 'Sign in').waitFor()
  await signIn(page, { ...user, password: 'wrong password' })
  await page.getByRole('alert').getByText('Details', { exact: true }).click()
  await button(page, 'Copy trace id').click()
  await page.getByText('Select the text and copy it.').waitFor()
})
