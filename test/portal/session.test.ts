import type { BrowserContext, Page, Request } from 'playwright-core'
import { expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { isLong } from '../support/long.ts'
import { settled } from '../support/portal/open.ts'
import { heading } from '../support/portal/parts.ts'
import { test } from '../support/portal/shared.ts'

/** The session of a browser: renewed while one works, ended in all tabs, and never mixed with another user's. */

/** What is answered once the session is over: each tab looks, and tries to renew it. */
const over = [/^answer 401 /]

/** As fifteen minutes do: the access token is gone, the refresh token is not. */
const expire = (context: BrowserContext) => context.clearCookies({ name: 'plat_access' })

const refreshed = (request: Request): boolean => request.url().endsWith('/api/v1/auth/session/refresh')

async function signOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Account of/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await heading(page, 'Sign in').waitFor()
}

test('what is sent with an expired token is done once, after one renewal, with all that it held', async ({
  open,
  api,
}) => {
  const page = await open('/clusters/register', { allow: over })
  const keys: (string | undefined)[] = []
  let renewals = 0
  page.on('request', (request) => {
    if (refreshed(request)) renewals += 1
    const isSent = request.method() === 'POST' && request.url().endsWith('/api/v1/clusters')
    if (isSent) keys.push(request.headers()['idempotency-key'])
  })
  await page.getByLabel('Name').fill('once only')
  await expire(page.context())
  await page.getByRole('button', { name: 'Register cluster' }).click()
  await page.getByRole('heading', { name: 'Start the relay of once only' }).waitFor()
  expect(renewals).toBe(1)
  expect(keys).toHaveLength(2)
  expect(keys[0]).toMatch(/^\S{8,}$/)
  expect(keys[1]).toBe(keys[0])
  const { body } = await (await api.admin).get('/api/v1/clusters?search=once')
  expect(body.totalCount).toBe(1)
})

test.runIf(isLong)(
  'a renewal that must wait is told with its trace id, ends no session, and what was typed is sent later',
  async ({ open, api: _isSetUp }) => {
    const page = await open('/clusters/register', { allow: [...over, /^answer 429 /] })
    const body = { error: 'rate_limited', message: 'Too many requests.', traceId: 'trace-of-the-renewal' }
    await page.route('**/session/refresh', (route) =>
      route.fulfill({ status: 429, json: body, headers: { 'retry-after': '30' } }),
    )
    await page.getByLabel('Name').fill('patience')
    await expire(page.context())
    await page.getByRole('button', { name: 'Register cluster' }).click()
    await page.getByRole('alert').getByText('trace-of-the-renewal').waitFor()
    expect(page.url()).toContain('/clusters/register')
    await page.unroute('**/session/refresh')
    await page.getByRole('button', { name: 'Register cluster' }).click()
    await page.getByRole('heading', { name: 'Start the relay of patience' }).waitFor()
  },
)

