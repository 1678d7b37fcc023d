import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { waitFor } from '../support/wait-for.ts'
import { button, link } from '../support/portal/locators.ts'
import { advanceUntil, failRequests, holdRequests } from '../support/portal/requests.ts'
import { seedOrganisation } from '../support/portal/seed.ts'
import { test as inTenant } from '../support/portal/test.ts'

const test = inTenant.extend('seed', { scope: 'file' }, ({ api }) => seedOrganisation(api))

const path = '/api/v1/notifications'
const rows = (page: Page) => page.getByRole('list', { name: 'Notifications' }).getByRole('listitem')
const bell = (page: Page) => page.getByRole('banner').getByRole('link', { name: /^Notifications/ })
const unreadCount = async (page: Page): Promise<number> =>
  Number(/(\d+) unread/.exec((await bell(page).getAttribute('aria-label')) ?? '')?.[1] ?? 0)

test('marking as read updates list and bell before the response', async ({ open, seed: _seeded }) => {
  const page = await open('/notifications')
  await expect.poll(() => unreadCount(page)).toBeGreaterThan(2)
  const [unreadBefore, count] = [await unreadCount(page), await rows(page).count()]
  const release = await holdRequests(page, `**${path}`, 'PATCH')
  const marks = button(page, /^Mark as read/)
  const initialUnread = await marks.count()
  await marks.first().focus()
  await page.keyboard.press('Enter')
  await expect.poll(() => marks.count()).toBe(initialUnread - 1)
  expect(await unreadCount(page)).toBe(unreadBefore - 1)
  expect(await marks.first().evaluate((element: any) => element.matches(':focus'))).toBe(true)
  expect(await rows(page).count()).toBe(count)
  const response = page.waitForResponse((each) => each.request().method() === 'PATCH')
  release()
  expect((await response).status()).toBe(204)
  await page.reload()
  await expect.poll(() => unreadCount(page)).toBe(unreadBefore - 1)
})

test('a failed mark is reverted and shows its trace id', async ({ open, seed: _seeded }) => {
  const page = await open('/notifications', { allow: [/^response 503 PATCH /] })
  await expect.poll(() => unreadCount(page)).toBeGreaterThan(1)
  const unreadBefore = await unreadCount(page)
  await failRequests(page, `**${path}`, 'PATCH')
  await button(page, 'Mark all as read').click()
  await page.getByText('trace-4711').first().waitFor({ state: 'attached' })
  await expect.poll(() => unreadCount(page)).toBe(unreadBefore)
})

test('filters are part of the address', async ({ open, seed: _seeded }) => {
  const page = await open('/notifications')
  await page.getByRole('combobox', { name: 'Type' }).selectOption('Cluster offline')
  await expect.poll(() => rows(page).count()).toBe(1)
  await rows(page).getByText('Cluster cologne-1 is offline').waitFor()
  expect(new URL(page.url()).search).toBe('?type=ClusterOffline')
  await page.reload()
  await expect.poll(() => rows(page).count()).toBe(1)
  await page.getByRole('combobox', { name: 'Severity' }).selectOption('Info')
  await page.getByText('No matching notifications').waitFor()
  await link(page, 'Show all').click()
  await expect.poll(() => rows(page).count()).toBeGreaterThan(3)
})

test('opening the subject of a notification marks it as read', async ({ open, api, seed: { clusters } }) => {
  const page = await open('/notifications?type=ClusterOffline')
  await link(rows(page), 'Show cluster').click()
  await page.waitForURL(`**/clusters/${clusters.offline}`)
  const admin = await api.admin
  const readFirst = async () => expectStatus(await admin.get(`${path}?type=ClusterOffline`), 200).items[0]
  await waitFor('notification to be read', async () => (await readFirst()).read)
})

test('all notifications are marked as read at once; new ones appear without a reload', async ({
  open,
  api,
  seed: _seeded,
}) => {
  const page = await open('/notifications?show=unread')
  await page.clock.install()
  await button(page, 'Mark all as read').click()
  await page.getByText('No matching notifications').waitFor()
  expect(await unreadCount(page)).toBe(0)
  const relay = await api.newRelay()
  expectStatus(await relay.heartbeat(), 200)
  expectStatus(await relay.goodbye(), 204)
  const admin = await api.admin
  const count = async () => expectStatus(await admin.get(`${path}?unreadOnly=true`), 200).totalCount
  await waitFor('a new notification', async () => (await count()) > 0)
  await advanceUntil(page, async () => (await unreadCount(page)) === 1)
  await expect.poll(() => rows(page).count()).toBe(1)
})
