import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import type { GridPosition } from '../../packages/portal/src/pages/dashboard/grid.ts'
import type { TestUser } from '../conformance/support/person.ts'
import { isLong } from '../support/long.ts'
import { button } from '../support/portal/locators.ts'
import { errorsOf, waitForPage } from '../support/portal/open.ts'
import { failRequests, holdRequests, requestsDuring, setVisible, stopClock } from '../support/portal/requests.ts'
import { testAsAdministrator } from '../support/portal/test.ts'

const test = testAsAdministrator.extend('person', ({ api, seed: _seeded }): Promise<TestUser> =>
  api.newUser('OrgAdmin'),
)

const path = '/api/v1/users/me/dashboard-layout'

const storedLayout = async ({ client }: TestUser): Promise<GridPosition[]> =>
  (await client.get(path)).body?.layout ?? []
const readStoredPosition = async (person: TestUser, id: string) =>
  (await storedLayout(person)).find(({ widgetId }) => widgetId === id)

const widget = (page: Page, title: string): Locator => page.getByRole('region', { name: title, exact: true })

async function boxOf(page: Page, title: string) {
  const box = await widget(page, title).boundingBox()
  if (!box) throw new Error(`${title} is not visible.`)
  return box
}

async function edit(page: Page): Promise<void> {
  await button(page, 'Edit dashboard').click()
  await page.locator('.react-grid-item').first().waitFor()
}

const waitForSave = (page: Page) =>
  page
    .getByRole('status')
    .filter({ hasText: /^Saved/ })
    .waitFor()

async function drag(page: Page, from: { x: number; y: number }, by: { x: number; y: number }): Promise<void> {
  await page.mouse.move(from.x, from.y)
  await page.mouse.down()
  for (const part of [0.2, 0.5, 0.8, 1]) await page.mouse.move(from.x + by.x * part, from.y + by.y * part)
  const response = page.waitForResponse((each) => each.request().method() === 'PATCH')
  await page.mouse.up()
  expect((await response).status()).toBe(204)
}

test.runIf(isLong)('dragged and resized widgets keep their position after a reload', async ({ open, person }) => {
  const page = await open('/dashboard', { as: person })
  await edit(page)
  const boxBefore = await boxOf(page, 'Cluster health')
  await drag(page, { x: boxBefore.x + 40, y: boxBefore.y + 20 }, { x: 420, y: 10 })
  expect((await readStoredPosition(person, 'cluster-health'))?.x).toBeGreaterThanOrEqual(4)
  await waitForSave(page)
  const movedBox = await boxOf(page, 'Cluster health')
  await drag(page, { x: movedBox.x + movedBox.width - 6, y: movedBox.y + movedBox.height - 6 }, { x: -80, y: 150 })
  const position = await readStoredPosition(person, 'cluster-health')
  expect(position).toMatchObject({ w: 3, h: 4 })
  await button(page, 'Done').click()
  const shownBox = await boxOf(page, 'Cluster health')
  await page.reload()
  await waitForPage(page)
  expect(await boxOf(page, 'Cluster health')).toEqual(shownBox)
  expect(await readStoredPosition(person, 'cluster-health')).toEqual(position)
})

test('numbers follow the period and show the change; clusters that never connected need attention', async ({
  open,
  person,
}) => {
  const page = await open('/dashboard', { as: person })
  const jobs = widget(page, 'Jobs')
  await widget(page, 'Clusters that need attention').getByText('never connected').first().waitFor()
  await jobs.getByText('compared with the previous 24 hours').first().waitFor()
  await button(page, '7 d').click()
  await jobs.getByText('compared with the previous 7 days').first().waitFor()
  const failedLink = jobs.getByRole('link', { name: /Failed/ })
  expect(await failedLink.getAttribute('href')).toMatch(/status=Failed&since=/)
  expect(await failedLink.innerText()).toMatch(/^[1-9]/)
  const breakdown = widget(page, 'Clusters by site or label')
  await breakdown.getByRole('combobox', { name: 'By' }).selectOption('Type')
  await breakdown.getByRole('link', { name: 'Hypervisor' }).waitFor()
})

