import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { axe } from '../support/portal/axe.ts'
import { inThemes } from '../support/portal/shot.ts'
import { asAdministrator as test } from '../support/portal/shared.ts'

/** How the operator of a provider is asked for consent, and what the portal makes of the answer. */

const path = '/api/v1/platform/identity/providers'
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })

/** A provider that nobody else has: of a tenant of its own. */
async function configured(api: Platform, displayName: string) {
  const settings = { type: 'CloudDirectory', tenantId: randomUUID(), clientId: 'platform', clientSecret: 'secret' }
  return answered(await (await api.admin).post(path, { ...settings, displayName }), 201)
}

test('consent is asked for at the provider, and what came of it is told until it is dismissed', async ({
  api,
  origin,
  open,
}) => {
  const { id, tenantId, displayName } = await configured(api, 'Cloud of Acme')
  const page = await open(`/settings/identity?provider=${id}`, {
    allow: [/^elsewhere GET https:\/\/(login\.microsoftonline\.com|platform\.example\.com)\//],
  })
  // The operator of the tenant, and the way back over the platform's public address, to this platform.
  let verdict = { admin_consent: 'True' }
  await page.route('https://login.microsoftonline.com/**', async (route) => {
    const asked = new URL(route.request().url())
    expect([asked.pathname, asked.searchParams.get('client_id')]).toEqual([
      `/${tenantId}/v2.0/adminconsent`,
      'platform',
    ])
    const back = new URL(asked.searchParams.get('redirect_uri') ?? '')
    back.search = new URLSearchParams({
      ...verdict,
      tenant: tenantId,
      state: asked.searchParams.get('state') ?? '',
    }).toString()
    const answer = await fetch(`${origin}${back.pathname}${back.search}`, { redirect: 'manual' })
    const settings = new URL(answer.headers.get('location') ?? '')
    expect(settings.origin).toBe('https://platform.example.com')
    await route.fulfill({ status: 302, headers: { location: `${origin}${settings.pathname}${settings.search}` } })
  })
  await press(page, 'Ask for consent')
  await page.getByText(`${displayName} has given consent: people can sign in with it.`).waitFor()
  expect(await row(page, displayName).innerText()).toContain('Consent granted')
  await inThemes(page, () => axe(page))
  await page.getByRole('main').getByRole('button', { name: 'Dismiss' }).click()
  await expect.poll(() => page.url()).toBe(`${origin}/settings/identity`)

  verdict = { admin_consent: 'False' }
  await press(page, displayName)
  await press(page, 'Ask for consent')
  await page
    .getByRole('alert')
    .filter({ hasText: `${displayName} has denied consent.` })
    .waitFor()
  expect(await row(page, displayName).innerText()).toContain('Consent denied')
})

test('an address that tells of an answer is believed only where the platform knows of it', async ({ api, open }) => {
  const { id } = await configured(api, 'Never asked')
  const page = await open(`/settings/identity?provider=${id}&consent=granted`)
  await page.getByRole('alert').filter({ hasText: 'the platform knows of no such answer' }).waitFor()
  await page.goto(`/settings/identity?provider=${id}&consent=error&error=tenant_mismatch`)
  await page.getByRole('alert').filter({ hasText: 'Another tenant has answered' }).waitFor()
  await page.goto(`/settings/identity?consent=error&error=Call%20%2B49%20123`)
  await page.getByRole('alert').filter({ hasText: 'Consent was asked for in vain.' }).waitFor()
  expect(await page.getByRole('main').innerText()).not.toContain('+49')
})

test('an address of a provider without TLS is not opened, and the page says so', async ({ api, origin, open }) => {
  const { id } = await configured(api, 'Without TLS')
  const page = await open(`/settings/identity?provider=${id}`)
  await page.route('**/consent', (route) => route.fulfill({ json: { url: 'javascript:alert(__xss=1)' } }))
  await press(page, 'Ask for consent')
  await page.getByRole('alert').filter({ hasText: 'at an address without TLS' }).waitFor()
  await page.route('**/consent', (route) => route.fulfill({ json: { url: 'http://id.example.com/consent' } }))
  await press(page, 'Ask for consent')
  await page.getByRole('alert').filter({ hasText: 'at an address without TLS' }).waitFor()
  expect(page.url()).toContain(origin)
})
