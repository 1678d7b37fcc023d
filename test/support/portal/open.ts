import type { Browser, BrowserContext, Page } from 'playwright-core'
import { type PageErrors, recordPageErrors } from './page-errors.ts'

export interface Credentials {
  username: string
  password: string
}

export interface View {
  as?: Credentials | 'anonymous'
  theme?: Theme
  width?: number
  height?: number
  timezone?: string
  allow?: readonly RegExp[]
}

export type Theme = 'light' | 'dark'

export const administrator: Credentials = { username: 'ada', password: 'correct horse battery' }

const timeoutMs = 60_000

const errors = new WeakMap<BrowserContext, PageErrors>()

export function errorsOf(page: Page): PageErrors {
  const recordedErrors = errors.get(page.context())
  if (!recordedErrors) throw new Error('Open the page with newContext.')
  return recordedErrors
}

export async function newContext(browser: Browser, origin: string, view: View = {}): Promise<BrowserContext> {
  const {
    as: user = administrator,
    theme = 'light',
    width = 1280,
    height = 800,
    timezone = 'Europe/Berlin',
    allow = [],
  } = view
  const context = await browser.newContext({
    baseURL: origin,
    locale: 'en',
    timezoneId: timezone,
    colorScheme: theme,
    viewport: { width, height },
    // Test certificates have no trusted issuer.
    ignoreHTTPSErrors: origin.startsWith('https:'),
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  context.setDefaultTimeout(timeoutMs)
  const recordedErrors = await recordPageErrors(context, origin)
  recordedErrors.allow(...allow)
  errors.set(context, recordedErrors)
  if (user !== 'anonymous') await signIn(context, origin, user)
  return context
}

export async function signIn(context: BrowserContext, origin: string, data: Credentials): Promise<void> {
  const { username, password } = data
  const headers = { origin, 'sec-fetch-site': 'same-origin' }
  const response = await context.request.post(`${origin}/api/v1/auth/session`, {
    data: { username, password },
    headers,
  })
  if (!response.ok()) throw new Error(`Sign-in as ${username} failed: ${response.status()} ${await response.text()}`)
}

export async function waitForPage(page: Page): Promise<void> {
  await page.locator('h1').first().waitFor()
  await page.waitForFunction(() => {
    const { document }: any = globalThis
    return document.querySelector('[aria-busy="true"]') === null && document.fonts.status === 'loaded'
  })
}

/** Route handlers that are still running may fail silently. */
export async function closePage(page: Page): Promise<void> {
  if (!page.isClosed()) await page.unrouteAll({ behavior: 'ignoreErrors' })
  await page.context().close()
}
