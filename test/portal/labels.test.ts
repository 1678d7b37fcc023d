import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { button, dialog, field, link, row } from '../support/portal/locators.ts'
import { waitForPage } from '../support/portal/open.ts'
import { requestsDuring } from '../support/portal/requests.ts'
import { test } from '../support/portal/test.ts'

const selectorField = (page: Page) => page.getByRole('combobox', { name: 'Label selector' })
const labelsOf = async (api: Platform, id: string) => {
  const labels = Object.entries((await api.cluster(id)).labels)
  return Object.fromEntries(labels.filter(([key]) => !key.startsWith('platform/')))
}

test('labels are edited; an edit keeps concurrent changes of other labels', async ({ open, api }) => {
  const { id } = await api.newCluster({ labels: { tier: 'web' } })
  const page = await open(`/clusters/${id}`)
  await button(page, 'Edit labels').click()
  const key = field(dialog(page), 'Key')
  await key.fill('platform/os')
  await dialog(page).getByText('The platform sets labels with this key.').waitFor()
  await key.fill('env')
  await field(dialog(page), 'Value').fill('prod')
  await button(dialog(page), 'Remove label tier').click()
  expectStatus(await (await api.admin).patch(`/api/v1/clusters/${id}`, { labels: { owner: 'ann' } }), 200)
  await button(dialog(page), 'Save labels').click()
  await dialog(page).waitFor({ state: 'detached' })
  expect(await labelsOf(api, id)).toEqual({ env: 'prod', owner: 'ann' })
  await link(page, 'env=prod').click()
  await page.waitForURL('**/clusters?selector=env%3Dprod')
})

test('a selector is completed and checked while the user types', async ({ open, api }) => {
  const { name } = await api.newCluster({ labels: { zone: 'north', size: 's' } })
  const { name: other } = await api.newCluster({ labels: { zone: 'south' } })
  const page = await open('/clusters')
  const selector = selectorField(page)
  await selector.fill('zone=north,,size')
  await page.getByText('At character 12').waitFor()
  expect(await selector.getAttribute('aria-invalid')).toBe('true')
  await selector.fill('zo')
  await page.getByRole('option', { name: /^zone/ }).waitFor()
  await selector.press('ArrowDown')
  await selector.press('Enter')
  await page.getByRole('option', { name: /^zone=south/ }).click()
  expect(await selector.inputValue()).toBe('zone=south')
  await requestsDuring(page, async () => {
    // In one task, so that a slow machine does not send requests between the letters.
    await page.evaluate(`for (const letter of ',!size') document.execCommand('insertText', false, letter)`)
    await page.getByText('Press Enter').waitFor()
    await selector.press('Enter')
    await page.waitForURL('**/clusters?selector=zone%3Dsouth%2C%21size')
  })
  await link(page, other).waitFor()
  await expect.poll(() => link(page, name).count()).toBe(0)

  await button(page, 'Columns').click()
  await dialog(page).getByRole('checkbox', { name: 'Site' }).uncheck()
  await page.reload()
  await waitForPage(page)
  await row(page, other).filter({ hasText: 'zone=south' }).waitFor()
  expect(await page.getByRole('columnheader').allInnerTexts()).not.toContain('Site')
})
