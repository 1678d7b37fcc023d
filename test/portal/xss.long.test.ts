import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { hostileParts, hostileSeed, payloads, storedPayloads as texts } from '../support/portal/hostile.ts'
import { field } from '../support/portal/locators.ts'
import { errorsOf, waitForPage } from '../support/portal/open.ts'
import { openState, pages, pathOf, type PageState, publicPages, stateLocator } from '../support/portal/pages.ts'
import { slowHeartbeat } from '../support/portal/seed.ts'
import { testOnOwnPlatform } from '../support/portal/test.ts'
import { fillPassword, next, setupToken, waitForStep } from '../support/portal/wizard.ts'

/** Payloads are displayed as plain text wherever they are stored or typed. A payload that executes is a page error. */

const [script = ''] = texts

const test = testOnOwnPlatform
  .extend('settings', { scope: 'file' }, { ...slowHeartbeat, PLAT_ALLOW_UNVERIFIED_MODULES: 'true' })
  .override('api', { scope: 'file' }, async ({ platform }) => {
    const api = await platform.api()
    const body = { ...(await platform.setupBody()), platformName: script }
    expectStatus(await api.anonymous.post('/api/v1/setup/complete', body), 200)
    return api
  })
  .extend('hostile', { scope: 'file' }, ({ platform, api }) => hostileSeed(platform, api))

const rejections = [/^response 4(00|01|03|04|09|22|29) \w+ \/api\//]

const inputTypes = ['text', 'search', 'email', 'url', 'tel', 'password'].map((type) => `input[type=${type}]`)
const editable = ['""', 'true', 'plaintext-only'].map((value) => `[contenteditable=${value}]`)
const fieldSelector = ['input:not([type])', ...inputTypes, 'textarea', ...editable]
  .map((each) => `${each}:not([disabled], [readonly])`)
  .join(', ')

async function textFields(scope: Page | Locator): Promise<Locator[]> {
  const fields = await scope.locator(fieldSelector).all()
  const areVisible = await Promise.all(fields.map((each) => each.isVisible()))
  return fields.filter((_field, index) => areVisible[index])
}

async function fillTextFields(scope: Page | Locator, text: string): Promise<number> {
  const fields = await textFields(scope)
  for (const each of fields) if (await each.isVisible()) await replaceText(each, text)
  return fields.length
}

async function replaceText(target: Locator, text: string): Promise<void> {
  if ((await target.getAttribute('contenteditable')) === null) return target.fill(text)
  // `fill` has no effect on the editor, which handles only input events.
  await target.press('ControlOrMeta+A')
  await target.page().keyboard.insertText(text)
}

async function reopen(page: Page, path: string, state: PageState | undefined): Promise<Page | Locator> {
  const isOpen = new URL(page.url()).pathname === new URL(path, page.url()).pathname
  if (isOpen && state === undefined) return page
  if (isOpen && state && (await stateLocator(page, state).isVisible())) return stateLocator(page, state)
  await page.goto(path)
  await waitForPage(page)
  return state ? openState(page, state) : page
}

async function typeEverywhere(page: Page, path: string, state?: PageState): Promise<number> {
  let count = 0
  for (const text of payloads) {
    const scope = await reopen(page, path, state)
    count = Math.max(count, await fillTextFields(scope, text))
    const submit = scope.locator('button[type=submit]').first()
    if (await submit.isVisible()) await submit.click()
    else await (await textFields(scope))[0]?.press('Enter')
    await waitForPage(page)
  }
  expect(errorsOf(page).list()).toEqual([])
  return count
}

const wizardValues: [step: string, fields: Record<string, string>][] = [
  ['Platform', { 'Platform name': script, 'Time zone': 'UTC' }],
  ['Network', { 'Public address': 'https://platform.example.com' }],
  ['Administrator', { 'User name': 'ada', 'E-mail': 'ada@example.com' }],
  ['One-time token', {}],
]

test('the setup wizard does not execute payloads', async ({ open, platform }) => {
  const page = await open('/setup', { as: 'anonymous', allow: rejections })
  const token = await setupToken(page, platform)
  await next(page)
  for (const [name, fields] of wizardValues) {
    for (const text of payloads) {
      await waitForStep(page, name)
      expect(await fillTextFields(page, text)).toBeGreaterThan(0)
      await next(page)
      await waitForPage(page)
    }
    for (const [label, value] of Object.entries(fields)) await field(page, label).fill(value)
    if (name === 'Administrator') await fillPassword(page)
    if (name === 'One-time token') await field(page, 'Token').fill(token)
    await next(page)
  }
  await waitForStep(page, 'Review')
  expect(await page.getByText(script, { exact: true }).count()).toBe(1)
  expect(errorsOf(page).list()).toEqual([])
})

/** Pages with the payloads that they must show. Tests of forms, which run later, remove some of these payloads. */
const expectedTexts: [path: string, texts: readonly string[]][] = [
  ['/dashboard', hostileParts.slots.map(({ label }) => label)],
  ['/modules', texts],
  ['/modules?module=hostile', texts],
  ['/notifications?type=ModuleFailed', texts.slice(0, 3)],
  ['/health', texts],
  ['/settings/account?tab=tokens', texts],
  ['/settings/organisations', texts],
  [`/settings/audit?action=${encodeURIComponent(script)}`, [script]],
]

test.for(expectedTexts)('%s shows payloads as text', async ([path, texts], { visit, hostile: _seeded }) => {
  const page = await visit(path, { height: 2400 })
  const findMissing = async () => {
    const pageText = await page.locator('body').innerText()
    return texts.filter((text) => !pageText.includes(text))
  }
  await expect.poll(findMissing).toEqual([])
})

test('a failed installation shows payloads as text', async ({ visit, hostile }) => {
  const page = await visit(`/modules?module=broken&job=${hostile.failedJob}`)
  await page.getByRole('alert').getByText(script).waitFor()
})

test.for(publicPages)('$name does not execute payloads', async (tested, { open, hostile: _seeded }) => {
  const page = await open(String(tested.path), { as: 'anonymous', allow: rejections })
  await page.getByRole('button', { name: script }).waitFor()
  expect(await typeEverywhere(page, String(tested.path))).toBeGreaterThan(0)
})

test.for(pages)('$name does not execute payloads', async (tested, { visit, hostile }) => {
  const path = pathOf(tested, hostile.ids)
  const page = await visit(path, { allow: [...rejections, ...(tested.allow ?? [])] })
  if (!tested.isStandalone) await expect.poll(() => page.getByText(script).count()).toBeGreaterThan(0)
  if (tested.hasTextFields) expect(await typeEverywhere(page, path)).toBeGreaterThan(0)
  else if (!(await page.getByRole('dialog').isVisible())) expect(await textFields(page)).toEqual([])
  for (const state of tested.states ?? []) {
    if (state.isStatic) continue
    await page.setViewportSize({ width: state.isNarrow ? 360 : 1280, height: 800 })
    await page.goto(path)
    await waitForPage(page)
    const shownState = await openState(page, state)
    if (state.hasTextFields) expect([state.name, await typeEverywhere(page, path, state)]).not.toEqual([state.name, 0])
    else expect([state.name, await textFields(shownState)]).toEqual([state.name, []])
  }
  expect(errorsOf(page).list()).toEqual([])
})
