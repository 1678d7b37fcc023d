import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { isLong, sampled } from '../support/long.ts'
import { appearanceErrors } from '../support/portal/accessibility.ts'
import { button, dialog, field, heading, link, mainLink } from '../support/portal/locators.ts'
import { signIn, waitForPage } from '../support/portal/open.ts'
import { type Open, test } from '../support/portal/test.ts'

/** Unsaved input survives the end of a session and a reload, and is discarded only after a confirmation. */

const allow = [/^response 401 /]
const editor = (page: Page) => page.getByRole('textbox', { name: 'Script' })
const timeoutField = (page: Page) => page.getByLabel('Execution timeout (minutes)')
const modal = (page: Page) => page.locator('dialog[open]')
const secret = 'correct horse battery'

interface TestedForm {
  name: string
  path: string
  open: (page: Page) => Promise<unknown>
  fill: (page: Page) => Promise<void>
  values: (page: Page) => Promise<unknown[]>
  /** The values as filled in; `restored` are the values after a reload. */
  kept: unknown[]
  restored: unknown[]
}

const jobForm: TestedForm = {
  name: 'a page with an editor',
  path: '/jobs/new',
  open: async () => {},
  fill: async (page) => {
    await editor(page).fill('uptime')
    await timeoutField(page).fill('7')
  },
  values: async (page) => [await editor(page).innerText(), await timeoutField(page).inputValue()],
  kept: ['uptime', '7'],
  restored: ['uptime', '7'],
}

const passwordForm: TestedForm = {
  name: 'a page with secrets',
  path: '/settings/account?tab=password',
  open: async () => {},
  fill: (page) => field(page, 'Current password').fill(secret),
  values: async (page) => [await field(page, 'Current password').inputValue()],
  kept: [secret],
  restored: [''],
}

const userForm: TestedForm = {
  name: 'a dialog with a secret',
  path: '/settings/users',
  open: (page) => button(page, 'Create user').first().click(),
  fill: async (page) => {
    await field(dialog(page), 'User name').fill('grace')
    await field(dialog(page), 'Password').fill(secret)
    await button(dialog(page), 'Show password').click()
    await dialog(page)
      .getByRole('checkbox', { name: /^Auditor/ })
      .check()
  },
  values: async (page) => [
    await field(dialog(page), 'User name').inputValue(),
    await field(dialog(page), 'Password').inputValue(),
    await dialog(page)
      .getByRole('checkbox', { name: /^Auditor/ })
      .isChecked(),
  ],
  kept: ['grace', secret, true],
  restored: ['grace', '', true],
}

const webhookForm: TestedForm = {
  name: 'a dialog that loads its choices',
  path: '/settings/webhooks',
  open: (page) => button(page, 'Add webhook').first().click(),
  fill: async (page) => {
    await field(dialog(page), 'Address').fill('https://example.com/hook')
    await dialog(page).getByRole('checkbox', { name: 'Module events', exact: true }).check()
  },
  values: async (page) => [
    await field(dialog(page), 'Address').inputValue(),
    await dialog(page).getByRole('checkbox', { name: 'Module events', exact: true }).isChecked(),
  ],
  kept: ['https://example.com/hook', true],
  restored: ['https://example.com/hook', true],
}

async function openFilled(open: Open, form: TestedForm): Promise<Page> {
  const page = await open(form.path, { allow })
  await form.open(page)
  await form.fill(page)
  return page
}

async function signInAgain(page: Page, password: string): Promise<void> {
  await field(modal(page), 'Password').fill(password)
  await page.keyboard.press('Enter')
  await modal(page).waitFor({ state: 'detached' })
}

test.for(sampled([userForm, jobForm, webhookForm]))(
  'keeps the input of $name when the session ends, and without secrets after a reload',
  async (form, { open, user }) => {
    const page = await openFilled(open, form)
    await page.context().clearCookies()
    await heading(page, 'Sign in again', 2).waitFor()
    expect(await appearanceErrors(page, 'sign-in-again')).toEqual([])
    await page.keyboard.press('Escape')
    expect(await field(modal(page), 'User name').inputValue()).toBe(user.username)
    await signInAgain(page, user.password)
    expect(await form.values(page)).toEqual(form.kept)

    expect(await page.evaluate('JSON.stringify(sessionStorage)')).not.toContain(secret)
    await page.reload()
    await waitForPage(page)
    await form.open(page)
    await page.getByText('Your unsaved input was restored').first().waitFor()
    expect(await form.values(page)).toEqual(form.restored)
  },
)

test('sends the request of a submitted form once the user has signed in again', async ({ open, user, api }) => {
  const page = await openFilled(open, userForm)
  await field(dialog(page), 'E-mail').fill('grace@example.com')
  await field(dialog(page), 'User name').fill('grace-again')
  await page.context().clearCookies()
  await button(dialog(page), 'Create user').click()
  await signInAgain(page, user.password)
  await dialog(page).waitFor({ state: 'hidden' })
  await api.signIn({ username: 'grace-again', password: secret })
})

