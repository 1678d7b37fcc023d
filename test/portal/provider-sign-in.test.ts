import type { Page } from 'playwright-core'
import { afterAll, expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { freePorts } from '../support/free-ports.ts'
import { startOidcProvider } from '../support/oidc-peer.ts'
import { missingPrograms } from '../support/installed-programs.ts'
import { button, dialog, field, heading } from '../support/portal/locators.ts'
import { signedOutErrors } from '../support/portal/pages.ts'
import { test as base } from '../support/portal/test.ts'
import { groupEntry, groupsDn, serviceAccount, startSlapd, userEntry, usersDn } from '../support/slapd.ts'
import { startTlsFront } from '../support/tls-front.ts'

/**
 * Sign-in with a real OpenID provider and a real directory behind a TLS proxy, from configuration to the first page. Each test continues
 * where the previous one ended.
 */

const peer = await startOidcProvider()
afterAll(() => peer.close())
const [plainPort = 0, tlsPort = 0] = await freePorts(2)

const lacksTls = missingPrograms('openssl')
const lacksDirectory = missingPrograms('slapd', 'slapadd', 'openssl')

const test = base
  .extend('settings', { scope: 'file' }, { PLAT_OUTBOUND_ALLOW: `${peer.host},localhost:${tlsPort}` })
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

const clientSecret = 'client secret'
const click = (page: Page, name: string) => button(page, name).click()

const allow = [
  ...signedOutErrors,
  /^response 401 POST \/api\/v1\/auth\/session$/,
  new RegExp(`^external GET ${peer.issuer}/`),
]

async function addMapping(page: Page, name: string, role: string): Promise<void> {
  await click(page, 'Add mapping')
  const mapping = page.getByRole('group', { name: 'Mapping 1' })
  await mapping.getByLabel('Group').fill(name)
  await mapping.getByLabel('Role').selectOption(role)
}

async function expectTested(page: Page): Promise<void> {
  await click(page, 'Test provider')
  await expect.poll(() => page.getByRole('list', { name: 'Checks' }).getByText('Passed').count()).toBe(4)
}

const me = (page: Page): Promise<any> => page.evaluate(async () => (await fetch('/api/v1/auth/me')).json())

test.skipIf(lacksTls !== '')(
  `an OpenID provider is added, tested and changed${lacksTls}`,
  async ({ api: _isSetUp, open }) => {
    const page = await open('/settings/identity')
    await click(page, 'Add provider')
    await field(page, 'Issuer').fill(peer.issuer)
    await field(page, 'Client id').fill('platform')
    await field(page, 'Client secret').fill('wrong secret')
    await field(page, 'Name (optional)').fill('Acme')
    await page.getByText('On the sign-in page: “Continue with Acme”').waitFor()
    await addMapping(page, 'operators', 'Operator')
    await page.getByText('More settings').click()
    await page.getByLabel('Scopes').fill('profile email groups')
    await button(dialog(page), 'Add provider').click()
    const redirectUri = await page.getByRole('group', { name: 'Redirect URI', exact: true }).locator('code').innerText()
    expect(redirectUri).toMatch(/^https:\/\/localhost:\d+\/api\/v1\/auth\/oidc\/idp_\w+\/callback$/)
    peer.open([{ clientId: 'platform', clientSecret, redirectUri }])

    await click(page, 'Test provider')
    await page.getByText('The provider does not work yet.').waitFor()
    expect(await page.getByRole('list', { name: 'Checks' }).innerText()).toMatch(/Failed\s+Client: The issuer rejects/)
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
  },
)

test.skipIf(lacksTls !== '')(
  `a provider's user signs in with the role of their group and returns to the requested page; the code works once${lacksTls}`,
  async ({ api: _isSetUp, origin, open }) => {
    peer.present('adele-1', { preferred_username: 'adele', email: 'adele@example.com', groups: ['operators'] })
    const page = await open('/clusters?status=Offline', { as: 'anonymous', allow })
    const codes: string[] = []
    page.on('framenavigated', (frame) => codes.push(new URL(frame.url()).searchParams.get('code') ?? ''))
    await click(page, 'Continue with Acme directory')
    await heading(page, 'Clusters').waitFor()
    expect(page.url()).toBe(`${origin}/clusters?status=Offline`)
    expect(peer.paths).toContain('/token')
    const profile = await me(page)
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
  },
)

test.skipIf(lacksTls !== '')(
  `a user whom the provider rejects can sign in with a password${lacksTls}`,
  async ({ open }) => {
    peer.present('')
    const page = await open('/sign-in', { as: 'anonymous', allow })
    await click(page, 'Continue with Acme directory')
    await page.getByText('The identity provider denied access, or you cancelled the sign-in.').waitFor()
    expect(await page.getByRole('alert').innerText()).toMatch(/Trace id\s+[0-9a-f]{32}/)
    expect(await page.content()).not.toContain('alert(1)')
    await field(page, 'User name').fill('ada')
    await field(page, 'Password').fill('correct horse battery')
    await click(page, 'Sign in')
    await heading(page, 'Dashboard').waitFor()
  },
)

test.skipIf(lacksTls !== '')(`a disabled provider is not offered${lacksTls}`, async ({ open }) => {
  const page = await open('/settings/identity')
  await click(page, 'Acme directory')
  await page.getByRole('checkbox', { name: /^(Enabled|Switched on)/ }).uncheck()
  await click(page, 'Save changes')
  await page.getByText('Acme directory was changed').first().waitFor()
  const signedOut = await open('/sign-in', { as: 'anonymous', allow })
  await expect.poll(() => signedOut.getByText('Loading').count()).toBe(0)
  expect(await signedOut.getByRole('button', { name: /Continue with/ }).count()).toBe(0)
})

test.skipIf(lacksDirectory !== '')(
  `a directory's user signs in with the form and has the role of their group${lacksDirectory}`,
  async ({ api: _isSetUp, open }) => {
    const users = [userEntry('grace'), groupEntry('operators', 'grace')]
    await using directory = await startSlapd({ plain: plainPort, secure: tlsPort }, users)
    const page = await open('/settings/identity')
    await click(page, 'Add provider')
    await field(page, 'Type').selectOption('LDAP')
    await field(page, 'Address').fill(`ldaps://localhost:${tlsPort}`)
    await field(page, 'Bind DN').fill(serviceAccount.bindDn)
    await field(page, 'Bind password').fill(serviceAccount.bindPassword)
    await field(page, 'User search base (DN)').fill(usersDn)
    await field(page, 'Name (optional)').fill('Acme people')
    await addMapping(page, `cn=operators,${groupsDn}`, 'Operator')
    await page.getByText('More settings').click()
    await page.getByLabel('Group search base (DN)').fill(groupsDn)
    await page.getByLabel('Trusted certificates').fill(directory.ca)
    await button(dialog(page), 'Add provider').click()
    await click(page, 'Test provider')
    await page.getByText('The provider works.').waitFor()
    expect(await button(page, 'Request consent').count()).toBe(0)

    const signedOut = await open('/sign-in', { as: 'anonymous', allow })
    await signedOut.getByText('Accounts of Acme people sign in here too.').waitFor()
    const signIn = async (password: string) => {
      await field(signedOut, 'User name').fill('grace')
      await field(signedOut, 'Password').fill(password)
      await click(signedOut, 'Sign in')
    }
    await signIn('password of ada')
    await signedOut.getByRole('alert').waitFor()
    await signIn('password of grace')
    await heading(signedOut, 'Dashboard').waitFor()
    expect(await me(signedOut)).toMatchObject({ username: 'grace', email: 'grace@acme.test', roles: ['Operator'] })
  },
)
