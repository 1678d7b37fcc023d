import { expect } from 'vitest'
import { settled } from '../support/portal/open.ts'
import { test } from '../support/portal/shared.ts'
import { requestsDuring, stopClock } from '../support/portal/traffic.ts'
import { setVisible } from '../support/portal/visibility.ts'

/** A layout that takes long to be saved. */

test('what is arranged stays as it is shown while it is saved, also for whoever comes back to the tab', async ({
  newPage,
  api,
}) => {
  const page = await newPage({ as: await api.newPerson('OrgAdmin') })
  await page.clock.install()
  await page.goto('/dashboard')
  await settled(page)
  await page.getByRole('button', { name: 'Edit dashboard' }).click()
  const { promise: isHeld, resolve: save } = Promise.withResolvers<void>()
  await page.route('**/dashboard-layout', async (route) => {
    if (route.request().method() === 'PATCH') await isHeld
    await route.continue()
  })
  await page.getByRole('button', { name: 'Remove Recent jobs' }).click()
  await page.getByRole('status').filter({ hasText: 'Saving' }).waitFor()
  await stopClock(page)
  const asked = await requestsDuring(page, async () => {
    await page.clock.runFor(10_000)
    await setVisible(page, false)
    await setVisible(page, true)
    await page.clock.runFor(1000)
  })
  expect(asked.filter((request) => request.includes('dashboard-layout'))).toEqual([])
  await page.clock.resume()
  save()
  await page.getByRole('status').filter({ hasText: 'Saved' }).waitFor()
  expect(await page.getByRole('region', { name: 'Recent jobs', exact: true }).count()).toBe(0)
  await page.reload()
  await settled(page)
  expect(await page.getByRole('region', { name: 'Recent jobs', exact: true }).count()).toBe(0)
})
