import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { button, heading } from '../support/portal/locators.ts'
import { requestsDuring } from '../support/portal/requests.ts'
import { testAsAdministrator as test } from '../support/portal/test.ts'

const field = (page: Page) => page.getByRole('combobox', { name: 'Search and commands' })
const options = (page: Page) => page.getByRole('option')
/** The option of a cluster. The labels of its recent jobs also contain its name. */
const clusterOption = (page: Page, name: string) => options(page).filter({ hasText: new RegExp(`^${name} \\(`) })
const optionTexts = (page: Page) => expect.poll(() => options(page).allInnerTexts())

async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press('Control+k')
  await field(page).waitFor()
}

test('works by keyboard and restores the focus', async ({ open, seed: _seeded }) => {
  const page = await open('/health')
  const hasFocus = () => button(page, 'Check now').evaluate((element: any) => element.matches(':focus'))
  await button(page, 'Check now').focus()
  await openPalette(page)
  await page.keyboard.press('Escape')
  await field(page).waitFor({ state: 'detached' })
  await expect.poll(hasFocus).toBe(true)

  await openPalette(page)
  await page.keyboard.type('notif')
  await optionTexts(page).toEqual(['Notifications'])
  await page.keyboard.press('Enter')
  await heading(page, 'Notifications').waitFor()
  await expect.poll(() => page.evaluate(() => (globalThis as any).document.activeElement.id)).toBe('main')

  await openPalette(page)
  const highlightedOption = page.locator('[role=option][data-highlighted]')
  const firstOption = await highlightedOption.innerText()
  await page.keyboard.press('ArrowDown')
  expect(await highlightedOption.innerText()).not.toBe(firstOption)
})

test('searches clusters once per word and drops outdated results', async ({ open, seed: { clusters } }) => {
  const page = await open('/health')
  await openPalette(page)
  const sentRequests = await requestsDuring(page, async () => {
    // Inserts all letters in one task, so that even a slow page sends no request between two letters.
    await page.evaluate(`for (const letter of 'BERLIN') document.execCommand('insertText', false, letter)`)
    await clusterOption(page, 'berlin-1').waitFor()
    await options(page).filter({ hasText: 'on berlin-1' }).first().waitFor()
  })
  expect(sentRequests.filter((request) => request.includes('/clusters?search='))).toEqual([
    'GET /api/v1/clusters?search=BERLIN&pageSize=8',
  ])
  // One request reads the names of the clusters of all recent jobs.
  expect(sentRequests.filter((request) => request.includes('/clusters?ids='))).toHaveLength(1)
  await page.route(/search=mun/, () => undefined)
  const abortedRequest = page.waitForEvent('requestfailed', (request) => request.url().includes('search=mun'))
  const pending = page.waitForRequest(/search=mun&/)
  await field(page).fill('mun')
  await pending
  // Enter must not open a cluster of the previous word.
  await expect.poll(() => options(page).filter({ hasText: 'berlin' }).count()).toBe(0)
  await field(page).fill('cologne')
  expect((await abortedRequest).failure()?.errorText).toBe('net::ERR_ABORTED')
  await clusterOption(page, 'cologne-1').waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL(`**/clusters/${clusters.offline}`)
})

test('a pasted id opens its resource', async ({ open, seed: { clusters, jobs, batchId } }) => {
  const page = await open('/health')
  for (const [id, path] of [
    [clusters.healthy, `/clusters/${clusters.healthy}`],
    [jobs.completed, `/jobs/${jobs.completed}`],
    [batchId, `/jobs/batches/${batchId}`],
  ] as const) {
    await openPalette(page)
    const sentRequests = await requestsDuring(page, async () => {
      await field(page).fill(` ${id} `)
      await optionTexts(page).toEqual([`Go to ${id}`])
      await page.keyboard.press('Enter')
      await page.waitForURL(`**${path}`)
    })
    expect(sentRequests.filter((request) => request.includes('search='))).toEqual([])
  }
  await openPalette(page)
  await field(page).fill('no-such-name')
  await page.getByText('No results.').waitFor()
})

test('runs actions, and offers only those that the user may run', async ({ open, api }) => {
  const page = await open('/health')
  await openPalette(page)
  await page.keyboard.type('dark')
  await optionTexts(page).toEqual(['Theme: dark'])
  await page.keyboard.press('Enter')
  await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe('dark')
  await openPalette(page)
  await page.keyboard.type('register')
  await optionTexts(page).toEqual(['Register cluster'])

  const viewer = await open('/health', { as: await api.newUser('Viewer'), allow: [/^response 401 /] })
  await button(viewer, 'Search').click()
  await field(viewer).waitFor()
  const offeredTexts = await options(viewer).allInnerTexts()
  expect(offeredTexts).toEqual(expect.arrayContaining(['Dashboard', 'Sign out']))
  expect(offeredTexts.filter((text) => /Register|Run job|Install|Users/.test(text))).toEqual([])
  await viewer.keyboard.type('sign out')
  await viewer.keyboard.press('Enter')
  await viewer.waitForURL('**/sign-in*')
})
