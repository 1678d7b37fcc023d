import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { answered } from '../test/conformance/support/answer.ts'
import { PlatformProcess } from '../test/support/platform.ts'
import { launchChromium } from '../test/support/portal/chromium.ts'
import { administrator, newContext, settled, type Theme, type View } from '../test/support/portal/open.ts'
import { pages, pathOf, type PortalPage, publicPages, setupPages } from '../test/support/portal/pages.ts'
import { lasting, type Places } from '../test/support/portal/seed.ts'
import { screenshotsFolder, shot } from '../test/support/portal/shot.ts'
import { showcase } from '../test/support/portal/showcase.ts'
import { root } from './source.ts'

/**
 * `npm run screenshots`: pictures of every page of the portal, in both themes, narrow and wide, of a platform that is in use. They go to
 * dist/screenshots, or to the folder that PLAT_SCREENSHOTS names; the three of the README to docs/screenshots.
 */

const mostBytes = 200 * 1024
const restMs = 3000

async function visit(browser: Browser, origin: string, path: string, view: View, act: (page: Page) => Promise<void>) {
  const context = await newContext(browser, origin, view)
  try {
    const page = await context.newPage()
    await page.goto(path)
    await settled(page)
    // Charts are loaded after their page; a page that goes on asking never rests.
    await page.waitForLoadState('networkidle', { timeout: restMs }).catch(() => undefined)
    await act(page)
  } finally {
    await context.close()
  }
}

/** One picture of what is in sight, small enough for a repository. */
async function ofReadme(page: Page, name: string): Promise<void> {
  const folder = join(root, 'docs/screenshots')
  await mkdir(folder, { recursive: true })
  const path = join(folder, `${name}.png`)
  await page.screenshot({ path, animations: 'disabled' })
  const { size } = await stat(path)
  if (size > mostBytes) throw new Error(`${path} has ${size} bytes, more than ${mostBytes}.`)
}

async function takeAll(browser: Browser, platform: PlatformProcess): Promise<void> {
  const each = async (list: readonly PortalPage[], as: NonNullable<View['as']>, places?: Places) => {
    for (const it of list) {
      const path = places ? pathOf(it, places) : String(it.path)
      await visit(browser, platform.url, path, { as }, (page) => shot(page, it.name))
    }
  }
  await each(setupPages, 'nobody')
  const api = await platform.api()
  const body = { ...(await platform.setupBody()), platformName: 'Acme Platform' }
  answered(await api.anonymous.post('/api/v1/setup/complete', body), 200)
  const places = await showcase(platform, api)
  await each(publicPages, 'nobody')
  await each(pages, administrator, places)
  const readme: [name: string, path: string, theme: Theme, label: string][] = [
    ['dashboard', '/dashboard', 'light', 'Cluster health'],
    ['job', `/jobs/${places.jobs.completed}`, 'light', 'Output of the job'],
    ['clusters', '/clusters', 'dark', 'Clusters'],
  ]
  for (const [name, path, theme, label] of readme) {
    await visit(browser, platform.url, path, { theme }, async (page) => {
      await page.getByLabel(label).first().scrollIntoViewIfNeeded()
      await ofReadme(page, name)
    })
  }
}

const platform = await PlatformProcess.start(lasting)
const browser = await launchChromium()
try {
  await takeAll(browser, platform)
  console.log(`The pictures are in ${screenshotsFolder} and docs/screenshots.`)
} finally {
  await browser.close()
  await platform[Symbol.asyncDispose]()
}
