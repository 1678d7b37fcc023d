import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import type { Person } from '../conformance/support/person.ts'
import { isLong } from '../support/long.ts'
import { axe } from '../support/portal/axe.ts'
import { reachingOut } from '../support/portal/layout.ts'
import { faultsOf, settled } from '../support/portal/open.ts'
import { asAdministrator } from '../support/portal/shared.ts'
import { passSeconds, requestsDuring, stopClock } from '../support/portal/traffic.ts'
import { setVisible } from '../support/portal/visibility.ts'

/** The dashboard: what is arranged stays arranged, whoever else arranges it, and its numbers cost one poll. */

const test = asAdministrator
  // Each test arranges a dashboard of its own.
  .extend('person', ({ api }): Promise<Person> => api.newPerson('OrgAdmin'))

interface Stored {
  widgetId: string
  x: number
  y: number
  w: number
  h: number
}

const path = '/api/v1/users/me/dashboard-layout'

async function stored({ client }: Person): Promise<Stored[]> {
  const { body } = await client.get(path)
  return body?.layout ?? []
}
const placeOf = (layout: readonly Stored[], id: string) => layout.find(({ widgetId }) => widgetId === id)

const widget = (page: Page, title: string): Locator => page.getByRole('region', { name: title, exact: true })
const button = (page: Page | Locator, name: string): Locator => page.getByRole('button', { name, exact: true })

/** Where a widget stands, in pixels of the page. */
async function boxOf(page: Page, title: string) {
  const box = await widget(page, title).boundingBox()
  if (!box) throw new Error(`${title} is not shown.`)
  return box
}

async function edit(page: Page): Promise<void> {
  await button(page, 'Edit dashboard').click()
  await page.locator('.react-grid-item').first().waitFor()
}

/** The words beside the tools: saved, or not yet. */
const saved = (page: Page): Promise<void> =>
  page
    .getByRole('status')
    .filter({ hasText: /^Saved/ })
    .waitFor()

async function drag(page: Page, from: { x: number; y: number }, by: { x: number; y: number }): Promise<void> {
  await page.mouse.move(from.x, from.y)
  await page.mouse.down()
  for (const part of [0.2, 0.5, 0.8, 1]) await page.mouse.move(from.x + by.x * part, from.y + by.y * part)
  const answer = page.waitForResponse((response) => response.request().method() === 'PATCH')
  await page.mouse.up()
  expect((await answer).status()).toBe(204)
}

test('what is dragged and resized stands so after a reload', async ({ open, person, seed: _seed }) => {
  const page = await open('/dashboard', { as: person })
  await edit(page)
  const before = await boxOf(page, 'Cluster health')
  await drag(page, { x: before.x + 40, y: before.y + 20 }, { x: 420, y: 10 })
  const { x = 0 } = placeOf(await stored(person), 'cluster-health') ?? {}
  expect(x).toBeGreaterThanOrEqual(4)
  await saved(page)
  const moved = await boxOf(page, 'Cluster health')
  await drag(page, { x: moved.x + moved.width - 6, y: moved.y + moved.height - 6 }, { x: -80, y: 150 })
  const place = placeOf(await stored(person), 'cluster-health')
  expect(place).toMatchObject({ w: 3, h: 4 })

  await button(page, 'Done').click()
  const shown = await boxOf(page, 'Cluster health')
  await page.reload()
  await settled(page)
  expect(await boxOf(page, 'Cluster health')).toEqual(shown)
  expect(placeOf(await stored(person), 'cluster-health')).toEqual(place)
})

test.runIf(isLong)(
  'the keyboard moves and resizes as the mouse does, and keeps its place',
  async ({ open, person, seed: _seed }) => {
    const page = await open('/dashboard', { as: person })
    await button(page, 'Edit dashboard').press('Enter')
    await button(page, 'Move or resize Recent jobs').press('Enter')
    const group = page.getByRole('group', { name: 'Move or resize Recent jobs' })
    await axe(page)
    for (const [name, expected] of [
      ['Make narrower', { w: 5 }],
      ['Move right', { x: 1, w: 5 }],
      ['Make taller', { h: 6 }],
      ['Move up', { x: 1, y: 2 }],
    ] as const) {
      await button(group, name).focus()
      await page.keyboard.press('Enter')
      await expect.poll(async () => placeOf(await stored(person), 'recent-jobs')).toMatchObject(expected)
      const focused = await page.evaluate(() => (globalThis as any).document.activeElement.getAttribute('aria-label'))
      expect(focused).toBe(name)
    }
    await expect
      .poll(() => page.getByRole('status').allInnerTexts())
      .toContainEqual(expect.stringContaining('Recent jobs: column 2, row 3, 5 columns wide, 6 rows tall.'))
    await button(page, 'Done').click()
    await page.reload()
    await settled(page)
    const [jobs, chart] = [await boxOf(page, 'Recent jobs'), await boxOf(page, 'Clusters over time')]
    expect(jobs.y).toBeLessThan(chart.y)
  },
)

