import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { until } from '../conformance/support/until.ts'
import { axe } from '../support/portal/axe.ts'
import { reachingOut } from '../support/portal/layout.ts'
import { administrator } from '../support/portal/open.ts'
import { inThemes } from '../support/portal/shot.ts'
import { asAdministrator as test } from '../support/portal/shared.ts'

/** What an auditor does: looks, narrows, takes the trail away, and has it verified. */

const path = '/api/v1/platform/audit'
const field = (page: Page, label: string) => page.getByLabel(label, { exact: true })
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
/** What is told in passing is a dialog as well. */
const dialog = (page: Page, name: string) =>
  page.getByRole('dialog', { name }).filter({ hasNot: page.getByRole('button', { name: 'Dismiss', exact: true }) })
const rows = (page: Page) => page.getByRole('table', { name: 'Audit entries' }).getByRole('row')
/** How many entries the page says that there are. */
const count = (page: Page) =>
  page
    .getByRole('main')
    .getByRole('status')
    .filter({ hasText: /entr(y|ies)$/ })

/** Writes an entry, and waits until it is found. */
async function written(admin: Client, entry: { action: string; resource: string; detail: string }): Promise<any> {
  answered(await admin.post(path, entry), 204)
  const query = new URLSearchParams({ action: entry.action, resource: entry.resource }).toString()
  return until(
    'the entry has joined the trail',
    async () => answered(await admin.get(`${path}?${query}`), 200).items[0],
  )
}

test('the trail is narrowed by the form, which stands in the address, and by an address', async ({ api, open }) => {
  const admin = await api.admin
  await written(admin, { action: 'change.approved', resource: 'change-1', detail: 'by the board' })
  await written(admin, { action: 'change.approved', resource: 'change-2', detail: 'by the board' })
  const page = await open('/settings/audit')
  await field(page, 'Action').fill('change.approved')
  await press(page, 'Filter')
  await expect.poll(() => count(page).innerText()).toBe('2 entries')
  expect(new URL(page.url()).search).toBe('?action=change.approved')
  // Whoever goes on by keyboard is where they were.
  expect(await page.evaluate(() => (globalThis as any).document.activeElement.textContent)).toBe('Filter')
  await field(page, 'What').fill('change-2')
  await field(page, 'What').press('Enter')
  await expect.poll(() => count(page).innerText()).toBe('1 entry')
  expect(await rows(page).nth(1).innerText()).toContain('change-2')
  await page.goBack()
  await expect.poll(() => field(page, 'What').inputValue()).toBe('')
  await expect.poll(() => count(page).innerText()).toBe('2 entries')
  await press(page, 'Show all')
  await expect.poll(() => page.url()).not.toContain('?')
  await page.goto(`/settings/audit?actor=nobody`)
  await page.getByText('No entry fits').waitFor()
  expect(await field(page, 'Who').inputValue()).toBe('nobody')
  await press(page, 'Show all entries')
  await rows(page).nth(1).waitFor()
})

/** As somebody in New York writes it down, to the minute. */
const local = (ms: number) =>
  new Date(ms).toLocaleString('sv-SE', { timeZone: 'America/New_York' }).slice(0, 16).replace(' ', 'T')

test('times are those of the user: what happened since a moment, and what did before it', async ({ api, open }) => {
  const admin = await api.admin
  const entry = await written(admin, { action: 'time.marked', resource: 'time-1', detail: '' })
  const page = await open('/settings/audit?action=time.marked', { timezone: 'America/New_York' })
  await expect.poll(() => count(page).innerText()).toBe('1 entry')
  const atMs = Date.parse(entry.at)
  await field(page, 'From').fill(local(atMs - 120_000))
  await press(page, 'Filter')
  await expect.poll(() => page.url()).toContain('from=')
  await expect.poll(() => count(page).innerText()).toBe('1 entry')
  await field(page, 'Before').fill(local(atMs - 60_000))
  await press(page, 'Filter')
  await page.getByText('No entry fits').waitFor()
  expect(await field(page, 'From').inputValue()).toBe(local(atMs - 120_000))
})

