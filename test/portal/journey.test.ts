import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { appearanceErrors } from '../support/portal/accessibility.ts'
import {
  button,
  dialog,
  field,
  heading,
  link,
  mainLink,
  openRegistration,
  relayCommand,
} from '../support/portal/locators.ts'
import { setWidth } from '../support/portal/screenshot.ts'
import { testOnOwnPlatform } from '../support/portal/test.ts'
import { fillUpTo, next, setupToken, setupView, waitForStep } from '../support/portal/wizard.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { waitForFileScript } from '../support/script.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const test = testOnOwnPlatform.extend('settings', { scope: 'file' }, { PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS: '1' })

/** Names of everything that the browser stores for the portal, except cookies. */
const readStoredNames = (page: Page): Promise<unknown[]> =>
  page.evaluate(async () => {
    const { localStorage, sessionStorage, indexedDB, caches }: any = globalThis
    const names = [...Object.keys(localStorage), ...Object.keys(sessionStorage)]
    return [...names, ...(await indexedDB.databases()), ...(await caches.keys())]
  })

test('a new platform is set up, runs a job on a real relay and installs a module in one tab', async ({
  open,
  platform,
  annotate,
}) => {
  await using resources = new AsyncDisposableStack()
  const folder = resources.use(await temporaryFolder()).path
  const page = await open('/clusters', setupView)
  const startedAtMs = performance.now()
  let clicks = 0
  await page.exposeFunction('countClick', () => clicks++)
  await page.evaluate("addEventListener('click', ({ isTrusted }) => isTrusted && countClick(), true)")
  await waitForStep(page, 'Welcome')
  await fillUpTo(page, 'One-time token')
  await field(page, 'Token').fill(await setupToken(page, platform))
  await next(page)
  await waitForStep(page, 'Review')
  await button(page, 'Complete setup').click()
  await heading(page, 'Dashboard').waitFor()

  await mainLink(page, 'Clusters').click()
  await openRegistration(page)
  await field(page, 'Name').fill('berlin-1')
  await button(page, 'Register cluster').click()
  resources.use(runRelayCommand(await relayCommand(page), folder))
  for (const [tab, command] of [
    ['Keep it running', 'Command for systemd'],
    ['Many at once', 'Command with an enrollment key'],
    ['Try it', 'Relay command'],
  ] as const) {
    await page.getByRole('tab', { name: tab }).click()
    await page.getByRole('group', { name: command, exact: true }).waitFor()
    expect(await appearanceErrors(page, `register ${tab}`)).toEqual([])
  }
  await setWidth(page, 1280)
  await link(page, 'Open cluster').click()
  await heading(page, /^berlin-1/)
    .getByText('Healthy')
    .waitFor()

  const signal = join(folder, 'signal')
  await link(page, 'Run a job').click()
  await page.getByRole('textbox', { name: 'Script' }).click()
  await page.keyboard.insertText(`echo first\n${waitForFileScript(signal)}\necho second`)
  await button(page, 'Run job').click()
  const output = field(page, 'Output of the job')
  await expect.poll(() => output.textContent()).toContain('first')
  expect(await output.textContent()).not.toContain('second')
  await writeFile(signal, '')
  await expect.poll(() => output.textContent()).toContain('second')
  await heading(page, /^echo first/)
    .getByText('Completed')
    .waitFor()

  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
  await annotate(`From the wizard to the result of the first script: ${seconds} s and ${clicks} clicks`)
  // The count includes one click for each tab of the registration page.
  expect(clicks).toBe(16)

  await mainLink(page, 'Modules').click()
  await button(page.getByRole('row', { name: /Hello World/ }), 'Install').click()
  const install = dialog(page, 'Install Hello World?')
  const event = install.getByLabel('platform.cluster.status_changed')
  expect(await event.isChecked()).toBe(false)
  await event.check()
  await button(install, 'Install').click()
  await dialog(page, 'Hello World').getByText('Version 1.0.0 runs.').waitFor()
  await dialog(page, 'Hello World').getByText('Sent to the module').waitFor()
  await page.keyboard.press('Escape')
  await mainLink(page, 'Hello World').click()
  await page.frameLocator('iframe').getByRole('heading', { name: 'Hello, World!' }).waitFor()

  // Scripts cannot read the session, and nothing else is stored.
  expect(await readStoredNames(page)).toEqual([])
  const tokens = (await page.context().cookies()).filter(({ httpOnly }) => httpOnly)
  expect(tokens.map(({ name, sameSite }) => `${name} ${sameSite}`).toSorted()).toEqual([
    'plat_access Strict',
    'plat_device Strict',
    'plat_refresh Strict',
  ])
  const readableCookies: string = await page.evaluate('document.cookie')
  for (const { value } of tokens) expect(readableCookies).not.toContain(value)
  expect(readableCookies).not.toMatch(/eyJ|sess_|token/i)

  await mainLink(page, 'Clusters').click()
  await link(page, 'berlin-1').waitFor()
  const url = page.url()
  await button(page, /^Account of ada/).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await heading(page, 'Sign in').waitFor()
  const hasNoSession = async () =>
    (await page.context().cookies()).every(({ name, httpOnly }) => !httpOnly || name === 'plat_device')
  await waitFor('cookie removal', hasNoSession)
  for (const navigateBack of [() => page.goBack(), () => page.goBack(), () => page.goto(url), () => page.reload()]) {
    await navigateBack()
    await heading(page, 'Sign in').waitFor()
    expect(await page.locator('body').innerText()).not.toMatch(/berlin-1|Dashboard|Clusters/)
  }
  // The idempotency key of a session renewal may remain, if the response did not arrive.
  expect((await readStoredNames(page)).filter((name) => name !== 'session renewal')).toEqual([])
})