test.runIf(isLong)('the keyboard moves and resizes widgets and keeps the focus', async ({ open, person }) => {
  const page = await open('/dashboard', { as: person })
  await button(page, 'Edit dashboard').press('Enter')
  await button(page, 'Move or resize Recent jobs').press('Enter')
  const group = page.getByRole('group', { name: 'Move or resize Recent jobs' })
  for (const [name, expected] of [
    ['Make narrower', { w: 5 }],
    ['Move right', { x: 1, w: 5 }],
    ['Make taller', { h: 6 }],
    ['Move up', { x: 1, y: 2 }],
  ] as const) {
    await button(group, name).press('Enter')
    await expect.poll(() => readStoredPosition(person, 'recent-jobs')).toMatchObject(expected)
    expect(await button(group, name).evaluate((element: any) => element.matches(':focus'))).toBe(true)
  }
  const announcement = 'Recent jobs: column 2, row 3, 5 columns wide, 6 rows tall.'
  await page.getByRole('status').getByText(announcement).waitFor({ state: 'attached' })
})

test('a second tab that edits an outdated layout gets the current one', async ({ open, person }) => {
  const page = await open('/dashboard', { as: person })
  await edit(page)
  await button(page, 'Remove Modules').click()
  await expect.poll(() => readStoredPosition(person, 'modules')).toBeUndefined()
  await waitForSave(page)
  const otherPage = await page.context().newPage()
  await otherPage.goto('/dashboard')
  await waitForPage(otherPage)
  await button(page, 'Remove Recent jobs').click()
  await expect.poll(() => readStoredPosition(person, 'recent-jobs')).toBeUndefined()

  errorsOf(otherPage).allow(/^response 412 PATCH /)
  await edit(otherPage)
  await button(otherPage, 'Remove Platform health').click()
  await otherPage.getByText('The dashboard was changed in another tab').first().waitFor()
  await widget(otherPage, 'Platform health').waitFor()
  await expect.poll(() => widget(otherPage, 'Recent jobs').count()).toBe(0)
  await button(otherPage, 'Remove Platform health').click()
  await expect.poll(() => readStoredPosition(person, 'platform-health')).toBeUndefined()
})

test.runIf(isLong)('a layout that cannot be saved is reverted', async ({ open, person }) => {
  const page = await open('/dashboard', { as: person, allow: [/^response 503 PATCH /] })
  await edit(page)
  await failRequests(page, `**${path}`, 'PATCH')
  await button(page, 'Remove Recent jobs').click()
  await page.getByText('Not now.').first().waitFor()
  await page.getByText('trace-4711').first().waitFor({ state: 'attached' })
  await widget(page, 'Recent jobs').waitFor()
  expect(await storedLayout(person)).toEqual([])
})

test.runIf(isLong)('a layout that is being saved is not overwritten by a read', async ({ newPage, person }) => {
  const page = await newPage({ as: person })
  await page.clock.install()
  await page.goto('/dashboard')
  await waitForPage(page)
  await button(page, 'Edit dashboard').click()
  const release = await holdRequests(page, `**${path}`, 'PATCH')
  await button(page, 'Remove Recent jobs').click()
  await page.getByRole('status').filter({ hasText: 'Saving' }).waitFor()
  await stopClock(page)
  const requests = await requestsDuring(page, async () => {
    await page.clock.runFor(10_000)
    await setVisible(page, false)
    await setVisible(page, true)
    await page.clock.runFor(1000)
  })
  expect(requests.filter((request) => request.includes('dashboard-layout'))).toEqual([])
  await page.clock.resume()
  release()
  await waitForSave(page)
  await page.reload()
  await waitForPage(page)
  expect(await widget(page, 'Recent jobs').count()).toBe(0)
})

