import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { axe } from '../support/portal/axe.ts'
import { reachingOut } from '../support/portal/layout.ts'
import { asAdministrator as test } from '../support/portal/shared.ts'
import { requestsDuring } from '../support/portal/traffic.ts'

/** The command palette: everything that can be reached by typing, for whoever may. */

const field = (page: Page) => page.getByRole('combobox', { name: 'Search and commands' })
const options = (page: Page) => page.getByRole('option')

async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press('Control+k')
  await field(page).waitFor()
}

const focused = (page: Page): Promise<string> =>
  page.evaluate(() => {
    const { activeElement }: any = (globalThis as any).document
    return activeElement.id || activeElement.getAttribute('aria-label') || activeElement.localName
  })

test('Ctrl K opens it anywhere, the arrows choose, Enter goes there and Escape goes back', async ({
  open,
  seed: _seed,
}) => {
  const page = await open('/health')
  await page.getByRole('button', { name: 'Check now' }).focus()
  await openPalette(page)
  await axe(page)
  await page.keyboard.press('Escape')
  await field(page).waitFor({ state: 'detached' })
  await expect
    .poll(() => page.getByRole('button', { name: 'Check now' }).evaluate((button: any) => button.matches(':focus')))
    .toBe(true)

  await openPalette(page)
  await page.keyboard.type('notif')
  await expect.poll(() => options(page).allInnerTexts()).toEqual(['Notifications'])
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Notifications' }).waitFor()
  await expect.poll(() => focused(page)).toBe('main')

  await openPalette(page)
  const first = await page.locator('[role=option][data-highlighted]').innerText()
  await page.keyboard.press('ArrowDown')
  expect(await page.locator('[role=option][data-highlighted]').innerText()).not.toBe(first)
})

test('clusters are found by name with one request for a word, and none is shown that came too late', async ({
  open,
  seed: { clusters },
}) => {
  const page = await open('/health')
  await openPalette(page)
  const asked = await requestsDuring(page, async () => {
    await page.keyboard.type('BERLIN', { delay: 20 })
    await options(page).filter({ hasText: 'berlin-1' }).waitFor()
  })
  expect(asked.filter((request) => request.includes('/clusters?'))).toEqual([
    'GET /api/v1/clusters?search=BERLIN&pageSize=8',
  ])
  // What is typed meanwhile makes the answer worthless: the request for it is given up.
  await page.route(/search=mun/, () => undefined)
  const given = page.waitForEvent('requestfailed', (request) => request.url().includes('search=mun'))
  const slow = page.waitForRequest(/search=mun&/)
  await field(page).fill('mun')
  await slow
  // Nor what was found before: Enter would open another cluster than the one that is typed.
  await expect.poll(() => options(page).filter({ hasText: 'berlin' }).count()).toBe(0)
  await field(page).fill('cologne')
  expect((await given).failure()?.errorText).toBe('net::ERR_ABORTED')
  await options(page).filter({ hasText: 'cologne-1' }).waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL(`**/clusters/${clusters.offline}`)
})

test('a pasted id leads to what it belongs to', async ({ open, seed: { clusters, jobs, batchId } }) => {
  const page = await open('/health')
  for (const [id, path] of [
    [clusters.healthy, `/clusters/${clusters.healthy}`],
    [jobs.completed, `/jobs/${jobs.completed}`],
    [batchId, `/jobs/batches/${batchId}`],
  ] as const) {
    await openPalette(page)
    const asked = await requestsDuring(page, async () => {
      await field(page).fill(` ${id} `)
      await expect.poll(() => options(page).allInnerTexts()).toEqual([`Go to ${id}`])
      await page.keyboard.press('Enter')
      await page.waitForURL(`**${path}`)
    })
    expect(asked.filter((request) => request.includes('search='))).toEqual([])
  }
  await openPalette(page)
  await field(page).fill('nothing-is-called-so')
  await page.getByText('Nothing is called so.').waitFor()
})

test('actions are done, and nobody is offered what the own role may not do', async ({ open, api }) => {
  const page = await open('/health')
  await openPalette(page)
  await page.keyboard.type('dark')
  await expect.poll(() => options(page).allInnerTexts()).toEqual(['Theme: dark'])
  await page.keyboard.press('Enter')
  await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe('dark')
  await openPalette(page)
  await axe(page)
  await page.keyboard.type('register')
  await expect.poll(() => options(page).allInnerTexts()).toEqual(['Register cluster'])

  const viewer = await open('/health', { as: await api.newPerson('Viewer'), width: 360, allow: [/^answer 401 /] })
  await viewer.getByRole('button', { name: 'Search', exact: true }).click()
  await field(viewer).waitFor()
  const offered = await options(viewer).allInnerTexts()
  expect(offered).toEqual(expect.arrayContaining(['Dashboard', 'Sign out']))
  expect(offered.filter((text) => /Register|Run job|Install|Users/.test(text))).toEqual([])
  expect(await reachingOut(viewer)).toEqual([])
  await viewer.keyboard.type('sign out')
  await viewer.keyboard.press('Enter')
  await viewer.waitForURL('**/sign-in*')
})
