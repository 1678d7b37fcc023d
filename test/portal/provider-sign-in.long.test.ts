import type { Page } from 'playwright-core'
import { afterAll, expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { missingPrograms } from '../support/installed-programs.ts'
import { startOidcProvider } from '../support/oidc-peer.ts'
import { button, dialog, field, heading } from '../support/portal/locators.ts'
import { signedOutErrors } from '../support/portal/pages.ts'
import { testOnOwnPlatform } from '../support/portal/test.ts'
import { startTlsFront } from '../support/tls-front.ts'

/** Sign-in with an OpenID provider over TLS. Each test continues where the previous one ended. */

const peer = await startOidcProvider()
afterAll(() => peer.close())
const skipReason = missingPrograms('openssl')

const platformTest = testOnOwnPlatform
  .extend('settings', { scope: 'file' }, { PLAT_OUTBOUND_ALLOW: peer.host })
  .override('origin', async ({ platform }, { onCleanup }) => {
    const proxy = await startTlsFront(platform.url)
    onCleanup(() => proxy[Symbol.asyncDispose]())
    return proxy.url
  })
  .override('api', async ({ platform, origin }) => {
    const api = await platform.api()
    const body = { ...(await platform.setupBody()), publicUrl: origin }
    expectStatus(await api.anonymous.post('/api/v1/setup/complete', body), 200)
    return api
  })
const test = platformTest.skipIf(skipReason !== '')

const clientSecret = 'client secret'
const click = (page: Page, name: string) => button(page, name).click()
const readAccount = (page: Page): Promise<any> => page.evaluate(async () => (await fetch('/api/v1/auth/me')).json())

const allow = [
  ...signedOutErrors,
  /^response 401 POST \/api\/v1\/auth\/session$/,
  new RegExp(`^external GET ${peer.issuer}/`),
]

async function expectTested(page: Page): Promise<void> {
  await click(page, 'Test provider')
  await expect.poll(() => page.getByRole('list', { name: 'Checks' }).getByText('Passed').count()).toBe(7)
}

test(`adds, tests and changes an OpenID provider${skipReason}`, async ({ api: _isSetUp, open }) => {
  const page = await open('/settings/identity')
  await click(page, 'Add provider')
  await field(page, 'Issuer').fill(peer.issuer)
  await field(page, 'Client id').fill('platform')
  await field(page, 'Client secret').fill('wrong')
  await field(page, 'Name (optional)').fill('Acme')
  await page.getByText('On the sign-in page: “Continue with Acme”').waitFor()
  await click(page, 'Add mapping')
  await page.getByLabel('Group', { exact: true }).fill('operators')
  await page.getByLabel('Role', { exact: true }).selectOption('Operator')
  await page.getByText('More settings').click()
  await page.getByLabel('Scopes').fill('profile email groups')
  await button(dialog(page), 'Add provider').click()
  const redirectUri = await page.getByRole('group', { name: 'Redirect URI', exact: true }).locator('code').innerText()
  expect(redirectUri).toMatch(/^https:\/\/localhost:\d+\/api\/v1\/auth\/oidc\/idp_\w+\/callback$/)
  peer.open([{ clientId: 'platform', clientSecret, redirectUri }])

  await click(page, 'Test provider')
  await page.getByText('The provider does not work yet.').waitFor()
  expect(await page.getByRole('list', { name: 'Checks' }).innerText()).toMatch(
    /Failed\s+Client: .+ the error invalid_client\. It rejects the client or its secret/,
  )
  await field(page, 'Client secret (optional)').fill(clientSecret)
  await click(page, 'Save changes')
  await page.getByText('Acme was changed').first().waitFor()
  await expectTested(page)

  // Without a new secret the stored one stays.
  expect(await field(page, 'Client secret (optional)').inputValue()).toBe('')
  await field(page, 'Name (optional)').fill('Acme directory')
  await click(page, 'Save changes')
  await page.getByText('Acme directory was changed').first().waitFor()
  await expectTested(page)
})

test('returns from the provider to the requested page; the code works once', async ({ origin, open }) => {
  peer.present('adele-1', { preferred_username: 'adele', email: 'adele@example.com', groups: ['operators'] })
  const page = await open('/clusters?status=Offline', { as: 'anonymous', allow })
  const codes: string[] = []
  page.on('framenavigated', (frame) => codes.push(new URL(frame.url()).searchParams.get('code') ?? ''))
  await click(page, 'Continue with Acme directory')
  await heading(page, 'Clusters').waitFor()
  expect(page.url()).toBe(`${origin}/clusters?status=Offline`)
  const profile = await readAccount(page)
  expect(profile).toMatchObject({ username: 'adele', email: 'adele@example.com', roles: ['Operator'] })
  expect(profile.authProvider).toMatch(/^idp_/)
  const cookies = (await page.context().cookies()).filter(({ name }) => /plat_(access|refresh)$/.test(name))
  expect(cookies.map(({ name, httpOnly, secure, sameSite }) => [name, httpOnly, secure, sameSite])).toEqual([
    ['__Host-plat_access', true, true, 'Strict'],
    ['__Host-plat_refresh', true, true, 'Strict'],
  ])
  await page.reload()
  await heading(page, 'Clusters').waitFor()
  await page.goBack().catch(() => undefined)
  expect(page.url()).not.toContain('code=')

  const code = codes.find((each) => each !== '') ?? ''
  expect(code).not.toBe('')
  await page.context().clearCookies()
  await page.goto(`${origin}/sign-in?code=${code}`)
  await page.getByRole('alert').getByText('was used before').waitFor()
  expect(page.url()).not.toContain(code)
})

test('unsaved input survives a new sign-in with the provider', async ({ open }) => {
  const page = await open('/jobs/new', { as: 'anonymous', allow: [...allow, /^response 401 /] })
  const editor = page.getByRole('textbox', { name: 'Script' })
  await click(page, 'Continue with Acme directory')
  await editor.fill('uptime')
  await page.context().clearCookies()
  await heading(page, 'Sign in again', 2).waitFor()
  await click(page, 'Continue with Acme directory')
  await page.getByText('Your unsaved input was restored').first().waitFor()
  await expect.poll(() => editor.innerText()).toBe('uptime')
})