test('an entry is shown whole, and leads to those that have something in common with it', async ({ api, open }) => {
  const admin = await api.admin
  const { id } = await api.newCluster({ name: 'audited-1' })
  const detail = '<img src=x onerror=__xss=1>\nsecond line'
  const entry = await written(admin, { action: 'cluster.inspected', resource: id, detail })
  const page = await open('/settings/audit?action=cluster.inspected')
  await page.getByRole('button', { name: `cluster.inspected ${entry.seq}` }).click()
  const shown = dialog(page, 'cluster.inspected')
  const text = await shown.innerText()
  for (const part of [detail, entry.actor.id, entry.hash, entry.traceId, 'a caller, as an extra entry'])
    expect(text).toContain(part)
  await inThemes(page, () => axe(page))
  await page.setViewportSize({ width: 360, height: 800 })
  await expect.poll(() => reachingOut(page)).toEqual([])
  await press(page, 'Only about the same')
  await expect.poll(() => new URL(page.url()).searchParams.get('resource')).toBe(id)
  await expect.poll(() => page.getByRole('button', { name: /^cluster\.register / }).count()).toBe(1)
  expect(await reachingOut(page)).toEqual([])
  await axe(page)
  await page.getByRole('button', { name: `cluster.inspected ${entry.seq}` }).click()
  await shown.getByRole('link', { name: id }).click()
  await page.getByRole('heading', { level: 1, name: 'audited-1' }).waitFor()
})

test('an administrator adds an entry, which joins the trail as one that a caller wrote', async ({ api, open }) => {
  const page = await open('/settings/audit?action=door.opened')
  await page.getByText('No entry fits').waitFor()
  await press(page, 'Add entry')
  await field(page, 'What it is about').fill('door-1')
  const asked = dialog(page, 'Add an entry')
  await asked.getByRole('button', { name: 'Add entry' }).click()
  await expect.poll(() => asked.getByLabel('Action').getAttribute('aria-invalid')).toBe('true')
  await asked.getByLabel('Action').fill('door.opened')
  await axe(page)
  await asked.getByRole('button', { name: 'Add entry' }).click()
  await asked.waitFor({ state: 'detached' })
  const query = `${path}?action=door.opened`
  const { items } = await until('it is found', async () => {
    const found = answered(await (await api.admin).get(query), 200)
    return found.totalCount > 0 && found
  })
  expect(items[0]).toMatchObject({ resource: 'door-1', detail: '', extra: true })
})

/** A trail of which one part does not hold all: entries of 6 KB each. */
const bulky = test.extend('bulk', { scope: 'file' }, async ({ api }) => {
  const admin = await api.admin
  const big = { action: 'bulk.noted', resource: 'bulk', detail: '€'.repeat(2000) }
  await Promise.all(Array.from({ length: 200 }, () => admin.post(path, big)))
  await until('all have joined the trail', async () => {
    const { totalCount } = answered(await admin.get(`${path}?action=bulk.noted&pageSize=1`), 200)
    return totalCount >= 200
  })
})

/** The file that a button leads to. */
async function download(page: Page, label: string): Promise<{ name: string; text: string }> {
  await press(page, 'Export')
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('menuitem', { name: label, exact: true }).click(),
  ])
  return { name: file.suggestedFilename(), text: await readFile(await file.path(), 'utf8') }
}

/** What the API exports, whole: all of its parts. */
async function exported(admin: Client, format: string): Promise<string> {
  let text = ''
  let next: string | undefined = `${path}/export?format=${format}`
  while (next !== undefined) {
    const answer = await admin.get(next)
    text += answer.text
    next = /<([^>]+)>; *rel="next"/.exec(answer.headers.get('link') ?? '')?.[1]
  }
  return text
}

