import { signInErrors } from '@platform/contract/sign-in'
import type { Page, Route } from 'playwright-core'
import { expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { isLong } from '../support/long.ts'
import { startPeer } from '../support/oidc-peer.ts'
import { administrator, type View } from '../support/portal/open.ts'
import { notSignedIn } from '../support/portal/pages.ts'
import { shot } from '../support/portal/shot.ts'
import { faultsOfLook } from '../support/portal/sound.ts'
import { test as base } from '../support/portal/test.ts'

/** The sign-in: by name and password, and with an identity provider, which here is a real one. */

const test = base
  // oxlint-disable-next-line no-empty-pattern -- vitest reads there what a fixture needs
  .extend('peer', { scope: 'file' }, async ({}, { onCleanup }) => {
    const peer = await startPeer()
    onCleanup(() => peer.close())
    return peer
  })
  .override('settings', { scope: 'file' }, ({ peer }) => ({
    PLAT_OUTBOUND_ALLOW: peer.host,
    PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE: '5',
  }))

const portal = 'https://platform.example.com'
const refused = /^answer 401 POST \/api\/v1\/auth\/session$/
const unknown = [...notSignedIn, /^answer 401 GET \/api\/v1\/portal\/navigation$/]
const stranger: View = { as: 'nobody', allow: [...unknown, refused] }

async function signIn(page: Page, { username, password } = administrator): Promise<void> {
  await page.getByLabel('User name').fill(username)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.keyboard.press('Enter')
}

const at = (page: Page) => page.url().replace(new URL(page.url()).origin, '')

test('name and password lead to the dashboard, and the page is the one of this platform', async ({
  open,
  api: _isSetUp,
}) => {
  const page = await open('/', stranger)
  await page.getByText('Test Platform').waitFor()
  expect(at(page)).toBe('/sign-in')
  await signIn(page)
  await page.waitForURL('**/dashboard')
  await page.goBack()
  await expect.poll(() => at(page)).not.toContain('sign-in')
})

test('a wrong password is told with its trace id, and can be corrected', async ({ open, api: _isSetUp }) => {
  const page = await open('/sign-in', stranger)
  await signIn(page, { ...administrator, password: 'not the one' })
  const alert = page.getByRole('alert')
  await alert.getByText('The username or the password is wrong.').waitFor()
  await alert.getByRole('button', { name: 'Copy trace id' }).waitFor()
  expect(await page.getByLabel('User name').inputValue()).toBe(administrator.username)
  await signIn(page)
  await page.waitForURL('**/dashboard')
})

test.runIf(isLong)('the password is shown only as long as one wants to see it', async ({ open, api: _isSetUp }) => {
  const page = await open('/sign-in', stranger)
  const password = page.getByLabel('Password', { exact: true })
  await password.fill('what is this')
  expect(await password.getAttribute('type')).toBe('password')
  await page.getByRole('button', { name: 'Show what is typed' }).click()
  expect(await password.getAttribute('type')).toBe('text')
  await page.getByRole('button', { name: 'Hide what is typed' }).click()
  expect(await password.getAttribute('type')).toBe('password')
})

test.runIf(isLong)('who signs in goes on to the page that was asked for', async ({ open, api: _isSetUp }) => {
  const page = await open('/clusters?status=Offline', stranger)
  await signIn(page)
  await page.waitForURL('**/clusters?status=Offline')
})

const elsewhere = ['//example.com', 'https://example.com/', '/\\example.com']

test('an address that leads elsewhere leads to the dashboard', async ({ open, api: _isSetUp }) => {
  for (const place of isLong ? elsewhere : elsewhere.slice(-1)) {
    const page = await open(`/sign-in?returnTo=${encodeURIComponent(place)}`, stranger)
    await signIn(page)
    await page.waitForURL('**/dashboard')
  }
})

test.runIf(isLong)('who is signed in already does not sign in again', async ({ open, api: _isSetUp }) => {
  const page = await open('/sign-in?returnTo=%2Fclusters')
  await page.waitForURL('**/clusters')
})

test('too many attempts are told with the time of the next', async ({ open, api: _isSetUp }) => {
  const page = await open('/sign-in', {
    as: 'nobody',
    allow: [...unknown, /^answer (401|429) POST \/api\/v1\/auth\/session$/],
  })
  const message = page.getByText(/Try again in \d+ seconds, at /)
  await expect
    .poll(async () => {
      await signIn(page, { username: 'somebody.else', password: 'guess' })
      await page.getByRole('alert').waitFor()
      return message.isVisible()
    })
    .toBe(true)
})

test.runIf(isLong)(
  'each word that a failed sign-in leads back with is a sentence, with the trace id',
  async ({ open, api: _isSetUp }) => {
    const words = isLong ? signInErrors : signInErrors.slice(0, 3)
    const sentences = new Set<string>()
    const page = await open('/sign-in', stranger)
    for (const word of words) {
      await page.goto(`/sign-in?error=${word}&traceId=0123456789abcdef`)
      const alert = page.getByRole('alert')
      await alert.getByText('0123456789abcdef').waitFor()
      sentences.add((await alert.locator('p').textContent()) ?? '')
    }
    expect(sentences.size).toBe(words.length)
    await page.goto('/sign-in?error=Call%20%2B1%20555%200100&traceId=Call%20%2B1%20555%200100')
    await page.getByRole('alert').getByText('has failed. Try again.').waitFor()
    expect(await page.locator('main').textContent()).not.toContain('555')
  },
)

test('directories are named, providers are buttons, and none that leads to another place', async ({
  open,
  api,
  peer,
}) => {
  const page = await open('/sign-in', stranger)
  expect(await page.getByRole('button', { name: 'Continue with' }).count()).toBe(0)
  const admin = await api.admin
  const add = async (body: object) => answered(await admin.post('/api/v1/platform/identity/providers', body), 201)
  const oidc = { type: 'OIDC', issuer: peer.issuer, clientId: 'platform', clientSecret: 'a secret of the two' }
  const { id } = await add({ ...oidc, displayName: 'Acme <b>login</b>', usernameClaim: 'preferred_username' })
  const directory = {
    bindDn: 'cn=p,dc=example,dc=com',
    userSearchBase: 'dc=example,dc=com',
    bindPassword: 'a secret',
  }
  await add({ type: 'LDAP', url: 'ldaps://directory.example.com', displayName: 'Acme staff', ...directory })
  peer.open([
    {
      clientId: 'platform',
      clientSecret: oidc.clientSecret,
      redirectUri: `${portal}/api/v1/auth/oidc/${id}/callback`,
    },
  ])
  await page.reload()
  await page.getByText('Accounts of Acme staff sign in here too.').waitFor()
  await page.getByRole('button', { name: 'Continue with Acme <b>login</b>' }).waitFor()
  if (isLong) await shot(page, 'sign-in-providers')

  await page.route('**/api/v1/auth/providers', async (route) => {
    const choice = { id, type: 'OIDC', displayName: 'Elsewhere', authorizeUrl: 'https://example.com/authorize' }
    await route.fulfill({ json: { items: [choice] } })
  })
  await page.reload()
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  expect(await page.getByRole('button', { name: 'Elsewhere' }).count()).toBe(0)
})

/**
 * Has a request answered by a server of this machine. A redirect becomes a page that leads on: of the requests that redirects lead to
 * Playwright hands over none.
 */
async function pass(route: Route, server: string): Promise<void> {
  const request = route.request()
  const { origin, host } = new URL(request.url())
  const headers = { ...(await request.allHeaders()), host, 'sec-fetch-site': 'same-origin' }
  const response = await route.fetch({ url: request.url().replace(origin, server), headers, maxRedirects: 0 })
  const { location, ...rest } = response.headers()
  if (location === undefined) return route.fulfill({ response })
  const to = new URL(location, request.url()).href.replaceAll('&', '&amp;')
  const body = `<meta http-equiv="refresh" content="0;url=${to}">`
  return route.fulfill({ status: 200, headers: { ...rest, 'content-type': 'text/html' }, body })
}

test('who comes back from a provider is signed in where the way began; the code leaves the address and works once', async ({
  newPage,
  origin,
  api: _isSetUp,
  peer,
}) => {
  const page = await newPage({ as: 'nobody', allow: [/^(elsewhere|answer 401)/] })
  // The platform is public at an address by https: what the browser asks of it there, it is asked here.
  await page.route(`${portal}/**`, (route) => pass(route, origin))
  await page.route(`${peer.issuer}/**`, (route) => pass(route, peer.issuer))
  peer.present('grace-1', { preferred_username: 'grace', email: 'grace@example.com' })
  await page.goto(`${portal}/jobs?status=Failed`)
  const codes: string[] = []
  page.on('framenavigated', (frame) => codes.push(new URL(frame.url()).searchParams.get('code') ?? ''))
  await page.getByRole('button', { name: 'Continue with Acme' }).click()
  await page.waitForURL(`${portal}/jobs?status=Failed`)
  await page.getByRole('button', { name: 'Account of grace' }).waitFor()

  const code = codes.find((each) => each !== '') ?? ''
  expect(code).not.toBe('')
  await page.context().clearCookies()
  await page.goto(`${portal}/sign-in?code=${code}`)
  await page.getByRole('alert').getByText('was used before').waitFor()
  expect(page.url()).not.toContain(code)
})

test('whoever comes back from a provider in vain, and then mistypes the password, is told and may go on', async ({
  open,
  api: _isSetUp,
}) => {
  const page = await open('/sign-in?code=nobodys', { as: 'nobody', allow: [/^answer 40[01] /] })
  await page.getByRole('alert').waitFor()
  await signIn(page, { ...administrator, password: 'not the one' })
  await page.getByRole('alert').getByText('password').waitFor()
  expect(await page.getByLabel('User name').inputValue()).toBe(administrator.username)
  await signIn(page)
  await page.waitForURL('**/dashboard')
})

test.runIf(isLong)('a session that ends leads to the sign-in, and from there back', async ({ open, api: _isSetUp }) => {
  const page = await open('/settings/account', { allow: [/^answer 401 /] })
  await page.getByRole('heading', { name: 'Account', exact: true }).waitFor()
  await page.context().clearCookies()
  await page.getByRole('tab', { name: 'Sessions' }).click()
  await page.waitForURL('**/sign-in?**')
  await signIn(page)
  await page.waitForURL('**/settings/account?tab=sessions')
})

test.runIf(isLong)('signing out leads to the sign-in, and the session is over', async ({ open, api: _isSetUp }) => {
  const page = await open('/dashboard', { allow: [/^answer 401 /] })
  await page.getByRole('button', { name: 'Account of ada' }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.waitForURL('**/sign-in')
  await page.goto('/dashboard')
  await page.waitForURL('**/sign-in**')
})

test.runIf(isLong)('the sign-in is accessible and fits 360 pixels, in both themes', async ({ open, api: _isSetUp }) => {
  const page = await open('/sign-in', stranger)
  await signIn(page, { ...administrator, password: 'not the one' })
  await page.getByRole('alert').waitFor()
  expect(await faultsOfLook(page, 'sign-in-refused')).toEqual([])
})