test.runIf(isLong)(
  'continues when the user signs in again in another tab, and offers a choice to another user',
  async ({ open, user, api, origin }) => {
    const page = await openFilled(open, jobForm)
    const otherPage = await page.context().newPage()
    await otherPage.goto('/clusters')
    const signInElsewhere = async (person: typeof user) => {
      await signIn(page.context(), origin, person)
      await otherPage.evaluate(() => {
        const { BroadcastChannel }: any = globalThis
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- channels have no target origin
        new BroadcastChannel('session').postMessage('changed')
      })
    }
    await page.context().clearCookies()
    await heading(page, 'Sign in again', 2).waitFor()
    await signInElsewhere(user)
    await modal(page).waitFor({ state: 'detached' })

    const viewer = await api.newUser('Viewer')
    await signInElsewhere(viewer)
    await heading(page, 'Another user is signed in', 2).waitFor()
    await button(page, `Sign in as ${user.username}`).click()
    await signInAgain(page, user.password)
    expect(await jobForm.values(page)).toEqual(jobForm.kept)

    await signInElsewhere(viewer)
    await button(page, `Discard input and continue as ${viewer.username}`).click()
    await button(page, `Account of ${viewer.username}`).waitFor()
    expect(await page.evaluate('JSON.stringify(sessionStorage)')).not.toContain('uptime')
  },
)

async function expectQuestion(page: Page, leave: () => Promise<unknown>, form: TestedForm): Promise<void> {
  await leave()
  await heading(page, 'Discard your changes?', 2).waitFor()
  await page.keyboard.press('Escape')
  await modal(page).waitFor({ state: 'detached' })
  expect(await form.values(page)).toEqual(form.kept)
  await leave()
  await button(modal(page), 'Discard changes').click()
}

const exits = [
  ['a link', (page: Page) => mainLink(page, 'Clusters').click(), 'Clusters'],
  ['the back button', (page: Page) => page.evaluate('history.back()'), 'Jobs'],
] as const

test.for(sampled(exits))('asks before %s leaves a changed form', async ([, leave, target], { open }) => {
  const page = await open('/jobs')
  await button(page, /^Account of /).click()
  await page.getByRole('menuitem', { name: 'Account' }).click()
  await page.getByRole('tab', { name: 'Password' }).click()
  await passwordForm.fill(page)
  await expectQuestion(page, () => leave(page), passwordForm)
  await heading(page, target).waitFor()
  expect(await page.evaluate('Object.keys(sessionStorage).filter((key) => key.startsWith("draft"))')).toEqual([])
})

const drafts = (page: Page) =>
  page.evaluate('Object.entries(sessionStorage).filter(([key]) => key.startsWith("draft")).join()')

test('keeps a script while the user visits other pages, until it is submitted, cleared or the user signs out', async ({
  open,
  api,
}) => {
  const { name } = await api.newCluster()
  const page = await open('/jobs/new')
  await expect.poll(() => editor(page).evaluate((element: any) => element.matches(':focus'))).toBe(true)
  const type = async () => {
    await page.keyboard.type('uptime')
    await timeoutField(page).fill('7')
  }
  await type()
  await mainLink(page, 'Clusters').click()
  await heading(page, 'Clusters').waitFor()
  await mainLink(page, 'Jobs').click()
  await link(page, 'Run a script').first().click()
  await page.getByText('Your unsaved input was restored').first().waitFor()
  expect(await jobForm.values(page)).toEqual(jobForm.kept)
  await page.getByRole('checkbox', { name, exact: true }).check()
  await editor(page).press('Control+Enter')
  await heading(page, /^uptime/).waitFor()
  await expect.poll(() => drafts(page)).toBe('')

  await page.goto('/jobs/new')
  await editor(page).click()
  await type()
  await button(page, 'Clear form').click()
  await expect.poll(() => timeoutField(page).inputValue()).toBe('')
  expect(await drafts(page)).toBe('')
  await editor(page).click()
  await type()
  await mainLink(page, 'Clusters').click()
  await heading(page, 'Clusters').waitFor()
  expect(await drafts(page)).toContain('uptime')
  await button(page, /^Account of /).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await field(page, 'Password').waitFor()
  expect(await drafts(page)).toBe('')
})

const closings = [
  ['Escape', (page: Page) => page.keyboard.press('Escape')],
  ['the backdrop', (page: Page) => page.mouse.click(5, 400)],
  ['Cancel', (page: Page) => button(dialog(page), 'Cancel').click()],
] as const

test.for(sampled(closings))('asks before %s closes a changed dialog', async ([, leave], { open }) => {
  const page = await openFilled(open, userForm)
  await expectQuestion(page, () => leave(page), userForm)
  await dialog(page).waitFor({ state: 'hidden' })
  await userForm.open(page)
  expect(await field(dialog(page), 'User name').inputValue()).toBe('')
  await leave(page)
  await dialog(page).waitFor({ state: 'hidden' })
})

test.runIf(isLong)(
  'the browser asks before it closes a tab with a changed form, and not after the change is undone',
  async ({ open }) => {
    const page = await openFilled(open, jobForm)
    const asked = page.waitForEvent('dialog')
    await page.evaluate('setTimeout(() => location.reload())')
    expect((await asked).type()).toBe('beforeunload')
    await waitForPage(page)
    await editor(page).fill('')
    await timeoutField(page).fill('')
    await mainLink(page, 'Clusters').click()
    await heading(page, 'Clusters').waitFor()
  },
)
