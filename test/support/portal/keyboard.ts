import type { Page } from 'playwright-core'

/** Where the keyboard stands on a page. */
export interface Stop {
  /** Role, or tag, and the beginning of its name. */
  what: string
  /** Whether one can see that it stands there: the browser's outline, or what the page draws instead. */
  isSeen: boolean
}

/** Runs in the page. What is drawn may be drawn around the field that holds the focused part. */
function look(): Stop | undefined {
  const { document, getComputedStyle }: any = globalThis
  const element = document.activeElement
  if (element === null || element === document.body) return undefined
  const isDrawn = (at: any) => {
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(at)
    return (outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0) || boxShadow !== 'none'
  }
  const around = [element, element.parentElement, element.parentElement?.parentElement]
  const name = element.getAttribute('aria-label') ?? element.textContent.trim()
  const what = `${element.getAttribute('role') ?? element.localName} ${name.slice(0, 40)}`.trim()
  // What the browser draws in these no script can look at.
  const isOpaque = element.localName === 'iframe' || /^(date|time)/.test(element.type ?? '')
  return {
    what,
    isSeen: isOpaque || around.some((at) => at && at !== document.body && isDrawn(at)),
  }
}

/** Whatever the page has put the focus on: a key goes on from the top of this element. */
function toTop(name: string): void {
  const { document }: any = globalThis
  const element = document.querySelector(name)
  const before = element.getAttribute('tabindex')
  element.tabIndex = -1
  element.focus()
  if (before === null) element.removeAttribute('tabindex')
  else element.setAttribute('tabindex', before)
}

/** What the Tab key reaches from the top of a page, or of an element of it, in order, until it leaves the page; at most so many stops. */
export async function tabStops(page: Page, atMost = 60, from = 'body'): Promise<Stop[]> {
  const stops: Stop[] = []
  await page.evaluate(toTop, from)
  while (stops.length < atMost) {
    await page.keyboard.press('Tab')
    const stop = await page.evaluate(look)
    if (!stop) break
    stops.push(stop)
  }
  return stops
}
