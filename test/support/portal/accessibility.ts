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
 * Serious and critical accessibility errors of a page, one text each. Axe is injected by the debugger, because Playwright's `bypassCSP`
 * would hide violations of the page's own policy. Frames are excluded: modules own their content.
 */
async function axeErrors(page: Page): Promise<string[]> {
  await page.evaluate(`globalThis.axe ?? (() => { ${axeSource} })()`)
  const violations = await page.evaluate(async (values): Promise<AxeResults['violations']> => {
    const { axe, document }: any = globalThis
    return (await axe.run(document, { runOnly: { type: 'tag', values }, iframes: false })).violations
  }, axeTags)
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, impact, help, nodes }) => {
      const targets = nodes.map(({ target, failureSummary = '' }) => `\n  ${target.join(' ')}: ${failureSummary}`)
      return `${impact} ${id}: ${help}${targets.join('')}`
    })
}

/** The elements that make a page scroll sideways, innermost first. Waits up to 2 seconds for the layout after a resize. */
async function overflowErrors(page: Page): Promise<string[]> {
  let errors = await findOverflow(page)
  for (let left = 20; left > 0 && errors.length > 0; left--) {
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
    const wide = elements.filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1)
    const names = wide.toReversed().map((element) => `${element.localName}.${element.className}`)
    return [`${root.scrollWidth} pixels wide`, ...names.slice(0, 5)]
  })

const variants = [
  { width: 360, theme: 'light' },
  { width: 1280, theme: 'dark' },
  { width: 360, theme: 'dark' },
  { width: 1280, theme: 'light' },
] as const

/** Short runs check one variant per page, chosen by the length of its name so that all pages together cover all variants. */
function variantsFor(name: string, allowed: readonly Width[]) {
  const possible = variants.filter(({ width }) => allowed.includes(width))
  return possible.filter((_, index) => isLong || index === name.length % possible.length)
}

/** Checks overflow in every width and axe in every theme. Long runs also save screenshots. */
export async function appearanceErrors(page: Page, name: string, inWidths: readonly Width[] = widths) {
  const errors: string[] = []
  const checked = variantsFor(name, inWidths)
  for (const width of inWidths) {
    await setWidth(page, width)
    errors.push(...(await overflowErrors(page)).map((error) => `${name} scrolls sideways at ${width} px: ${error}`))
    for (const { theme } of checked.filter((variant) => variant.width === width)) {
      await page.emulateMedia({ colorScheme: theme })
      errors.push(...(await axeErrors(page)).map((error) => `${name}, ${theme}, ${width} px: ${error}`))
      if (isLong) await takeScreenshot(page, `${name}-${theme}-${width}`)
    }
  }
  await page.emulateMedia({ colorScheme: null })
  return errors
}

/** An element that the Tab key reaches. */
export interface TabStop {
  /** Role or tag, and the beginning of the name. */
  element: string
  hasVisibleFocus: boolean
}

/** Runs in the page. A field may draw the focus around the part that has it. */
function focusedStop(): TabStop | undefined {
  const { document, getComputedStyle }: any = globalThis
  const active = document.activeElement
  if (active === null || active === document.body) return undefined
  const hasOutline = (element: any) => {
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element)
    return (outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0) || boxShadow !== 'none'
  }
  const candidates = [active, active.parentElement, active.parentElement?.parentElement]
  const name = active.getAttribute('aria-label') ?? active.textContent.trim()
  // Scripts cannot inspect the focus that the browser draws inside these.
  const isOpaque = active.localName === 'iframe' || /^(date|time)/.test(active.type ?? '')
  return {
    element: `${active.getAttribute('role') ?? active.localName} ${name.slice(0, 40)}`.trim(),
    hasVisibleFocus: isOpaque || candidates.some((each) => each && each !== document.body && hasOutline(each)),
  }
}

/** Moves the focus to the top of an element, from where Tab continues. */
function focusTop(selector: string): void {
  const { document }: any = globalThis
  const element = document.querySelector(selector)
  const before = element.getAttribute('tabindex')
  element.tabIndex = -1
  element.focus()
  if (before === null) element.removeAttribute('tabindex')
  else element.setAttribute('tabindex', before)
}

/** The elements that Tab reaches from the top of `from` until it leaves the page, in order. */
export async function tabStops(page: Page, limit = 60, from = 'body'): Promise<TabStop[]> {
  const stops: TabStop[] = []
  await page.evaluate(focusTop, from)
  while (stops.length < limit) {
    await page.keyboard.press('Tab')
    const stop = await page.evaluate(focusedStop)
    if (!stop) break
    stops.push(stop)
  }
  return stops
}
