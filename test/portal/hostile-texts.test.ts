import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { isLong, sampled } from '../support/long.ts'
import { trusting } from '../support/portal/hostile-modules.ts'
import { hostileParts, lines } from '../support/portal/hostile-parts.ts'
import { hostileSeed } from '../support/portal/hostile-seed.ts'
import { faultsOf, settled } from '../support/portal/open.ts'
import { pathOf, type PortalPage, publicPages, triedPages } from '../support/portal/pages.ts'
import { typedPayloads } from '../support/portal/payloads.ts'
import { lasting } from '../support/portal/seed.ts'
import { openState, type PortalState, shownBy } from '../support/portal/states.ts'
import { test as base } from '../support/portal/test.ts'
import { fillEveryTextField, textFields } from '../support/portal/text-fields.ts'

/** Hostile texts are shown as the texts that they are: none runs, wherever it stands and wherever it is typed. */

const [script = ''] = lines

const test = base
  .extend('settings', { scope: 'file' }, { ...lasting, ...trusting })
  .override('api', { scope: 'file' }, async ({ platform }) => {
    const api = await platform.api()
    const body = { ...(await platform.setupBody()), platformName: script }
    answered(await api.anonymous.post('/api/v1/setup/complete', body), 200)
    return api
  })
  .extend('hostile', { scope: 'file' }, ({ platform, api }) => hostileSeed(platform, api))

