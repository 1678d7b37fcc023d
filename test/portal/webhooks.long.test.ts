import type { Page } from 'playwright-core'
import { Webhook } from 'standardwebhooks'
import { afterAll, expect } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { type Seen, startServer } from '../support/http-server.ts'
import { axe } from '../support/portal/axe.ts'
import { reachingOut } from '../support/portal/layout.ts'
import { settled, type View } from '../support/portal/open.ts'
import { inThemes } from '../support/portal/shot.ts'
import { type NewPage, test as base } from '../support/portal/test.ts'

/** What an administrator of an organisation does with webhooks. One test follows another: the receiver is one. */

let status = 204
const receiver = await startServer(() => ({ status }))
afterAll(() => receiver[Symbol.asyncDispose]())

const test = base.extend('settings', { scope: 'file' }, { PLAT_OUTBOUND_ALLOW: receiver.host })

const path = '/api/v1/webhooks'
const field = (page: Page, label: string) => page.getByLabel(label, { exact: true })
/** What is told in passing is a dialog as well. */
const dialog = (page: Page, name: string | RegExp) =>
  page.getByRole('dialog', { name }).filter({ hasNot: page.getByRole('button', { name: 'Dismiss', exact: true }) })
const shown = (page: Page) => dialog(page, `Webhook at ${receiver.host}`)
const press = (within: Page | ReturnType<typeof dialog>, name: string) =>
  within.getByRole('button', { name, exact: true }).click()
const tests = ({ body }: Seen) => body.includes('platform.webhook.tested')
const deliveries = (page: Page) => page.getByRole('table', { name: 'Deliveries' }).locator('tbody tr')

/** Opens the page with a clock that `soon` moves on. */
const opened = async (newPage: NewPage, view?: View): Promise<Page> => {
  const page = await newPage(view)
  await page.clock.install()
  await page.goto('/settings/webhooks')
  await settled(page)
  return page
}

/** What the page shows when it has looked again: nobody waits for its clock. */
const soon = <Value>(page: Page, look: () => Promise<Value>) =>
  expect.poll(
    async () => {
      await page.clock.fastForward(15_000)
      await settled(page)
      return look()
    },
    { interval: 500 },
  )

/** Opens the one webhook of the page. */
async function openWebhook(page: Page): Promise<void> {
  await press(page, `${receiver.url}/hook`)
  await shown(page).getByRole('heading', { name: 'Deliveries' }).waitFor()
}

let secret = ''

test('a webhook is added, and its secret shown this once', async ({ api, open }) => {
  await api.admin
  const page = await open('/settings/webhooks')
  await page.getByText('No webhooks yet').waitFor()
  await page.getByRole('button', { name: 'Add webhook' }).first().click()
  const asked = dialog(page, 'Add a webhook')
  await field(page, 'Address').fill(`${receiver.url}/hook`)
  await press(asked, 'Add webhook')
  await asked.getByText('Choose at least one event.').waitFor()
  await asked.getByLabel('platform.job.started').check()
  await asked.getByLabel('All of job', { exact: true }).check()
  expect(await asked.getByLabel('platform.job.started').isDisabled()).toBe(true)
  await asked.getByLabel('platform.cluster.registered').check()
  await inThemes(page, () => axe(page))
  await press(asked, 'Add webhook')
  const added = dialog(page, 'The webhook was added')
  secret = await added.getByRole('group', { name: 'Secret' }).locator('code').innerText()
  expect(secret).toMatch(/^whsec_/)
  await press(added, 'I have kept it')
  const text = await page.getByRole('row').filter({ hasText: receiver.url }).innerText()
  expect(text).toMatch(/On\s.*All of job, platform\.cluster\.registered/s)
  await page.reload()
  await openWebhook(page)
  expect(await page.content()).not.toContain(secret)
  const { items } = answered(await (await api.admin).get(path), 200)
  expect(items.map(({ events }: { events: string[] }) => events)).toEqual([
    ['platform.job.*', 'platform.cluster.registered'],
  ])
})

test('an address that the platform may not call is refused beside its field', async ({ open }) => {
  const page = await open('/settings/webhooks', { allow: [/^answer 422 POST/] })
  await press(page, 'Add webhook')
  await field(page, 'Address').fill('http://127.0.0.1:1/hook')
  const asked = dialog(page, 'Add a webhook')
  await asked.getByLabel('Everything').check()
  await press(asked, 'Add webhook')
  await expect.poll(() => asked.getByRole('alert').innerText()).toMatch(/Trace id\s+[0-9a-f]{32}/)
  expect(await field(page, 'Address').inputValue()).toBe('http://127.0.0.1:1/hook')
})