test('whoever signs out while the session is renewed does so after it, and is not signed in again by its answer', async ({
  open,
  api: _isSetUp,
}) => {
  const page = await open('/dashboard', { allow: over })
  const seen: string[] = []
  page.on('request', (request) => {
    if (request.method() === 'DELETE') seen.push('signed out')
  })
  const [asked, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await page.route('**/session/refresh', async (route) => {
    asked.resolve()
    await goOn.promise
    seen.push('renewed')
    await route.continue()
  })
  await expire(page.context())
  await page.getByRole('link', { name: 'Clusters', exact: true }).first().click()
  await asked.promise
  await page.getByRole('button', { name: /^Account of/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  const waiting = async () => {
    const { pending }: any = await page.evaluate('navigator.locks.query()')
    return pending.map(({ name }: any) => name)
  }
  await expect.poll(waiting).toContain('session')
  goOn.resolve()
  await heading(page, 'Sign in').waitFor()
  expect(seen).toEqual(['renewed', 'signed out'])
  expect(await page.context().cookies()).toEqual([])
})

test('what is sent again because its answer was lost is not done again', async ({ open, api: _isSetUp }) => {
  const page = await open('/clusters/register', { allow: [/^failed POST /, /^console error: .*ERR_FAILED /] })
  await page.route(
    '**/api/v1/clusters',
    async (route) => {
      await route.fetch()
      await route.abort()
    },
    { times: 1 },
  )
  await page.getByLabel('Name').fill('lost and found')
  await page.getByRole('button', { name: 'Register cluster' }).click()
  await page.getByRole('alert').getByText('The platform cannot be reached').waitFor()
  await page.getByRole('button', { name: 'Register cluster' }).click()
  await page.getByRole('heading', { name: 'Start the relay of lost and found' }).waitFor()
})

test('whoever signs out is signed out in every tab, and no tab goes on asking', async ({ open, api: _isSetUp }) => {
  const page = await open('/dashboard', { allow: over })
  const other = await page.context().newPage()
  await other.goto('/clusters')
  await settled(other)
  await signOut(page)
  await heading(other, 'Sign in').waitFor()
  expect(new URL(other.url()).searchParams.get('returnTo')).toBe('/clusters')
  expect(new URL(page.url()).search).toBe('')
  expect(await page.context().cookies()).not.toContainEqual(expect.objectContaining({ name: 'plat_refresh' }))
})

test('a tab shows nothing of the user before once somebody else has signed in', async ({ open, api, user }) => {
  const page = await open('/settings/account')
  await page.getByText(`${user.username}@example.com`).first().waitFor()
  const { username, password } = await api.newPerson('Viewer')
  const other = await page.context().newPage()
  await other.goto('/sign-in?returnTo=/clusters')
  // It is signed in already, and goes on: the session is changed as a second sign-in does.
  await heading(other, 'Clusters').waitFor()
  await other.evaluate(
    async (credentials) => {
      const { fetch, BroadcastChannel }: any = globalThis
      const headers = { 'content-type': 'application/json' }
      await fetch('/api/v1/auth/session', { method: 'POST', headers, body: JSON.stringify(credentials) })
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has no other origin
      new BroadcastChannel('session').postMessage('changed')
    },
    { username, password },
  )
  await page.getByRole('button', { name: `Account of ${username}` }).waitFor()
  expect(await page.getByText(`${user.username}@example.com`).count()).toBe(0)
})

test.runIf(isLong)(
  'where the page came without TLS the platform itself says what it wants, and texts are copied by hand',
  async ({ newPage, api: _isSetUp }) => {
    const page = await newPage({ as: 'nobody', allow: over })
    // What browsers keep from such pages.
    await page.addInitScript(() => {
      const { Navigator, Crypto }: any = globalThis
      for (const name of ['locks', 'clipboard']) delete Navigator.prototype[name]
      delete Crypto.prototype.randomUUID
    })
    await page.goto('/clusters')
    await heading(page, 'Sign in').waitFor()
    await page.getByLabel('User name').fill('ada')
    await page.getByLabel('Password', { exact: true }).fill('wrong horse battery')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('button', { name: 'Copy trace id' }).click()
    await page.getByText('select the text and copy it yourself').waitFor()
  },
)

test.runIf(isLong)('an address that a link has made up leads to no other place', async ({ open, api: _isSetUp }) => {
  for (const place of ['/modules/..//example.com', '/modules/..%2f..//example.com', '//example.com/modules/x']) {
    const page = await open(`/?open=${encodeURIComponent(place)}`, { allow: [/^answer 404 /] })
    expect(page.url()).not.toContain('//example.com')
  }
})

test.runIf(isLong)('a user whose roles were changed meanwhile is edited as the user is now', async ({ open, api }) => {
  const { id, username } = await api.newPerson('Viewer')
  const page = await open('/settings/users')
  const edit = async () => {
    await page.getByRole('button', { name: `Actions for ${username}` }).click()
    await page.getByRole('menuitem', { name: 'Edit' }).click()
    const dialog = page.getByRole('dialog', { name: `Edit ${username}` })
    await dialog.getByRole('checkbox', { name: /^Operator/ }).waitFor()
    return dialog
  }
  const first = await edit()
  await first.getByRole('button', { name: 'Cancel' }).click()
  await first.waitFor({ state: 'hidden' })
  answered(await (await api.admin).patch(`/api/v1/users/${id}`, { roles: ['Operator'] }), 200)
  const again = await edit()
  expect(await again.getByRole('checkbox', { name: /^Operator/ }).isChecked()).toBe(true)
})

test.runIf(isLong)('a list of jobs asks for the names of all its clusters at once', async ({ open, api }) => {
  const admin = await api.admin
  for (const name of ['names-1', 'names-2', 'names-3']) {
    const relay = await api.enroll((await api.newCluster({ name })).enrollmentToken)
    answered(await admin.post('/api/v1/jobs', jobOn(relay.clusterId)), 202)
  }
  const page = await open('/dashboard')
  const asked: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).pathname + new URL(request.url()).search))
  await page.getByRole('link', { name: 'Jobs', exact: true }).first().click()
  for (const name of ['names-1', 'names-2', 'names-3']) await page.getByRole('link', { name, exact: true }).waitFor()
  expect(asked.filter((path) => path.startsWith('/api/v1/clusters/clus_'))).toEqual([])
  expect(asked.filter((path) => path.includes('ids='))).toHaveLength(1)
})

const jobOn = (clusterId: string) => ({ clusterId, type: 'InvokeScript', payload: { script: 'uname' } })
