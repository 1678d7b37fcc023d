import { administrator } from '../support/portal/open.ts'
import { test } from '../support/portal/test.ts'
import { field, fillUpTo, heading, next, tokenOf } from '../support/portal/wizard.ts'

/** The first-run wizard where it does not hear that setup is complete. */

/** What the wizard asks is refused or lost; whoever has no session yet is told so, wherever the portal looks for one. */
const allow = [
  /setup\/complete/,
  /^answer 401 (GET \/api\/v1\/(auth\/me|portal\/navigation)|POST \/api\/v1\/auth\/session\/refresh)$/,
]

test('setup whose answer was lost is tried again without harm, and leads to the sign-in', async ({
  open,
  platform,
}) => {
  const page = await open('/', { as: 'nobody', allow })
  await fillUpTo(page, 'One-time token')
  await field(page, 'Token').fill(await tokenOf(page, platform))
  await next(page)
  await heading(page, 'Review').waitFor()
  await page.route(
    '**/setup/complete',
    async (route) => {
      await route.fetch()
      await route.abort('connectionreset')
    },
    { times: 1 },
  )
  await page.getByRole('button', { name: 'Complete setup' }).click()
  await page.getByText('Try again: nothing is done twice').waitFor()
  await page.getByRole('button', { name: 'Complete setup' }).click()
  await page.getByText('Setup is complete. Sign in as the administrator.').waitFor()
  await field(page, 'User name').fill(administrator.username)
  await field(page, 'Password').fill(administrator.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL('**/dashboard')
})
