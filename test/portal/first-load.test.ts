import { expect } from 'vitest'
import { administrator, settled } from '../support/portal/open.ts'
import { notSignedIn } from '../support/portal/pages.ts'
import { test } from '../support/portal/shared.ts'
import { scriptsDuring } from '../support/portal/traffic.ts'

const budgetBytes = 200_000

test('sign-in and dashboard together load at most 200 KB of JavaScript, gzipped', async ({
  newPage,
  api: _isSetUp,
}) => {
  const page = await newPage({ as: 'nobody', allow: notSignedIn })
  const opened = await scriptsDuring(page, async () => {
    await page.goto('/sign-in')
    await settled(page)
  })
  const entered = await scriptsDuring(page, async () => {
    await page.getByRole('textbox', { name: 'User name' }).fill(administrator.username)
    await page.getByLabel('Password', { exact: true }).fill(administrator.password)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.waitForURL('**/dashboard')
    await settled(page)
    // What is fetched beforehand, for pages that one may go to next, counts as well.
    await page.waitForLoadState('networkidle')
  })
  const loaded = new Map([...opened, ...entered].map(({ path, gzipBytes }) => [path, gzipBytes]))
  const total = [...loaded.values()].reduce((sum, bytes) => sum + bytes, 0)
  console.log(
    `First load: ${total} bytes of JavaScript, gzipped, of which the sign-in page ${opened.reduce((sum, { gzipBytes }) => sum + gzipBytes, 0)}`,
  )
  for (const [path, bytes] of loaded) console.log(`  ${path} ${bytes}`)
  expect(opened.length).toBeGreaterThan(0)
  expect(total).toBeLessThanOrEqual(budgetBytes)
})
