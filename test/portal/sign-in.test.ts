import { signInErrors } from '@platform/contract/sign-in'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { isLong } from '../support/long.ts'
import { button, field, heading } from '../support/portal/locators.ts'
import { administrator, type View } from '../support/portal/open.ts'
import { signedOutErrors } from '../support/portal/pages.ts'
import { test as base } from '../support/portal/test.ts'

const test = base.extend('settings', { scope: 'file' }, { PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE: '5' })

const signedOut: View = {
  as: 'anonymous',
  allow: [...signedOutErrors, /^response (401|429) POST \/api\/v1\/auth\/session$/],
}

async function signIn(page: Page, { username, password } = administrator): Promise<void> {
  await field(page, 'User name').fill(username)
  await field(page, 'Password').fill(password)
  await page.keyboard.press('Enter')
}

test('a wrong password shows its trace id and can be corrected', async ({ open, api: _isSetUp }) => {
  const page = await open('/', signedOut)
  await page.getByText('Test Platform').waitFor()
  expect(new URL(page.url()).pathname).toBe('/sign-in')
  await signIn(page, { ...administrator, password: 'wrong password' })
  const alert = page.getByRole('alert')
  await alert.getByText('The username or the password is wrong.').waitFor()
  await button(alert, 'Copy trace id').waitFor()
  expect(await field(page, 'User name').inputValue()).toBe(administrator.username)
  await signIn(page)
  await page.waitForURL('**/dashboard')
  await page.goBack()
  await expect.poll(() => page.url()).not.toContain('sign-in')
})

test.runIf(isLong)('the password can be shown and hidden', async ({ open, api: _isSetUp }) => {
  const page = await open('/sign-in', signedOut)
  const type = () => field(page, 'Password').getAttribute('type')
  await field(page, 'Password').fill('secret')
  expect(await type()).toBe('password')
  await button(page, 'Show password').click()
  expect(await type()).toBe('text')
  await button(page, 'Hide password').click()
  expect(await type()).toBe('password')
})

test('returns to the requested page, but never to another origin', async ({ open, api: _isSetUp }) => {
  const page = await open('/clusters?status=Offline', signedOut)
  await signIn(page)
  await page.waitForURL('**/clusters?status=Offline')
  const origins = ['//example.com', 'https://example.com/', '/\\example.com']
  for (const returnTo of isLong ? origins : origins.slice(-1)) {
    const page = await open(`/sign-in?returnTo=${encodeURIComponent(returnTo)}`, signedOut)
    await signIn(page)
    await page.waitForURL('**/dashboard')
  }
})

test.runIf(isLong)(
  'a signed-in user skips the sign-in page; open= stays on this origin',
  async ({ open, api: _isSetUp }) => {
    const page = await open('/sign-in?returnTo=%2Fclusters', { allow: [/^response 404 /] })
    await page.waitForURL('**/clusters')
    for (const path of ['/modules/..//example.com', '/modules/..%2f..//example.com', '//example.com/modules/x']) {
      await page.goto(`/?open=${encodeURIComponent(path)}`)
      await heading(page, /./).waitFor()
      expect(page.url()).not.toContain('//example.com')
    }
  },
)

test('a rate limit shows when to retry', async ({ open, api: _isSetUp }) => {
  const page = await open('/sign-in', signedOut)
  const message = page.getByText(/Try again in \d+ seconds, at /)
  await expect
    .poll(async () => {
      await signIn(page, { username: 'other.user', password: 'guess' })
      await page.getByRole('alert').waitFor()
      return message.isVisible()
    })
    .toBe(true)
})

test.runIf(isLong)('each sign-in error of the address has its own message', async ({ open, api: _isSetUp }) => {
  const messages = new Set<string>()
  const page = await open('/sign-in', signedOut)
  const alert = page.getByRole('alert')
  for (const error of signInErrors) {
    await page.goto(`/sign-in?error=${error}&traceId=0123456789abcdef`)
    await alert.getByText('0123456789abcdef').waitFor()
    messages.add((await alert.locator('p').textContent()) ?? '')
  }
  expect(messages.size).toBe(signInErrors.length)
  await page.goto('/sign-in?error=Call%20%2B1%20555%200100&traceId=Call%20%2B1%20555%200100')
  await alert.getByText('failed. Try again.').waitFor()
  expect(await page.locator('main').textContent()).not.toContain('555')
})

test('lists directories as text and OpenID providers as buttons to their own start address', async ({ open, api }) => {
  const page = await open('/sign-in', signedOut)
  expect(await page.getByRole('button', { name: 'Continue with' }).count()).toBe(0)
  const admin = await api.admin
  const add = async (body: object) => expectStatus(await admin.post('/api/v1/platform/identity/providers', body), 201)
  const client = { issuer: 'https://id.example.com', clientId: 'platform', clientSecret: 'client secret' }
  const { id } = await add({ type: 'OIDC', ...client, displayName: 'Acme <b>login</b>' })
  const directory = { bindDn: 'cn=p,dc=example,dc=com', userSearchBase: 'dc=example,dc=com', bindPassword: 'secret' }
  await add({ type: 'LDAP', url: 'ldaps://directory.example.com', displayName: 'Acme staff', ...directory })
  await page.reload()
  await page.getByText('Accounts of Acme staff sign in here too.').waitFor()
  await button(page, 'Continue with Acme <b>login</b>').waitFor()

  await page.route('**/api/v1/auth/providers', async (route) => {
    const provider = { id, type: 'OIDC', displayName: 'Elsewhere', authorizeUrl: 'https://example.com/authorize' }
    await route.fulfill({ json: { items: [provider] } })
  })
  await page.reload()
  await button(page, 'Sign in').waitFor()
  expect(await page.getByRole('button', { name: 'Elsewhere' }).count()).toBe(0)
})

test('an invalid code does not block the password form', async ({ open, api: _isSetUp }) => {
  const page = await open('/sign-in?code=invalid', { as: 'anonymous', allow: [/^response 40[01] /] })
  await page.getByRole('alert').waitFor()
  await signIn(page, { ...administrator, password: 'wrong password' })
  await page.getByRole('alert').getByText('password').waitFor()
  await signIn(page)
  await page.waitForURL('**/dashboard')
})

test.runIf(isLong)('an ended session leads to the sign-in and back to the page', async ({ open, api: _isSetUp }) => {
  const page = await open('/settings/account', { allow: [/^response 401 /] })
  await page.context().clearCookies()
  await page.getByRole('tab', { name: 'Sessions' }).click()
  await page.waitForURL('**/sign-in?**')
  await signIn(page)
  await page.waitForURL('**/settings/account?tab=sessions')
})
