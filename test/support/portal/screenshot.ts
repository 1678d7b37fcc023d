import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { waitForPage } from './open.ts'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))

export const screenshotsFolder = join(projectDir, process.env['PLAT_SCREENSHOTS'] ?? 'dist/screenshots')

export const widths = [360, 1280] as const
export type Width = (typeof widths)[number]

export async function setWidth(page: Page, width: Width): Promise<void> {
  const { height } = page.viewportSize() ?? { height: 800 }
  await page.setViewportSize({ height, width })
  await page.evaluate('scrollTo(0, 0)')
  await waitForPage(page)
}

export async function takeScreenshots(page: Page, name: string): Promise<void> {
  const size = page.viewportSize() ?? { width: 1280, height: 800 }
  for (const width of widths) {
    await setWidth(page, width)
    for (const theme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: theme })
      await takeScreenshot(page, `${name}-${theme}-${width}`)
    }
  }
  await page.emulateMedia({ colorScheme: null })
  await page.setViewportSize(size)
}

export async function takeScreenshot(page: Page, name: string): Promise<void> {
  await mkdir(screenshotsFolder, { recursive: true })
  const path = join(screenshotsFolder, `${name.replaceAll(/[^\w.-]+/g, '-').slice(0, 100)}.png`)
  await page.screenshot({ path, fullPage: true, animations: 'disabled' })
}
