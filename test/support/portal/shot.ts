import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { isLong } from '../long.ts'
import { settled, type Theme } from './open.ts'
import { turnOf } from './turns.ts'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))

/** Where pictures go: the folder that PLAT_SCREENSHOTS names, or one that nobody commits. */
export const screenshotsFolder = join(projectDir, process.env['PLAT_SCREENSHOTS'] ?? 'dist/screenshots')

const themes: readonly Theme[] = ['light', 'dark']

/** Does something in both themes, and leaves the page in the one that it had. */
async function inBothThemes(page: Page, act: (theme: Theme) => Promise<void>): Promise<void> {
  for (const theme of themes) {
    await page.emulateMedia({ colorScheme: theme })
    await act(theme)
  }
  await page.emulateMedia({ colorScheme: null })
}

/**
 * Has a page looked at in both themes where all is tried that can be (see long.ts); otherwise in one of them, which take turns from look to
 * look.
 */
export async function inThemes(page: Page, act: (theme: Theme) => Promise<void>): Promise<void> {
  if (isLong) return inBothThemes(page, act)
  const [theme = 'light'] = turnOf('theme', themes)
  await page.emulateMedia({ colorScheme: theme })
  await act(theme)
  await page.emulateMedia({ colorScheme: null })
}

/** Narrow as the narrowest telephone that the portal works on, and as a desk. */
export const widths = [360, 1280] as const
export type Width = (typeof widths)[number]

/** Gives a page another width, and waits until it shows itself in it, from its top. */
export async function widen(page: Page, width: Width): Promise<void> {
  const { height } = page.viewportSize() ?? { height: 800 }
  await page.setViewportSize({ height, width })
  await page.evaluate('scrollTo(0, 0)')
  await settled(page)
}

/** Writes pictures of a page, `<name>-<theme>-<width>.png`: two themes, narrow and wide. The page keeps its size and theme. */
export async function shot(page: Page, name: string): Promise<void> {
  const size = page.viewportSize() ?? { width: 1280, height: 800 }
  for (const width of widths) {
    await widen(page, width)
    await inBothThemes(page, (theme) => picture(page, `${name}-${theme}-${width}`))
  }
  await page.setViewportSize(size)
}

/** Writes one picture of a page as it is. */
export async function picture(page: Page, name: string): Promise<void> {
  await mkdir(screenshotsFolder, { recursive: true })
  const path = join(screenshotsFolder, `${name.replaceAll(/[^\w.-]+/g, '-').slice(0, 100)}.png`)
  await page.screenshot({ path, fullPage: true, animations: 'disabled' })
}