test.runIf(isLong)('widgets are removed, added and reset; unknown widgets stay stored', async ({ open, person }) => {
  const unknownWidget = { widgetId: 'of-a-newer-release', x: 7, y: 3, w: 5, h: 5 }
  const invalidWidget = { widgetId: 'recent-jobs', x: 30, y: 9000, w: 10_000, h: 0 }
  const page = await open('/dashboard', { as: person })
  await widget(page, 'Recent jobs').waitFor()
  const defaultCount = await page.locator('main section h2').count()
  expect((await person.client.patch(path, { layout: [unknownWidget, invalidWidget] })).status).toBe(204)
  await page.reload()
  await waitForPage(page)
  expect(await page.locator('main section h2').allInnerTexts()).toEqual(['Recent jobs'])
  await edit(page)
  await button(page, 'Add Jobs over time').click()
  await button(page, 'Remove Recent jobs').click()
  await waitForSave(page)
  const jobs = { widgetId: 'jobs-over-time', x: 0, y: 0, w: 6, h: 5 }
  await expect.poll(() => storedLayout(person)).toEqual([jobs, unknownWidget])
  await button(page, 'Remove Jobs over time').click()
  await button(page, 'Done').click()
  await page.getByText('The dashboard is empty').waitFor()
  await button(page, 'Add widgets').click()
  await button(page, 'Reset to default').click()
  await expect.poll(async () => (await storedLayout(person)).length).toBe(defaultCount + 1)
  expect(await readStoredPosition(person, unknownWidget.widgetId)).toEqual(unknownWidget)
})

test.runIf(isLong)('a narrow window stacks widgets in reading order', async ({ open, person }) => {
  const layout = [
    { widgetId: 'modules', x: 6, y: 0, w: 6, h: 3 },
    { widgetId: 'recent-jobs', x: 0, y: 0, w: 6, h: 5 },
  ]
  await person.client.patch(path, { layout })
  const page = await open('/dashboard', { as: person, width: 360 })
  expect(await page.locator('main section h2').allInnerTexts()).toEqual(['Recent jobs', 'Modules'])
  expect((await boxOf(page, 'Recent jobs')).x).toBe((await boxOf(page, 'Modules')).x)
  await button(page, 'Edit dashboard').click()
  await page.getByText('Widen the window to move and resize widgets.').waitFor()
  expect(await storedLayout(person)).toEqual(layout)
})

test.runIf(isLong)('charts are readable by keyboard and as a table', async ({ open, api, seed: _seeded }) => {
  const page = await open('/dashboard')
  const jobs = widget(page, 'Jobs over time')
  const slider = jobs.getByRole('slider')
  const value = () => slider.getAttribute('aria-valuetext')
  const legend = () => jobs.locator('figure').innerText()
  await expect.poll(value).toMatch(/: \d+ Completed, \d+ Cancelled, \d+ Failed$/)
  await slider.press('Home')
  const firstValue = await value()
  expect(firstValue).toMatch(/: 0 Completed/)
  await page.keyboard.press('ArrowRight')
  expect(await value()).not.toBe(firstValue)
  expect(await legend()).toMatch(/Completed\s*0/)
  await page.keyboard.press('Escape')
  expect(await legend()).not.toMatch(/Completed\s*0/)

  await button(jobs, 'Show as table').click()
  const table = jobs.getByRole('table', { name: 'Jobs over time' })
  expect(await table.getByRole('row').count()).toBe(97)
  const shownNames = await table.locator('tbody tr td:nth-of-type(1)').allInnerTexts()
  const { body } = await (await api.admin).get('/api/v1/portal/history?hours=24')
  const completedCount = body.points.reduce((sum: number, { jobs }: any) => sum + jobs.completed, 0)
  expect(completedCount).toBeGreaterThan(0)
  expect(shownNames.reduce((sum, text) => sum + Number(text), 0)).toBe(completedCount)
})

test.runIf(isLong)('all charts share a range and the time zone of the browser', async ({ open, seed: _seeded }) => {
  const page = await open('/dashboard?range=week', { timezone: 'Asia/Tokyo' })
  expect(await button(page, '7 d').getAttribute('aria-pressed')).toBe('true')
  const requests = await requestsDuring(page, () =>
    Promise.all([page.waitForResponse(/history\?hours=720/), button(page, '30 d').click()]),
  )
  expect(requests.filter((each) => each.includes('history'))).toEqual(['GET /api/v1/portal/history?hours=720'])
  expect(new URL(page.url()).search).toBe('?range=month')
  const otherPage = await open('/dashboard?range=month', { timezone: 'America/New_York' })
  const [tokyo, newYork] = await Promise.all(
    [page, otherPage].map((each) => widget(each, 'Jobs over time').getByRole('slider').getAttribute('aria-valuetext')),
  )
  expect(tokyo).not.toBe(newYork)
})
