import { expect } from 'vitest'
import { button, field } from '../support/portal/locators.ts'
import { administrator, waitForPage } from '../support/portal/open.ts'
import { signedOutErrors } from '../support/portal/pages.ts'
import { scriptsDuring } from '../support/portal/requests.ts'
import { test } from '../support/portal/shared.ts'

const budgetBytes = 200_000

test('sign-in and dashboard load at most 200 KB of gzipped JavaScript', async ({ newPage, api: _isSetUp }) => {
  const page = await newPage({ as: 'anonymous', allow: signedOutErrors })
  const scripts = await scriptsDuring(page, async () => {
    await page.goto('/sign-in')
    await waitForPage(page)
    await field(page, 'User name').fill(administrator.username)
    await field(page, 'Password').fill(administrator.password)
    await button(page, 'Sign in').click()
    await page.waitForURL('**/dashboard')
    await waitForPage(page)
    // Prefetched pages count too.
    await page.waitForLoadState('networkidle')
  })
  const total = [...scripts.values()].reduce((sum, bytes) => sum + bytes, 0)
  console.log(`First load: ${total} bytes of gzipped JavaScript`)
  expect(total).toBeGreaterThan(0)
  expect(total, JSON.stringify([...scripts])).toBeLessThanOrEqual(budgetBytes)
})
