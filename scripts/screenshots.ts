import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { expectStatus } from '../test/conformance/support/answer.ts'
import { PlatformProcess } from '../test/support/platform.ts'
import { launchChromium } from '../test/support/portal/chromium.ts'
import { administrator, newContext, type Theme, type View, waitForPage } from '../test/support/portal/open.ts'
import { pages, pathOf, type PortalPage, publicPages, setupPages } from '../test/support/portal/pages.ts'
import { type SeedIds, slowHeartbeat } from '../test/support/portal/seed.ts'
import { screenshotsFolder, takeScreenshots } from '../test/support/portal/screenshot.ts'
import { showcase } from '../test/support/portal/showcase.ts'
import { root } from './source.ts'

/**
 * `npm run screenshots`: takes pictures of every page in both themes and all widths, in dist/screenshots or
 * PLAT_SCREENSHOTS. Takes the three pictures of the README, in docs/screenshots.
 */

const maxBytes = 200 * 1024
const idleTimeoutMs = 3000

async function visit(
  browser: Browser,
  origin: string,
  path: string,
  view: View,
  interact: (page: Page) => Promise<void>,
) {
  const context = await newContext(browser, origin, view)
  try {
    const page = await context.newPage()
    await page.goto(path)
    await waitForPage(page)
    // Charts load after their page, and a page that polls never becomes idle.
    await page.waitForLoadState('networkidle', { timeout: idleTimeoutMs }).catch(() => undefined)
    await interact(page)
  } finally {
    await context.close()
  }
}

/** Takes a picture of the viewport. Throws if the file is too large to commit. */
async function takeReadmePicture(page: Page, name: string): Promise<void> {
  const folder = join(root, 'docs/screenshots')
  await mkdir(folder, { recursive: true })
  const path = join(folder, `${name}.png`)
  await page.screenshot({ path, animations: 'disabled' })
  const { size } = await stat(path)
  if (size > maxBytes) throw new Error(`${path} has ${size} bytes, more than ${maxBytes}.`)
}

async function takeAllScreenshots(browser: Browser, platform: PlatformProcess): Promise<void> {
  const takeEach = async (pages: readonly PortalPage[], user: NonNullable<View['as']>, ids?: SeedIds) => {
    for (const portalPage of pages) {
      const path = ids ? pathOf(portalPage, ids) : String(portalPage.path)
      await visit(browser, platform.url, path, { as: user }, (page) => takeScreenshots(page, portalPage.name))
    }
  }
  await takeEach(setupPages, 'anonymous')
  const api = await platform.api()
  const body = { ...(await platform.setupBody()), platformName: 'Acme Platform' }
  expectStatus(await api.anonymous.post('/api/v1/setup/complete', body), 200)
  const ids = await showcase(platform, api)
  await takeEach(publicPages, 'anonymous')
  await takeEach(pages, administrator, ids)
  const readme: [name: string, path: string, theme: Theme, label: string][] = [
    ['dashboard', '/dashboard', 'light', 'Cluster health'],
    ['job', `/jobs/${ids.jobs.completed}`, 'light', 'Output of the job'],
    ['clusters', '/clusters', 'dark', 'Clusters'],
  ]
  for (const [name, path, theme, label] of readme) {
    await visit(browser, platform.url, path, { theme }, async (page) => {
      await page.getByLabel(label).first().scrollIntoViewIfNeeded()
      await takeReadmePicture(page, name)
    })
  }
}

const platform = await PlatformProcess.start(slowHeartbeat)
const browser = await launchChromium()
try {
  await takeAllScreenshots(browser, platform)
  console.log(`Screenshots are in ${screenshotsFolder} and docs/screenshots.`)
} finally {
  await browser.close()
  await platform[Symbol.asyncDispose]()
}
