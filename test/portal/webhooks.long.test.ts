import type { Page } from 'playwright-core'
import { Webhook } from 'standardwebhooks'
import { afterAll, expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { type ReceivedRequest, startServer } from '../support/http-server.ts'
import { button, dialog, field, row } from '../support/portal/locators.ts'
import { waitForPage, type View } from '../support/portal/open.ts'
import { type NewPage, testOnOwnPlatform } from '../support/portal/test.ts'

/** One webhook and its receiver. Each test continues where the previous one ended. */
let status = 204
const receiver = await startServer(() => ({ status }))
afterAll(() => receiver[Symbol.asyncDispose]())

const test = testOnOwnPlatform.extend('settings', { scope: 'file' }, { PLAT_WEBHOOK_ALLOW: receiver.host })

const path = '/api/v1/webhooks'
const details = (page: Page) => dialog(page, `Webhook at ${receiver.host}`)
const click = (page: Page, name: string) => button(details(page), name).click()
const isTestEvent = ({ body }: ReceivedRequest) => body.includes('platform.webhook.tested')
const deliveries = (page: Page) => page.getByRole('table', { name: 'Deliveries' }).locator('tbody tr')

async function openWebhook(page: Page): Promise<void> {
  await button(page, `${receiver.url}/hook`).click()
  await details(page).getByRole('heading', { name: 'Deliveries' }).waitFor()
}

const openWithClock = async (newPage: NewPage, view?: View): Promise<Page> => {
  const page = await newPage(view)
  await page.clock.install()
  await page.goto('/settings/webhooks')
  await waitForPage(page)
  await openWebhook(page)
  return page
}

const pollUntil = <Value>(page: Page, read: () => Promise<Value>) =>
  expect.poll(
    async () => {
      await page.clock.fastForward(15_000)
      await waitForPage(page)
      return read()
    },
    { interval: 500 },
  )

let secret = ''

test('adding a webhook shows its secret once', async ({ api, open }) => {
  await api.admin
  const page = await open('/settings/webhooks', { allow: [/^response 422 POST/] })
  await page.getByText('No webhooks yet').waitFor()
  await button(page, 'Add webhook').first().click()
  const form = dialog(page, 'Add a webhook')
  await field(form, 'Address').fill('http://127.0.0.1:1/hook')
  await button(form, 'Add webhook').click()
  await form.getByText('Choose at least one event.').waitFor()
  await form.getByLabel('platform.job.started').check()
  await form.getByLabel('All job events', { exact: true }).check()
  expect(await form.getByLabel('platform.job.started').isDisabled()).toBe(true)
  await form.getByLabel('platform.cluster.registered').check()
  await button(form, 'Add webhook').click()
  await expect.poll(() => field(form, 'Address').getAttribute('aria-invalid')).toBe('true')
  expect(await form.getByRole('alert').count()).toBe(0)
  await field(form, 'Address').fill(`${receiver.url}/hook`)
  await button(form, 'Add webhook').click()
  const addedDialog = dialog(page, 'Webhook added')
  secret = await addedDialog.getByRole('group', { name: 'Secret' }).locator('code').innerText()
  expect(secret).toMatch(/^whsec_/)
  await button(addedDialog, 'Done').click()
  expect(await row(page, receiver.url).innerText()).toMatch(/Enabled\s.*All job events, platform\.cluster\.registered/s)
  await page.reload()
  await openWebhook(page)
  expect(await page.content()).not.toContain(secret)
  const { items } = expectStatus(await (await api.admin).get(path), 200)
  expect(items.map(({ events }: { events: string[] }) => events)).toEqual([
    ['platform.job.*', 'platform.cluster.registered'],
  ])
})

test('a test event is signed with the secret and can be delivered again', async ({ newPage }) => {
  const page = await openWithClock(newPage)
  await details(page).getByText('No deliveries yet.').waitFor()
  await click(page, 'Send test event')
  await pollUntil(page, () => deliveries(page).allInnerTexts()).toEqual([
    expect.stringMatching(/platform\.webhook\.tested.*Delivered.*204 in \d+ ms/s),
  ])
  const event = receiver.requests.find(isTestEvent)
  const headers = Object.fromEntries(Object.entries(event?.headers ?? {}).map(([name, value]) => [name, String(value)]))
  expect(new Webhook(secret).verify(String(event?.body), headers)).toMatchObject({ type: 'platform.webhook.tested' })
  await click(page, 'Redeliver platform.webhook.tested')
  await expect.poll(() => receiver.requests.filter(isTestEvent).length).toBe(2)
  const ids = receiver.requests.filter(isTestEvent).map((request) => request.headers['webhook-id'])
  expect(new Set(ids).size).toBe(1)
  await pollUntil(page, () => deliveries(page).getByRole('listitem').count()).toBe(2)

  await click(page, 'Rotate secret')
  await button(dialog(page, 'Rotate the secret?'), 'Rotate secret').click()
  const rotatedSecret = await details(page).getByRole('group', { name: 'Secret' }).locator('code').innerText()
  await details(page).getByText('also signed with the previous secret').waitFor()
  await click(page, 'Redeliver platform.webhook.tested')
  await expect.poll(() => receiver.requests.filter(isTestEvent).length).toBe(3)
  const lastEvent = receiver.requests.findLast(isTestEvent)
  const signedHeaders = Object.fromEntries(
    Object.entries(lastEvent?.headers ?? {}).map(([name, value]) => [name, String(value)]),
  )
  for (const each of [secret, rotatedSecret])
    expect(new Webhook(each).verify(String(lastEvent?.body), signedHeaders)).toBeDefined()
})

test('shows failed attempts; a webhook that the platform disabled can be enabled', async ({ newPage }) => {
  status = 503
  const page = await openWithClock(newPage, { allow: [/^response 409 POST .*\/test$/] })
  await click(page, 'Send test event')
  await pollUntil(page, () => deliveries(page).first().innerText()).toMatch(/Pending.*503, rejected in \d+ ms.*Next/s)
  await button(page, 'Close').click()
  await pollUntil(page, () => row(page, receiver.url).innerText()).toMatch(/\d failures?/)
  await openWebhook(page)
  status = 410
  const reason = details(page).getByText('Disabled by the platform')
  await click(page, 'Send test event')
  await pollUntil(page, () => reason.count()).toBe(1)
  await click(page, 'Send test event')
  await page.getByText('Failed to send the test event').first().waitFor()
  status = 204
  const enabledBox = details(page).getByRole('checkbox', { name: /^Enabled / })
  await pollUntil(page, () => enabledBox.isChecked()).toBe(false)
  await enabledBox.check()
  await click(page, 'Save changes')
  await reason.waitFor({ state: 'detached' })
  await click(page, 'Send test event')
  await pollUntil(page, () => deliveries(page).first().innerText()).toMatch(/Delivered.*204 in/s)
})

test('a disabled webhook receives nothing and can be removed', async ({ api, open }) => {
  const page = await open('/settings/webhooks')
  await openWebhook(page)
  await details(page)
    .getByRole('checkbox', { name: /^Enabled / })
    .uncheck()
  await click(page, 'Save changes')
  await page.getByText('Webhook updated').first().waitFor()
  const countBefore = receiver.requests.length
  await api.newCluster()
  await click(page, 'Remove webhook')
  await button(dialog(page, 'Remove this webhook?'), 'Remove webhook').click()
  await page.getByText('No webhooks yet').waitFor()
  expect(receiver.requests.length).toBe(countBefore)
  expect(expectStatus(await (await api.admin).get(path), 200).items).toEqual([])
})