test('of two tabs that arrange the dashboard the second is told, and shows what the first has made', async ({
  open,
  person,
  seed: _seed,
}) => {
  const first = await open('/dashboard', { as: person })
  await edit(first)
  await button(first, 'Remove Modules').click()
  await expect.poll(async () => placeOf(await stored(person), 'modules')).toBeUndefined()
  await saved(first)
  const second = await first.context().newPage()
  await second.goto('/dashboard')
  await settled(second)
  await button(first, 'Remove Recent jobs').click()
  await expect.poll(async () => placeOf(await stored(person), 'recent-jobs')).toBeUndefined()

  faultsOf(second).allow(/^answer 412 PATCH /)
  await edit(second)
  await button(second, 'Remove Platform health').click()
  await second.getByText('The dashboard was changed in another tab').first().waitFor()
  await widget(second, 'Platform health').waitFor()
  await expect.poll(() => widget(second, 'Recent jobs').count()).toBe(0)
  await button(second, 'Remove Platform health').click()
  await expect.poll(async () => placeOf(await stored(person), 'platform-health')).toBeUndefined()
})

test.runIf(isLong)(
  'a layout that cannot be saved is taken back, and the trace id is told',
  async ({ open, person, seed: _seed }) => {
    const page = await open('/dashboard', { as: person, allow: [/^answer 503 PATCH /] })
    await edit(page)
    await page.route(`**${path}`, (route) =>
      route.fulfill({
        status: 503,
        json: { error: 'database_unavailable', message: 'Not now.', traceId: 'trace-4711' },
      }),
    )
    await button(page, 'Remove Recent jobs').click()
    await page
      .getByText(/Not now\. \(trace id trace-4711\)/)
      .first()
      .waitFor()
    await widget(page, 'Recent jobs').waitFor()
    expect(await stored(person)).toEqual([])
  },
)

test.runIf(isLong)(
  'widgets are removed, added and set back; those of another release stay stored',
  async ({ open, person, seed: _seed }) => {
    const foreign = { widgetId: 'of-tomorrow', x: 7, y: 3, w: 5, h: 5 }
    const own = { widgetId: 'recent-jobs', x: 30, y: 9000, w: 10_000, h: 0 }
    expect((await person.client.patch(path, { layout: [foreign, own] })).status).toBe(204)
    const page = await open('/dashboard', { as: person })
    expect(await page.locator('main section h2').allInnerTexts()).toEqual(['Recent jobs'])
    await edit(page)
    await button(page, 'Add Jobs over time').click()
    await button(page, 'Remove Recent jobs').click()
    await saved(page)
    await expect.poll(() => stored(person)).toEqual([{ widgetId: 'jobs-over-time', x: 0, y: 0, w: 6, h: 5 }, foreign])
    await button(page, 'Remove Jobs over time').click()
    await button(page, 'Done').click()
    await page.getByText('There is nothing on the dashboard').waitFor()
    await button(page, 'Add widgets').click()
    await button(page, 'Reset to default').click()
    await expect.poll(async () => (await stored(person)).length).toBe(10)
    expect(placeOf(await stored(person), 'of-tomorrow')).toEqual(foreign)
  },
)

test.runIf(isLong)(
  'in a narrow window widgets stand in one column, as they are read, and the stored layout stays',
  async ({ open, person, seed: _seed }) => {
    const layout = [
      { widgetId: 'modules', x: 6, y: 0, w: 6, h: 3 },
      { widgetId: 'recent-jobs', x: 0, y: 0, w: 6, h: 5 },
      { widgetId: 'unread-notifications', x: 6, y: 3, w: 6, h: 3 },
    ]
    await person.client.patch(path, { layout })
    const page = await open('/dashboard', { as: person, width: 360 })
    expect(await page.locator('main section h2').allInnerTexts()).toEqual([
      'Recent jobs',
      'Modules',
      'Unread notifications',
    ])
    const boxes = await Promise.all(['Recent jobs', 'Modules'].map((title) => boxOf(page, title)))
    expect(boxes[0]?.x).toBe(boxes[1]?.x)
    await button(page, 'Edit dashboard').click()
    await page.getByText('moved and resized in a wider window').waitFor()
    expect(await reachingOut(page)).toEqual([])
    await axe(page)
    expect(await stored(person)).toEqual(layout)
  },
)

test.runIf(isLong)('nobody is offered what the own role may not read', async ({ open, api, seed: _seed }) => {
  const viewer = await api.newPerson('Viewer')
  const page = await open('/dashboard', { as: viewer })
  await widget(page, 'Cluster health').waitFor()
  await edit(page)
  expect(await page.getByText('Platform update').count()).toBe(0)
})

/** A dashboard whose clock stands still. */
async function openStopped(page: Page): Promise<Page> {
  await page.clock.install()
  await page.goto('/dashboard')
  await settled(page)
  await stopClock(page)
  return page
}

test('many widgets are one poll, and a hidden tab none', async ({ newPage, person, seed: _seed }) => {
  const page = await openStopped(await newPage({ as: person }))
  const asked = await requestsDuring(page, () => passSeconds(page, 120))
  const times = (pattern: RegExp) => asked.filter((request) => pattern.test(request)).length
  expect(times(/summary/)).toBeLessThanOrEqual(30)
  expect(times(/history/)).toBe(2)
  expect(times(/\/jobs\?/)).toBeGreaterThanOrEqual(8)
  expect(times(/\/jobs\?/)).toBeLessThanOrEqual(12)
  expect(times(/\/clusters\?/)).toBeLessThanOrEqual(4)
  expect(asked.filter((request) => !/summary|history|\/jobs\?|\/clusters\?/.test(request))).toEqual([])
  await setVisible(page, false)
  expect(await requestsDuring(page, () => passSeconds(page, 120))).toEqual([])
})
