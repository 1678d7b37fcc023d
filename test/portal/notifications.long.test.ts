import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { until } from '../conformance/support/until.ts'
import { axe } from '../support/portal/axe.ts'
import { reachingOut } from '../support/portal/layout.ts'
import { seedOrganisation } from '../support/portal/seed.ts'
import { test as base } from '../support/portal/shared.ts'
import { passUntil } from '../support/portal/traffic.ts'

/** Notifications: found by what they are, read with one key, and each leads to what it is about. */

const test = base.extend('seed', { scope: 'file' }, ({ api }) => seedOrganisation(api))

const rows = (page: Page) => page.getByRole('list', { name: 'Notifications' }).getByRole('listitem')
const bell = (page: Page) => page.getByRole('banner').getByRole('link', { name: /^Notifications/ })
const inBell = async (page: Page): Promise<number> =>
  Number(/(\d+) unread/.exec((await bell(page).getAttribute('aria-label')) ?? '')?.[1] ?? 0)

/** What marks a notification as read, held back until the test lets it go. */
async function heldBack(page: Page) {
  const gate = Promise.withResolvers<void>()
  await page.route('**/api/v1/notifications', async (route) => {
    if (route.request().method() === 'PATCH') await gate.promise
    await route.fallback()
  })
  return gate.resolve
}

test('one is read at once, in the list and at the bell, before the platform has said so', async ({
  open,
  seed: _seed,
}) => {
  const page = await open('/notifications')
  await expect.poll(() => inBell(page)).toBeGreaterThan(2)
  const [before, count] = [await inBell(page), await rows(page).count()]
  const letGo = await heldBack(page)
  const marks = page.getByRole('button', { name: /^Mark as read/ })
  const unread = await marks.count()
  await marks.first().focus()
  await page.keyboard.press('Enter')
  await expect.poll(() => marks.count()).toBe(unread - 1)
  expect(await inBell(page)).toBe(before - 1)
  // The keyboard is at the next one.
  expect(await marks.first().evaluate((button: any) => button.matches(':focus'))).toBe(true)
  expect(await rows(page).count()).toBe(count)
  const answer = page.waitForResponse((response) => response.request().method() === 'PATCH')
  letGo()
  expect((await answer).status()).toBe(204)
  await page.reload()
  await expect.poll(() => inBell(page)).toBe(before - 1)
})

test('what the platform does not mark is unread again, and the trace id is told', async ({ open, seed: _seed }) => {
  const page = await open('/notifications', { allow: [/^answer 503 PATCH /] })
  await expect.poll(() => inBell(page)).toBeGreaterThan(1)
  const before = await inBell(page)
  await page.route('**/api/v1/notifications', (route) =>
    route.request().method() === 'PATCH'
      ? route.fulfill({
          status: 503,
          json: { error: 'database_unavailable', message: 'Not now.', traceId: 'trace-4711' },
        })
      : route.fallback(),
  )
  await page.getByRole('button', { name: 'Mark all as read' }).click()
  await page
    .getByText(/trace-4711/)
    .first()
    .waitFor()
  await expect.poll(() => inBell(page)).toBe(before)
})

test('they are filtered by what they are, and the address keeps the filter', async ({ open, seed: _seed }) => {
  const page = await open('/notifications')
  await page.getByRole('combobox', { name: 'Type' }).selectOption('Cluster offline')
  await expect.poll(() => rows(page).count()).toBe(1)
  await rows(page).getByText('Cluster cologne-1 is offline').waitFor()
  expect(new URL(page.url()).search).toBe('?type=ClusterOffline')
  await page.reload()
  await expect.poll(() => rows(page).count()).toBe(1)
  await page.getByRole('combobox', { name: 'Severity' }).selectOption('Info')
  await page.getByText('No notification fits the filter').waitFor()
  await page.getByRole('link', { name: 'Show all' }).click()
  await expect.poll(() => rows(page).count()).toBeGreaterThan(3)
  await axe(page)
})

test('each leads to what it is about, and is read by that', async ({ open, api, seed: { clusters } }) => {
  const page = await open('/notifications?type=ClusterOffline', { width: 360 })
  expect(await reachingOut(page)).toEqual([])
  await rows(page).getByRole('link', { name: 'Show cluster' }).click()
  await page.waitForURL(`**/clusters/${clusters.offline}`)
  const admin = await api.admin
  await until('it is read', async () => {
    const { items } = answered(await admin.get('/api/v1/notifications?type=ClusterOffline'), 200)
    return items[0].read
  })
})

test('all are read with one click, and what is new is at the bell without a reload', async ({
  open,
  api,
  seed: _seed,
}) => {
  const page = await open('/notifications?show=unread')
  await page.clock.install()
  await page.getByRole('button', { name: 'Mark all as read' }).click()
  await page.getByText('No notification fits the filter').waitFor()
  expect(await inBell(page)).toBe(0)
  const relay = await api.newRelay()
  answered(await relay.beat(), 200)
  answered(await relay.goodbye(), 204)
  const admin = await api.admin
  await until('there is something new', async () => {
    const { items } = answered(await admin.get('/api/v1/notifications'), 200)
    return items.some(({ read }: { read: boolean }) => !read)
  })
  await passUntil(page, async () => (await inBell(page)) === 1)
  await expect.poll(() => rows(page).count()).toBe(1)
})