test('a test event arrives, signed with the secret that was shown, and is delivered again as the same event', async ({
  newPage,
}) => {
  const page = await opened(newPage)
  await openWebhook(page)
  await shown(page).getByText('Nothing was delivered yet.').waitFor()
  await press(shown(page), 'Send test event')
  await soon(page, () => deliveries(page).allInnerTexts()).toEqual([
    expect.stringMatching(/platform\.webhook\.tested.*Delivered.*204 in \d+ ms/s),
  ])
  const first = receiver.seen.find(tests)
  const headers = Object.fromEntries(Object.entries(first?.headers ?? {}).map(([name, value]) => [name, String(value)]))
  expect(new Webhook(secret).verify(String(first?.body), headers)).toMatchObject({ type: 'platform.webhook.tested' })
  await press(shown(page), 'Deliver platform.webhook.tested again')
  await expect.poll(() => receiver.seen.filter(tests).length).toBe(2)
  const ids = receiver.seen.filter(tests).map((seen) => seen.headers['webhook-id'])
  expect(new Set(ids).size).toBe(1)
  await soon(page, () => deliveries(page).getByRole('listitem').count()).toBe(2)
})

test('what a failing receiver has answered is shown, attempt by attempt, with when the next one is', async ({
  newPage,
}) => {
  status = 503
  const page = await opened(newPage)
  await openWebhook(page)
  await press(shown(page), 'Send test event')
  await soon(page, () => deliveries(page).first().innerText()).toMatch(/Pending.*503, refused in \d+ ms.*Next/s)
  await page.getByRole('button', { name: 'Close', exact: true }).click()
  await soon(page, () => page.getByRole('row').filter({ hasText: receiver.url }).innerText()).toMatch(/\d failures?/)
  await openWebhook(page)
  await page.setViewportSize({ width: 360, height: 800 })
  expect(await reachingOut(page)).toEqual([])
  await inThemes(page, () => axe(page))
})

test('a receiver that is gone switches its webhook off, and the page says why and how it comes on again', async ({
  newPage,
}) => {
  status = 410
  const page = await opened(newPage, { allow: [/^answer 409 POST .*\/test$/] })
  await openWebhook(page)
  await press(shown(page), 'Send test event')
  await soon(page, () => shown(page).getByText('The platform switched it off').count()).toBe(1)
  await press(shown(page), 'Send test event')
  await page.getByText('No test event was sent').first().waitFor()
  status = 204
  const on = shown(page).getByRole('checkbox', { name: /^On / })
  await soon(page, () => on.isChecked()).toBe(false)
  await on.check()
  await press(shown(page), 'Save changes')
  await shown(page).getByText('The platform switched it off').waitFor({ state: 'detached' })
  await press(shown(page), 'Send test event')
  await soon(page, () => deliveries(page).first().innerText()).toMatch(/Delivered.*204 in/s)
})

test('switched off by hand it hears of nothing; removed it is gone', async ({ api, open }) => {
  const page = await open('/settings/webhooks')
  await openWebhook(page)
  await shown(page).getByRole('checkbox', { name: /^On / }).uncheck()
  await press(shown(page), 'Save changes')
  await page.getByText('The webhook was changed').first().waitFor()
  const before = receiver.seen.length
  await api.newCluster()
  await press(shown(page), 'Remove webhook')
  const asked = dialog(page, 'Remove this webhook?')
  await axe(page)
  await press(asked, 'Remove webhook')
  await page.getByText('No webhooks yet').waitFor()
  expect(receiver.seen.length).toBe(before)
  expect(answered(await (await api.admin).get(path), 200).items).toEqual([])
})

test('whoever may not have webhooks is told so', async ({ api, open }) => {
  const { username, password } = await api.newPerson('Viewer')
  const page = await open('/settings/webhooks', { as: { username, password } })
  await page.getByText('You may not see this page').waitFor()
  await page.getByText('users:admin').waitFor()
  expect(await page.getByRole('button', { name: 'Add webhook' }).count()).toBe(0)
})
