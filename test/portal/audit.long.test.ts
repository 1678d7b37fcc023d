import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { waitFor } from '../support/wait-for.ts'
import { button, dialog, field } from '../support/portal/locators.ts'
import { failRequests, holdRequests } from '../support/portal/requests.ts'
import { testAsAdministrator as test } from '../support/portal/test.ts'

const path = '/api/v1/platform/audit'
const click = (page: Page, name: string) => button(page, name).click()
const rows = (page: Page) => page.getByRole('table', { name: 'Audit entries' }).getByRole('row')
const countText = (page: Page) =>
  page
    .getByRole('main')
    .getByText(/^[\d,]+ entr(y|ies)$/)
    .innerText()

const findEntry = (admin: Client, query: string): Promise<any> =>
  waitFor('audit entry', async () => expectStatus(await admin.get(`${path}?${query}`), 200).items[0])

async function addEntry(admin: Client, entry: { action: string; resource: string; detail: string }): Promise<any> {
  expectStatus(await admin.post(path, entry), 204)
  return findEntry(admin, `action=${entry.action}&resource=${entry.resource}`)
}

/** The portal looks up the names of people who may have been removed. */
const removedUser = /^response 404 GET \/api\/v1\/users\//

test('filters are stored in the URL and restored from it', async ({ api, open }) => {
  const admin = await api.admin
  const entry = { action: 'change.approved', detail: 'by the board' }
  for (const resource of ['change-1', 'change-2']) await addEntry(admin, { ...entry, resource })
  const page = await open('/settings/audit', { allow: [removedUser] })
  await field(page, 'Action').fill('change.approved')
  await click(page, 'Filter')
  await expect.poll(() => countText(page)).toBe('2 entries')
  expect(new URL(page.url()).search).toBe('?action=change.approved')
  expect(await page.evaluate(() => (globalThis as any).document.activeElement.textContent)).toBe('Filter')
  await field(page, 'Resource').fill('change-2')
  await field(page, 'Resource').press('Enter')
  await expect.poll(() => countText(page)).toBe('1 entry')
  expect(await rows(page).nth(1).innerText()).toContain('change-2')
  await page.goBack()
  await expect.poll(() => field(page, 'Resource').inputValue()).toBe('')
  await expect.poll(() => countText(page)).toBe('2 entries')
  await page.goto(`/settings/audit?actor=unknown`)
  await page.getByText('No matching entries').waitFor()
  expect(await field(page, 'Actor').inputValue()).toBe('unknown')
  await click(page, 'Show all entries')
  await rows(page).nth(1).waitFor()
})

test('finds people and actions by name, and folds runs of sign-ins', async ({ api, open }) => {
  const admin = await api.admin
  // The user has signed in once. No other test adds entries of the user.
  const person = await api.newUser('Viewer')
  const { id, username } = person
  for (let count = 0; count < 3; count++) await api.signIn(person)
  const hasAll = async () => expectStatus(await admin.get(`${path}?actor=${id}`), 200).totalCount === 4
  await waitFor('entries of all sign-ins', hasAll)
  const page = await open('/settings/audit', { allow: [removedUser] })
  await field(page, 'Actor').fill(username.slice(0, -2))
  await page.getByRole('option', { name: username }).click()
  await click(page, 'Filter')
  await expect.poll(() => new URL(page.url()).search).toBe(`?actor=${id}`)
  expect(await field(page, 'Actor').inputValue()).toBe(username)
  await button(page, 'and 3 more').waitFor()
  const headCount = 1
  expect(await rows(page).count()).toBe(headCount + 1)
  await click(page, 'and 3 more')
  await expect.poll(() => rows(page).count()).toBe(headCount + 4)
  await field(page, 'Action').fill('signed in')
  await page.getByRole('option', { name: /session\.open/ }).click()
  await click(page, 'Filter')
  await expect.poll(() => new URL(page.url()).searchParams.get('action')).toBe('session.open')
})

const newYorkTime = (ms: number) =>
  new Date(ms).toLocaleString('sv-SE', { timeZone: 'America/New_York' }).slice(0, 16).replace(' ', 'T')

test('time filters use the time zone of the browser', async ({ api, open }) => {
  const entry = await addEntry(await api.admin, { action: 'time.marked', resource: 'time-1', detail: '' })
  const page = await open('/settings/audit?action=time.marked', { timezone: 'America/New_York' })
  const atMs = Date.parse(entry.at)
  await field(page, 'From').fill(newYorkTime(atMs - 120_000))
  await click(page, 'Filter')
  await expect.poll(() => page.url()).toContain('from=')
  await expect.poll(() => countText(page)).toBe('1 entry')
  await field(page, 'Before').fill(newYorkTime(atMs - 60_000))
  await click(page, 'Filter')
  await page.getByText('No matching entries').waitFor()
  expect(await field(page, 'From').inputValue()).toBe(newYorkTime(atMs - 120_000))
})

