import type { Page } from 'playwright-core'
import { afterAll, expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { freePorts } from '../support/free-ports.ts'
import { startPeer } from '../support/oidc-peer.ts'
import { missing } from '../support/peers.ts'
import { axe } from '../support/portal/axe.ts'
import { reachingOut } from '../support/portal/layout.ts'
import { notSignedIn } from '../support/portal/pages.ts'
import { inThemes } from '../support/portal/shot.ts'
import { test as base } from '../support/portal/test.ts'
import { group, groups, people, person, service, startSlapd } from '../support/slapd.ts'
import { startTlsFront } from '../support/tls-front.ts'

/**
 * Signing in with identity providers in a real browser, from what an administrator fills in to the pages of whoever signs in.
 * The platform is public: a proxy speaks TLS before it. The provider is real, and of another site.
 */

const peer = await startPeer()
afterAll(() => peer.close())
const [plain = 0, secure = 0] = await freePorts(2)

/** What stands before the platform needs a certificate. */
const lack = missing('openssl')
const lackDirectory = missing('slapd', 'slapadd', 'openssl')

const test = base
  .extend('settings', { scope: 'file' }, { PLAT_OUTBOUND_ALLOW: `${peer.host},localhost:${secure}` })
  .override('origin', async ({ platform }, { onCleanup }) => {
    const front = await startTlsFront(platform.url)
    onCleanup(() => front[Symbol.asyncDispose]())
    return front.url
  })
  .override('api', async ({ platform, origin }) => {
    const api = await platform.api()
    const body = { ...(await platform.setupBody()), publicUrl: origin }
    answered(await api.anonymous.post('/api/v1/setup/complete', body), 200)
    return api
  })

const clientSecret = 'a secret that only the two of us know'
const field = (page: Page, label: string) => page.getByLabel(label, { exact: true })
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const passed = (page: Page) => page.getByRole('list', { name: 'Checks' }).getByText('Passed')

/** Whoever has no session is told so; a provider is another site. */
const allow = [
  ...notSignedIn,
  /^answer 401 GET \/api\/v1\/portal\/navigation$/,
  new RegExp(`^elsewhere GET ${peer.issuer}/`),
]

async function map(page: Page, name: string, role: string): Promise<void> {
  await press(page, 'Add mapping')
  const mapping = page.getByRole('group', { name: 'Mapping 1' })
  await mapping.getByLabel('Group').fill(name)
  await mapping.getByLabel('Role').selectOption(role)
}

const me = (page: Page): Promise<any> => page.evaluate(async () => (await fetch('/api/v1/auth/me')).json())

test.skipIf(lack !== '')(
  `an OpenID provider is configured, tested and changed in the portal${lack}`,
  async ({ api: _isSetUp, open }) => {
    const page = await open('/settings/identity')
    await press(page, 'Add provider')
    await field(page, 'Issuer').fill(peer.issuer)
    await field(page, 'Client id').fill('platform')
    await field(page, 'Client secret').fill('not the secret')
    await field(page, 'Name (optional)').fill('Acme')
    await page.getByText('On the sign-in page: “Continue with Acme”').waitFor()
    await map(page, 'operators', 'Operator')
    await page.getByText('More settings').click()
    await page.getByLabel('Scopes').fill('profile email groups')
    await page.getByRole('dialog').getByRole('button', { name: 'Add provider' }).click()
    const redirectUri = await page.getByRole('group', { name: 'Redirect URI', exact: true }).locator('code').innerText()
    expect(redirectUri).toMatch(/^https:\/\/localhost:\d+\/api\/v1\/auth\/oidc\/idp_\w+\/callback$/)
    peer.open([{ clientId: 'platform', clientSecret, redirectUri }])

    await press(page, 'Test provider')
    await page.getByText('The platform cannot work with this provider yet.').waitFor()
    expect(await page.getByRole('list', { name: 'Checks' }).innerText()).toMatch(/Failed\s+Client: The issuer refuses/)
    await field(page, 'Client secret (optional)').fill(clientSecret)
    await press(page, 'Save changes')
    await page.getByText('Acme was changed').first().waitFor()
    await press(page, 'Test provider')
    await expect.poll(() => passed(page).count()).toBe(4)

    // The secret that is not typed stays; all else is sent again.
    expect(await field(page, 'Client secret (optional)').inputValue()).toBe('')
    await field(page, 'Name (optional)').fill('Acme directory')
    await press(page, 'Save changes')
    await page.getByText('Acme directory was changed').first().waitFor()
    await press(page, 'Test provider')
    await expect.poll(() => passed(page).count()).toBe(4)
    await inThemes(page, () => axe(page))
    await page.setViewportSize({ width: 360, height: 800 })
    expect(await reachingOut(page)).toEqual([])
    await axe(page)
  },
)

test.skipIf(lack !== '')(
  `whoever the provider knows signs in by its button, and comes to the page that was wanted with the role of the groups${lack}`,
  async ({ api: _isSetUp, origin, open }) => {
    peer.present('adele-1', { preferred_username: 'adele', email: 'adele@example.com', groups: ['operators'] })
    const page = await open('/clusters?status=Offline', { as: 'nobody', allow })
    await press(page, 'Continue with Acme directory')
    await page.getByRole('heading', { level: 1, name: 'Clusters' }).waitFor()
    expect(page.url()).toBe(`${origin}/clusters?status=Offline`)
    expect(peer.paths).toContain('/token')
    const profile = await me(page)
    expect(profile).toMatchObject({ username: 'adele', email: 'adele@example.com', roles: ['Operator'] })
    expect(profile.authProvider).toMatch(/^idp_/)
    const kept = (await page.context().cookies()).filter(({ name }) => /plat_(access|refresh)$/.test(name))
    expect(kept.map(({ name, httpOnly, secure: isSecure, sameSite }) => [name, httpOnly, isSecure, sameSite])).toEqual([
      ['__Host-plat_access', true, true, 'Strict'],
      ['__Host-plat_refresh', true, true, 'Strict'],
    ])
    await page.reload()
    await page.getByRole('heading', { level: 1, name: 'Clusters' }).waitFor()
    // The way back holds nothing that signs in: the code is used up, and in no address that the browser keeps.
    await page.goBack().catch(() => undefined)
    expect(page.url()).not.toContain('code=')
  },
)

test.skipIf(lack !== '')(
  `whoever the provider refuses is told so, and can sign in otherwise${lack}`,
  async ({ open }) => {
    peer.present('')
    const page = await open('/sign-in', { as: 'nobody', allow })
    await press(page, 'Continue with Acme directory')
    await page.getByText('The identity provider did not let you in, or you ended the sign-in there.').waitFor()
    expect(await page.getByRole('alert').innerText()).toMatch(/Trace id\s+[0-9a-f]{32}/)
    expect(await page.content()).not.toContain('alert(1)')
    await axe(page)
    await field(page, 'User name').fill('ada')
    await field(page, 'Password').fill('correct horse battery')
    await press(page, 'Sign in')
    await page.getByRole('heading', { level: 1, name: 'Dashboard' }).waitFor()
  },
)

test.skipIf(lack !== '')(
  `a provider that is switched off is offered no more, and lets nobody in${lack}`,
  async ({ open }) => {
    const page = await open('/settings/identity')
    await press(page, 'Acme directory')
    await field(page, 'Switched on')
      .or(page.getByRole('checkbox', { name: /Switched on/ }))
      .first()
      .uncheck()
    await press(page, 'Save changes')
    await page.getByText('Acme directory was changed').first().waitFor()
    const stranger = await open('/sign-in', { as: 'nobody', allow })
    await field(stranger, 'User name').waitFor()
    await expect.poll(() => stranger.getByText('Loading').count()).toBe(0)
    expect(await stranger.getByRole('button', { name: /Continue with/ }).count()).toBe(0)
  },
)

test.skipIf(lackDirectory !== '')(
  `people of a directory sign in by the form, with the role of their group${lackDirectory}`,
  async ({ api: _isSetUp, open }) => {
    await using directory = await startSlapd({ plain, secure }, [person('grace'), group('operators', 'grace')])
    const page = await open('/settings/identity')
    await press(page, 'Add provider')
    await field(page, 'Type').selectOption('LDAP')
    await field(page, 'Address').fill(`ldaps://localhost:${secure}`)
    await field(page, 'Service account (DN)').fill(service.bindDn)
    await field(page, 'Password of the service account').fill(service.bindPassword)
    await field(page, 'Where people are (DN)').fill(people)
    await field(page, 'Name (optional)').fill('Acme people')
    await map(page, `cn=operators,${groups}`, 'Operator')
    await page.getByText('More settings').click()
    await page.getByLabel('Where groups are (DN)').fill(groups)
    await page.getByLabel('Certificates to trust').fill(directory.ca)
    await page.getByRole('dialog').getByRole('button', { name: 'Add provider' }).click()
    await press(page, 'Test provider')
    await page.getByText('The platform can work with this provider.').waitFor()
    expect(await page.getByRole('button', { name: 'Ask for consent' }).count()).toBe(0)

    const stranger = await open('/sign-in', {
      as: 'nobody',
      allow: [...allow, /^answer 401 POST \/api\/v1\/auth\/session$/],
    })
    await stranger.getByText('Accounts of Acme people sign in here too.').waitFor()
    await field(stranger, 'User name').fill('grace')
    await field(stranger, 'Password').fill('password of ada')
    await press(stranger, 'Sign in')
    await stranger.getByRole('alert').waitFor()
    await field(stranger, 'Password').fill('password of grace')
    await press(stranger, 'Sign in')
    await stranger.getByRole('heading', { level: 1, name: 'Dashboard' }).waitFor()
    expect(await me(stranger)).toMatchObject({ username: 'grace', email: 'grace@acme.test', roles: ['Operator'] })
  },
)
