import { setTimeout as delay } from 'node:timers/promises'
import type { Page } from 'playwright-core'

const looks = 20
const pauseMs = 100

/**
 * What makes a page scroll sideways: the elements that reach out of it, the innermost first; empty: it does not. A page that has just been
 * given another width has a moment to arrange itself.
 */
export async function reachingOut(page: Page): Promise<string[]> {
  let found = await look(page)
  for (let left = looks; left > 0 && found.length > 0; left--) {
    await delay(pauseMs)
    found = await look(page)
  }
  return found
}

function look(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const { document }: any = globalThis
    const root = document.scrollingElement
    if (root.scrollWidth <= root.clientWidth) return []
    const elements: any[] = [...document.body.querySelectorAll('*')]
    const wide = elements.filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1)
    const named = wide.toReversed().map((element) => `${element.localName}.${element.className}`)
    return [`${root.scrollWidth} pixels wide`, ...named.slice(0, 5)]
  })
}