test('an entry shows all details and links to related entries and its resource', async ({ api, open }) => {
  const { id } = await api.newCluster({ name: 'audited-1' })
  const detail = '<img src=x onerror=__xss=1>\nsecond line'
  const entry = await addEntry(await api.admin, { action: 'cluster.inspected', resource: id, detail })
  const page = await open('/settings/audit?action=cluster.inspected')
  await click(page, `cluster.inspected ${entry.seq}`)
  const text = await dialog(page, 'cluster.inspected').innerText()
  for (const part of [detail, entry.actor.id, entry.hash, entry.traceId, 'API caller (extra entry)'])
    expect(text).toContain(part)
  await click(page, 'Same resource')
  await expect.poll(() => new URL(page.url()).searchParams.get('resource')).toBe(id)
  await expect.poll(() => button(page, /^cluster\.register /).count()).toBe(1)
  await click(page, `cluster.inspected ${entry.seq}`)
  await dialog(page, 'cluster.inspected').getByRole('link', { name: id }).click()
  await page.getByRole('heading', { level: 1, name: 'audited-1' }).waitFor()
})

test('an administrator adds an entry that is marked as extra', async ({ api, open }) => {
  const page = await open('/settings/audit?action=door.opened')
  await page.getByText('No matching entries').waitFor()
  await click(page, 'Add entry')
  const form = dialog(page, 'Add an entry')
  await field(form, 'Resource').fill('door-1')
  await button(form, 'Add entry').click()
  await expect.poll(() => form.getByLabel('Action').getAttribute('aria-invalid')).toBe('true')
  await form.getByLabel('Action').fill('door.opened')
  await button(form, 'Add entry').click()
  await form.waitFor({ state: 'detached' })
  expect(await findEntry(await api.admin, 'action=door.opened')).toMatchObject({ detail: '', extra: true })
})

test.for([
  ['As NDJSON', 'ndjson'],
  ['As CSV', 'csv'],
])('an export saves all pages of the trail: %s', async ([label = '', format = ''], { open }) => {
  const page = await open('/settings/audit?action=nothing')
  const link = `<${path}/export?format=${format}&after=1>; rel="next"`
  await page.route(`**/audit/export?format=${format}*`, (route) =>
    route.request().url().endsWith('after=1')
      ? route.fulfill({ body: 'last\n' })
      : route.fulfill({ body: 'first\n', headers: { link } }),
  )
  await click(page, 'Export')
  const download = page.waitForEvent('download')
  await page.getByRole('menuitem', { name: label, exact: true }).click()
  const file = await download
  expect(file.suggestedFilename()).toBe(`audit-trail.${format}`)
  expect(await readFile(await file.path(), 'utf8')).toBe('first\nlast\n')
  await page.getByText('Audit trail exported').first().waitFor()
})

test('a failed export shows its trace id and saves nothing', async ({ open }) => {
  const page = await open('/settings/audit', { allow: [removedUser, /^response 503 GET .*\/audit\/export/] })
  await failRequests(page, '**/audit/export*')
  let isSaved = false
  page.on('download', () => (isSaved = true))
  await click(page, 'Export')
  await page.getByRole('menuitem', { name: 'As CSV' }).click()
  await page.getByText('Not now.').first().waitFor()
  await page.getByText('trace-4711').first().waitFor({ state: 'attached' })
  expect(isSaved).toBe(false)
})

test('verification shows the head hash and a broken chain, and stops on close', async ({ api, open }) => {
  const page = await open('/settings/audit', { allow: [removedUser] })
  const verifyDialog = dialog(page, 'Verify the audit trail')
  await click(page, 'Verify')
  await verifyDialog.getByText('The audit trail is intact.').waitFor()
  const hash = await verifyDialog
    .getByRole('group', { name: /^Hash of entry \d+$/ })
    .locator('code')
    .innerText()
  const { items } = expectStatus(await (await api.admin).get(`${path}?pageSize=100`), 200)
  expect(items.map((entry: { hash: string }) => entry.hash)).toContain(hash)
  await page.keyboard.press('Escape')

  const json = { valid: false, entries: 12, headSeq: 12, headHash: '0'.repeat(64), firstBroken: 7 }
  // The page aborts the first request, so its response may fail.
  await page.route('**/audit/verify*', (route) => route.fulfill({ json }).catch(() => undefined))
  const release = await holdRequests(page, '**/audit/verify*', 'GET')
  await click(page, 'Verify')
  await verifyDialog.getByText('Verifying').waitFor()
  const abortedRequest = page.waitForEvent('requestfailed', (request) => request.url().includes('/audit/verify'))
  await page.keyboard.press('Escape')
  await Promise.all([abortedRequest, verifyDialog.waitFor({ state: 'detached' })])
  release()
  await click(page, 'Verify')
  await verifyDialog.getByText('The audit trail is broken at entry 7.').waitFor()
  expect(await verifyDialog.getByRole('group', { name: /^Hash/ }).count()).toBe(0)
})
