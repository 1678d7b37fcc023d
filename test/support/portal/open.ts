import type { Browser, BrowserContext, Page } from 'playwright-core'
import { type Faults, watch } from './faults.ts'

/** Who uses the portal. */
export interface Credentials {
  username: string
  password: string
}

/** How a page is looked at. What is not named: as the administrator, in light, 1280 pixels wide, in Berlin. */
export interface View {
  /** Signed in as this user; `nobody`: not signed in. */
  as?: Credentials | 'nobody'
  theme?: Theme
  width?: number
  height?: number
  timezone?: string
  /** Faults that are as they should be in this test, see `Faults.allow`. */
  allow?: readonly RegExp[]
}

export type Theme = 'light' | 'dark'

export const administrator: Credentials = { username: 'ada', password: 'correct horse battery' }

/** Says only that waiting on is pointless: the machine of the tests may be busy with much else. */
const patienceMs = 60_000

const faults = new WeakMap<BrowserContext, Faults>()

/** What the pages of a context have done that they must not do. */
export function faultsOf(page: Page): Faults {
  const found = faults.get(page.context())
  if (!found) throw new Error('This page was not opened by the harness.')
  return found
}

/** A browser of its own for one user: cookies, cache and all. Each page of it is watched. */
export async function newContext(browser: Browser, origin: string, view: View = {}): Promise<BrowserContext> {
  const {
    as = administrator,
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
    // The certificates of tests are of an authority that nobody knows.
    ignoreHTTPSErrors: origin.startsWith('https:'),
    // Nothing moves while it is looked at.
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  context.setDefaultTimeout(patienceMs)
  const watched = await watch(context, origin)
  watched.allow(...allow)
  faults.set(context, watched)
  if (as !== 'nobody') await signIn(context, origin, as)
  return context
}

/** Signs in as the portal's form does, without the form: the cookies live in the context. */
export async function signIn(
  context: BrowserContext,
  origin: string,
  { username, password }: Credentials,
): Promise<void> {
  const response = await context.request.post(`${origin}/api/v1/auth/session`, {
    data: { username, password },
    headers: { origin, 'sec-fetch-site': 'same-origin' },
  })
  if (!response.ok()) throw new Error(`${username} cannot sign in: ${response.status()} ${await response.text()}`)
}

/**
 * Waits until a page shows what it is about: its heading is there, and nothing says that it is still loading (`aria-busy`).
 */
export async function settled(page: Page): Promise<void> {
  await page.locator('h1').first().waitFor()
  await page.waitForFunction(() => {
    const { document }: any = globalThis
    return document.querySelector('[aria-busy="true"]') === null && document.fonts.status === 'loaded'
  })
}

/** Closes a page and its context. What a route of the test is still asking for the page then is asked for nobody, and may fail. */
export async function leave(page: Page): Promise<void> {
  if (!page.isClosed()) await page.unrouteAll({ behavior: 'ignoreErrors' })
  await page.context().close()
}
