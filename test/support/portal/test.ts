import { test as base } from 'vitest'
import type { Page } from 'playwright-core'
import type { Platform } from '../../conformance/support/platform.ts'
import { PlatformProcess } from '../platform.ts'
import { chromiumOfWorker, lacking } from './chromium.ts'
import { administrator, type Credentials, faultsOf, leave, newContext, settled, signIn, type View } from './open.ts'
import { showPrograms } from '../program.ts'
import { picture } from './shot.ts'

/** Opens a browser of its own for one user, with one empty page. */
export type NewPage = (view?: View) => Promise<Page>

/** The same, and opens a page of the portal in it and waits until it shows what it is about. */
export type Open = (path: string, view?: View) => Promise<Page>

/** As `Open`, in a browser that all tests of the file share: a new one takes most of the time of a test that only looks. */
export type Visit = (path: string, view?: Pick<View, 'allow' | 'width' | 'height'>) => Promise<Page>

interface Seat {
  page: Page
  sinceMs: number
}

/** A session is renewed after a quarter of an hour, which a page that only looks shall not have to do. */
const seatMs = 300_000

/**
 * A test in the browser. Per file, made when first asked for: `platform` (a process, never set up; with `settings`), `api` (sets it up and
 * answers its API), `browser` (the worker's), `user` (whose pages they are, unless a view says otherwise). Per test: `open`, `newPage`, `visit`. A page that was opened fails its test when it was not quiet, see faults.ts.
 */
export const test = base
  .extend('settings', { scope: 'file' }, (): Record<string, string> => ({}))
  .extend('platform', { scope: 'file' }, async ({ settings }, { onCleanup }) => {
    const platform = await PlatformProcess.start(settings)
    onCleanup(() => platform[Symbol.asyncDispose]())
    return platform
  })
  .extend('origin', { scope: 'file' }, ({ platform }) => platform.url)
  .extend('api', { scope: 'file' }, ({ platform }): Promise<Platform> => platform.setUp())
  .extend('user', { scope: 'file' }, (): Credentials => administrator)
  .extend('lacking', { scope: 'file' }, lacking)
  .extend('browser', { scope: 'file' }, ({ lacking }) => (lacking === '' ? chromiumOfWorker() : undefined))
  .extend('newPage', async ({ browser, origin, user, lacking, skip, task }, { onCleanup }): Promise<NewPage> => {
    if (!browser) return skip(lacking)
    const pages: Page[] = []
    onCleanup(() => close(pages, task.result?.state === 'fail' ? task.name : undefined))
    return async (view) => {
      const context = await newContext(browser, origin, { as: user, ...view })
      const page = await context.newPage()
      pages.push(page)
      return page
    }
  })
  .extend('open', ({ newPage }): Open => async (path, view) => {
    const page = await newPage(view)
    await page.goto(path)
    await settled(page)
    return page
  })

  /** The page that `visit` leads, and when somebody signed in there. */
  .extend('seat', { scope: 'file' }, async ({ browser, origin }, { onCleanup }): Promise<Seat | undefined> => {
    if (!browser) return undefined
    const context = await newContext(browser, origin, { as: 'nobody' })
    onCleanup(() => context.close())
    return { page: await context.newPage(), sinceMs: -Infinity }
  })
  .extend('visit', ({ seat, origin, user, lacking, skip, task }, { onCleanup }): Visit => {
    if (!seat) return skip(lacking)
    const { page } = seat
    const faults = faultsOf(page)
    onCleanup(async () => {
      if (task.result?.state === 'fail') await picture(page, `failed-${task.name}`).catch(() => undefined)
      // What it has asked for is nobody's business any more, in the next test least of all.
      await page.goto('about:blank')
      faults.expectNone()
    })
    return async (path, { allow = [], width = 1280, height = 800 } = {}) => {
      faults.forget()
      faults.allow(...allow)
      if (performance.now() - seat.sinceMs > seatMs) {
        await signIn(page.context(), origin, user)
        seat.sinceMs = performance.now()
      }
      await page.setViewportSize({ width, height })
      await page.goto(path)
      await settled(page)
      return page
    }
  })

/** Ends what a test has opened; fails for every fault of its pages. Of a test that has failed there is a picture. */
async function close(pages: readonly Page[], failed: string | undefined): Promise<void> {
  if (failed !== undefined) {
    await Promise.all(pages.map((page, index) => picture(page, `failed-${failed}-${index}`).catch(() => undefined)))
  }
  try {
    for (const page of pages) faultsOf(page).expectNone()
  } catch (error) {
    showPrograms()
    throw error
  } finally {
    await Promise.all(pages.map(leave))
  }
}
