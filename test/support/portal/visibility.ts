import type { Page } from 'playwright-core'

/**
 * Hides or shows the tab, as far as the page can tell. A browser without a window has no tab in the background, so that what the page
 * reads is set by hand; the clock is Playwright's (`page.clock`).
 */
export function setVisible(page: Page, isVisible: boolean): Promise<void> {
  return page.evaluate((isVisible) => {
    const { document, Event }: any = globalThis
    const define = (name: string, value: unknown) =>
      Object.defineProperty(document, name, { configurable: true, get: () => value })
    define('visibilityState', isVisible ? 'visible' : 'hidden')
    define('hidden', !isVisible)
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))
  }, isVisible)
}