const formats = [
  ['As NDJSON', 'ndjson'],
  ['As CSV', 'csv'],
] as const

bulky.for(formats)(
  'the trail is saved as a file, the whole of it: %s',
  async ([label, format], { api, open, bulk: _isThere }) => {
    const admin = await api.admin
    const page = await open('/settings/audit?action=nothing')
    const before = await exported(admin, format)
    const saved = await download(page, label)
    expect(saved.name).toBe(`audit-trail.${format}`)
    expect(saved.text.length).toBeGreaterThan(400_000)
    expect(saved.text.startsWith(before)).toBe(true)
    // Others may have added to it since.
    expect((await exported(admin, format)).startsWith(saved.text)).toBe(true)
    await page.getByText('The audit trail was saved').first().waitFor()
  },
)

test('an export that fails is told with its trace, and nothing is saved', async ({ open }) => {
  const page = await open('/settings/audit', { allow: [/^answer 503 GET .*\/audit\/export/] })
  const body = { error: 'store_unavailable', message: 'Later, please.', traceId: '0123456789abcdef0123456789abcdef' }
  await page.route('**/audit/export*', (route) => route.fulfill({ status: 503, json: body }))
  let isSaved = false
  page.on('download', () => (isSaved = true))
  await press(page, 'Export')
  await page.getByRole('menuitem', { name: 'As CSV' }).click()
  await page.getByText(`Later, please. (trace id ${body.traceId})`).first().waitFor()
  expect(isSaved).toBe(false)
})

test('the platform verifies the whole chain, and tells the hash to keep', async ({ api, open }) => {
  const page = await open('/settings/audit')
  await press(page, 'Verify')
  const shown = dialog(page, 'Verification of the trail')
  await shown.getByText('The trail is whole.').waitFor()
  const hash = await shown
    .getByRole('group', { name: /^Hash of entry \d+$/ })
    .locator('code')
    .innerText()
  const { items } = answered(await (await api.admin).get(`${path}?pageSize=100`), 200)
  expect(items.map((entry: { hash: string }) => entry.hash)).toContain(hash)
  await inThemes(page, () => axe(page))
})

test('a verification that was closed does not come back, and a trail that is broken is called so', async ({ open }) => {
  const page = await open('/settings/audit')
  const { promise: held, resolve: answer } = Promise.withResolvers<void>()
  const broken = { valid: false, entries: 12, headSeq: 12, headHash: '0'.repeat(64), firstBroken: 7 }
  await page.route('**/audit/verify*', async (route) => {
    await held
    await route.fulfill({ json: broken }).catch(() => undefined)
  })
  const shown = dialog(page, 'Verification of the trail')
  await press(page, 'Verify')
  await shown.getByText('Checking the trail').waitFor()
  // It is not asked for any longer, so nothing can come of it.
  const given = page.waitForEvent('requestfailed', (request) => request.url().includes('/audit/verify'))
  await page.keyboard.press('Escape')
  await Promise.all([given, shown.waitFor({ state: 'detached' })])
  answer()
  await press(page, 'Verify')
  await shown.getByText('The trail is broken at entry 7.').waitFor()
  expect(await shown.getByRole('group', { name: /^Hash/ }).count()).toBe(0)
  await axe(page)
})

test('an auditor sees the trail and adds nothing; whoever may not see it is told so', async ({ api, open }) => {
  const [auditor, viewer] = await Promise.all(['Auditor', 'Viewer'].map((role) => api.newPerson(role)))
  const page = await open('/settings/audit', { as: auditor ?? administrator })
  await rows(page).nth(1).waitFor()
  expect(await page.getByRole('button', { name: 'Add entry' }).count()).toBe(0)
  const other = await open('/settings/audit', { as: viewer ?? administrator })
  await other.getByText('You may not see this page').waitFor()
  for (const name of ['Verify', 'Export']) expect(await other.getByRole('button', { name }).count()).toBe(0)
})
