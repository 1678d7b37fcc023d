import type { Page } from 'playwright-core'
import { isLong } from '../long.ts'
import { axeFindings } from './axe.ts'
import { reachingOut } from './layout.ts'
import { picture, type Width, widen, widths } from './shot.ts'
import { turnOf } from './turns.ts'

/** Neighbours differ in both, so that a page and the next one are seen in all that there is. */
const looks = [
  { width: 360, theme: 'light' },
  { width: 1280, theme: 'dark' },
  { width: 360, theme: 'dark' },
  { width: 1280, theme: 'light' },
] as const

/**
 * What is wrong with a page as it stands just now, in lines: it scrolls sideways in one of the widths, or axe finds something. Axe looks at
 * it in every width and theme where all is tried that can be (see long.ts), and pictures are kept; otherwise in one look, which take turns.
 */
export async function faultsOfLook(page: Page, name: string, inWidths: readonly Width[] = widths): Promise<string[]> {
  const found: string[] = []
  const possible = looks.filter(({ width }) => inWidths.includes(width))
  const wanted = isLong ? possible : turnOf('look', possible)
  for (const width of inWidths) {
    await widen(page, width)
    found.push(...(await reachingOut(page)).map((what) => `${name} scrolls sideways at ${width} pixels: ${what}`))
    for (const { theme } of wanted.filter((look) => look.width === width)) {
      await page.emulateMedia({ colorScheme: theme })
      found.push(...(await axeFindings(page)).map((what) => `${name}, ${theme}, ${width} pixels: ${what}`))
      if (isLong) await picture(page, `${name}-${theme}-${width}`)
    }
  }
  await page.emulateMedia({ colorScheme: null })
  return found
}