/** What a platform may say to forms and searches that hold nonsense. */
const refusals = [/^answer 4(00|01|03|04|09|22|29) \w+ \/api\//]

/** Brings a page, and what it is asked to show, back after something was sent; answers where to type. */
async function whereToType(page: Page, path: string, state: PortalState | undefined): Promise<Page | Locator> {
  const isThere = new URL(page.url()).pathname === new URL(path, page.url()).pathname
  if (isThere && state === undefined) return page
  if (isThere && state && (await shownBy(page, state).isVisible())) return shownBy(page, state)
  await page.goto(path)
  await settled(page)
  return state ? openState(page, state) : page
}

/** Types each text into every field, and sends it off; answers how many fields there were. */
async function typeEverywhere(page: Page, path: string, state?: PortalState): Promise<number> {
  let most = 0
  for (const [, text] of typedPayloads) {
    const within = await whereToType(page, path, state)
    most = Math.max(most, await fillEveryTextField(within, text))
    const button = within.locator('button[type=submit]').first()
    const [field] = await textFields(within)
    if (await button.isVisible()) await button.click()
    else await field?.press('Enter')
    await settled(page)
  }
  expect(faultsOf(page).list()).toEqual([])
  return most
}

const next = (page: Page) => page.getByRole('button', { name: 'Continue' }).click()

/** What is right to enter, by step of the wizard. */
const answers: [step: string, fields: Record<string, string>][] = [
  ['Platform', { 'Name of the platform': script, 'Time zone': 'UTC' }],
  ['Network', { 'Public address': 'https://platform.example.com' }],
  [
    'Administrator',
    { 'User name': 'ada', 'E-mail': 'ada@example.com', Password: script, 'Password, once more': script },
  ],
  ['One-time token', {}],
]

test.runIf(isLong)('typed into each step of the wizard, and shown by the last one', async ({ open, platform }) => {
  const page = await open('/setup', { as: 'nobody', allow: refusals })
  const command = await page.getByRole('group', { name: 'How to get the token' }).locator('code').textContent()
  await next(page)
  for (const [step, fields] of answers) {
    for (const [, text] of typedPayloads) {
      await page.getByRole('heading', { level: 2, name: step }).waitFor()
      // A step that takes a text for an answer goes on with the next one.
      expect(await fillEveryTextField(page, text)).toBeGreaterThan(0)
      await next(page)
      await settled(page)
    }
    for (const [name, value] of Object.entries(fields)) await page.getByLabel(name, { exact: true }).fill(value)
    if (step === 'One-time token') {
      await page.getByLabel('Token', { exact: true }).fill((await platform.command(command ?? '')).trim())
    }
    await next(page)
  }
  await page.getByRole('heading', { level: 2, name: 'Review' }).waitFor()
  expect(await page.getByText(script, { exact: true }).count()).toBe(1)
  expect(faultsOf(page).list()).toEqual([])
})

/** Where which texts have to be seen as they are: before forms are sent off, which removes some of it. */
const places: [path: string, texts: readonly string[]][] = [
  ['/clusters', lines],
  ['/dashboard', hostileParts.slots.map(({ label }) => label)],
  ['/modules', lines],
  ['/modules?module=hostile', lines],
  ['/notifications?type=ModuleFailed', lines.slice(0, 3)],
  ['/health', lines],
  ['/settings/account?tab=tokens', lines],
  ['/settings/organisations', lines],
  [`/settings/audit?action=${encodeURIComponent(script)}`, [script]],
]

test.for(sampled(places))('as it is, at %s', async ([path, texts], { visit, hostile: _isThere }) => {
  const page = await visit(path, { height: 2400 })
  const missing = async () => {
    const all = await page.locator('body').innerText()
    return texts.filter((text) => !all.includes(text))
  }
  await expect.poll(missing).toEqual([])
})

test('as it is, on the page of each cluster, in its notifications and in its jobs', async ({ visit, hostile }) => {
  const page = await visit('/notifications')
  expect(await page.getByText(script).count()).toBeGreaterThan(0)
  for (const [index, id] of hostile.clusters.entries()) {
    await page.goto(`/clusters/${id}?tab=nodes`)
    await page.getByRole('heading', { level: 1, name: lines[index] ?? '' }).waitFor()
    await page.getByRole('cell', { name: lines[index] ?? '', exact: true }).waitFor()
  }
})

test('as it is, on the page of each job: its script and its output', async ({ visit, hostile }) => {
  const page = await visit(`/modules?module=broken&job=${hostile.failedJob}`)
  await page.getByRole('alert').getByText(script).waitFor()
  for (const [index, id] of hostile.jobs.entries()) {
    await page.goto(`/jobs/${id}`)
    for (const label of ['Script of the job', 'Output of the job']) {
      await expect.poll(() => page.getByLabel(label).textContent()).toContain(lines[index])
    }
  }
})

test.for(publicPages)('shown to everybody, and typed by anybody: $name', async (it, { open, hostile: _isThere }) => {
  const page = await open(String(it.path), { as: 'nobody', allow: refusals })
  await page.getByRole('button', { name: script }).waitFor()
  expect(await typeEverywhere(page, String(it.path))).toBeGreaterThan(0)
})

// Where not all is tried, those where everything is shown and typed.
test.for(isLong ? triedPages : triedPages.filter(({ types }) => types))(
  'shown and typed at: $name',
  async (it: PortalPage, { visit, hostile }) => {
    const path = pathOf(it, hostile.places)
    const page = await visit(path, { allow: [...refusals, ...(it.allow ?? [])] })
    // The name of the platform stands on each page that has the shell around it.
    if (!it.isAlone) await expect.poll(() => page.getByText(script).count()).toBeGreaterThan(0)
    if (it.asks && (isLong || it.types)) expect(await typeEverywhere(page, path)).toBeGreaterThan(0)
    else if (!it.asks && !(await page.getByRole('dialog').isVisible())) expect(await textFields(page)).toEqual([])
    for (const state of it.states ?? []) {
      if (state.isPlain || !(isLong || it.types?.includes(state.name))) continue
      await page.setViewportSize({ width: state.isNarrow ? 360 : 1280, height: 800 })
      await page.goto(path)
      await settled(page)
      const shown = await openState(page, state)
      if (state.asks) expect([state.name, await typeEverywhere(page, path, state)]).not.toEqual([state.name, 0])
      else expect([state.name, await textFields(shown)]).toEqual([state.name, []])
    }
    expect(faultsOf(page).list()).toEqual([])
  },
)
