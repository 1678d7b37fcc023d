import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { setTimeout as delay } from 'node:timers/promises'
import type { AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'
import { isLong } from '../long.ts'
import { setWidth, takeScreenshot, type Width, widths } from './screenshot.ts'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const axeTags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/**
 * Returns the serious and critical accessibility errors of a page. The debugger injects axe, because the `bypassCSP`
 * option of Playwright would hide violations of the policy of the page. Frames are excluded: modules own their content.
 */
export async function axeErrors(page: Page): Promise<string[]> {
  await page.evaluate(`globalThis.axe ?? (() => { ${axeSource} })()`)
  const violations = await page.evaluate(async (values): Promise<AxeResults['violations']> => {
    const { axe, document, getComputedStyle }: any = globalThis
    const options = { runOnly: { type: 'tag', values }, resultTypes: ['violations'], iframes: false }
    // Sticky buttons cover parts of a form only until the user scrolls. Axe would report covered fields as too close.
    const elements: any[] = [...document.querySelectorAll('*')]
    const stickyElements = elements.filter((element) => getComputedStyle(element).position === 'sticky')
    for (const { style } of stickyElements) style.position = 'static'
    try {
      return (await axe.run(document, options)).violations
    } finally {
      for (const { style } of stickyElements) style.removeProperty('position')
    }
  }, axeTags)
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, impact, help, nodes }) => {
      const targets = nodes.map(({ target, failureSummary = '' }) => `\n  ${target.join(' ')}: ${failureSummary}`)
      return `${impact} ${id}: ${help}${targets.join('')}`
    })
}

/**
 * Returns the width of a page that scrolls sideways and up to five elements beyond its right edge, or nothing. Waits up
 * to 2 seconds for the layout.
 */
async function overflowErrors(page: Page): Promise<string[]> {
  let errors = await findOverflow(page)
  for (let attemptsLeft = 20; attemptsLeft > 0 && errors.length > 0; attemptsLeft--) {
    await delay(100)
    errors = await findOverflow(page)
  }
  return errors
}

const findOverflow = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const { document }: any = globalThis
    const root = document.scrollingElement
    if (root.scrollWidth <= root.clientWidth) return []
    const elements: any[] = [...document.body.querySelectorAll('*')]
    const wideElements = elements.filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1)
    const names = wideElements.toReversed().map((element) => `${element.localName}.${element.className}`)
    return [`${root.scrollWidth} pixels wide`, ...names.slice(0, 5)]
  })

const themes = ['light', 'dark'] as const

/**
 * Checks overflow in each width and axe in each theme. Short runs check the first width in one theme, chosen by the
 * length of the name.
 */
export async function appearanceErrors(page: Page, name: string, allWidths: readonly Width[] = widths) {
  const errors: string[] = []
  for (const width of isLong ? allWidths : allWidths.slice(0, 1)) {
    await setWidth(page, width)
    errors.push(...(await overflowErrors(page)).map((error) => `${name} scrolls sideways at ${width} px: ${error}`))
    for (const theme of themes.filter((_theme, index) => isLong || index === name.length % 2)) {
      await page.emulateMedia({ colorScheme: theme })
      errors.push(...(await axeErrors(page)).map((error) => `${name}, ${theme}, ${width} px: ${error}`))
      if (isLong) await takeScreenshot(page, `${name}-${theme}-${width}`)
    }
  }
  await page.emulateMedia({ colorScheme: null })
  return errors
}

/** Runs in the page. A field may draw the focus around the parent or grandparent of the input. */
function describeFocus(): { element: string; isVisible: boolean } | undefined {
  const { document, getComputedStyle }: any = globalThis
  const activeElement = document.activeElement
  if (activeElement === null || activeElement === document.body) return undefined
  const hasOutline = (element: any) => {
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element)
    return (outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0) || boxShadow !== 'none'
  }
  const candidates = [activeElement, activeElement.parentElement, activeElement.parentElement?.parentElement]
  const name = activeElement.getAttribute('aria-label') ?? activeElement.textContent.trim()
  // Scripts cannot inspect the focus inside frames and inside date and time fields.
  const isOpaque = activeElement.localName === 'iframe' || /^(date|time)/.test(activeElement.type ?? '')
  return {
    element: `${activeElement.getAttribute('role') ?? activeElement.localName} ${name.slice(0, 40)}`.trim(),
    isVisible: isOpaque || candidates.some((each) => each && each !== document.body && hasOutline(each)),
  }
}

const maxTabStops = 60

export async function focusErrors(page: Page): Promise<string[]> {
  await page.evaluate(() => {
    const { body }: any = (globalThis as any).document
    body.tabIndex = -1
    body.focus()
    body.removeAttribute('tabindex')
  })
  const errors: string[] = []
  for (let count = 0; count < maxTabStops; count++) {
    await page.keyboard.press('Tab')
    const focus = await page.evaluate(describeFocus)
    if (!focus) return count === 0 ? ['Tab reaches nothing'] : errors
    if (!focus.isVisible) errors.push(`no focus at: ${focus.element}`)
  }
  return errors
}
