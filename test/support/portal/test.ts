import { test as base } from 'vitest'
import type { Page } from 'playwright-core'
import type { Platform } from '../../../conformance/platform.ts'
import { PlatformProcess } from '../platform.ts'
import { lacking, launchChromium } from './chromium.ts'
import { faultsOf, newContext, settled, type View } from './open.ts'
import { picture } from './shot.ts'

/** Opens a browser of its own for one user, with one empty page. */
export type NewPage = (view?: View) => Promise<Page>

/** The same, and opens a page of the portal in it and waits until it shows what it is about. */
export type Open = (path: string, view?: View) => Promise<Page>

/**
 * A test in the browser. Per file, made when first asked for: `platform` (a process, never set up; with `settings`), `api` (sets it up and
 * answers its API), `browser`. Per test: `open`, `newPage`. A page that was opened fails its test when it was not quiet, see faults.ts.
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
  .extend('lacking', { scope: 'file' }, lacking)
  .extend('browser', { scope: 'file' }, async ({ lacking }, { onCleanup }) => {
    if (lacking !== '') return undefined
    const browser = await launchChromium()
    onCleanup(() => browser.close())
    return browser
  })
  .extend('newPage', async ({ browser, origin, lacking, skip, task }, { onCleanup }): Promise<NewPage> => {
    if (!browser) return skip(lacking)
    const pages: Page[] = []
    onCleanup(() => close(pages, task.result?.state === 'fail' ? task.name : undefined))
    return async (view) => {
      const context = await newContext(browser, origin, view)
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

/** Ends what a test has opened; fails for every fault of its pages. Of a test that has failed there is a picture. */
async function close(pages: readonly Page[], failed: string | undefined): Promise<void> {
  const faults = pages.map(faultsOf)
  if (failed !== undefined) {
    await Promise.all(pages.map((page, index) => picture(page, `failed-${failed}-${index}`).catch(() => undefined)))
  }
  await Promise.all(pages.map((page) => page.context().close()))
  for (const fault of faults) fault.expectNone()
}
