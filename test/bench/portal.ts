import { performance } from 'node:perf_hooks'
import type { Page } from 'playwright-core'
import { PlatformProcess } from '../support/platform.ts'
import { launchChromium } from '../support/portal/chromium.ts'
import { seedFleet } from '../support/portal/fleet.ts'
import { newContext, waitForPage } from '../support/portal/open.ts'
import { withoutRateLimits } from './support/emulators.ts'
import type { Effort, Section } from './support/section.ts'
import { range, spread } from './support/statistics.ts'

const count = 10_000

/** Measures the list of 10,000 clusters in a browser. Times depend on the machine, so there are no goals. */
export async function* measurePortal({ isQuick }: Effort): AsyncGenerator<Section> {
  await using platform = await PlatformProcess.start({ ...withoutRateLimits, PLAT_LOG_LEVEL: 'error' })
  await seedFleet(platform, await platform.setUp(), count)
  const browser = await launchChromium()
  try {
    const context = await newContext(browser, platform.url)
    const page = await context.newPage()
    const rounds = range(isQuick ? 2 : 5)
    const timesMs = new Map<string, number[]>()
    const record = (name: string, ms: number) => timesMs.set(name, [...(timesMs.get(name) ?? []), ms])
    for (const _ of rounds)
      for (const path of ['/clusters', '/clusters?sort=name', '/clusters?selector=env%3Dprod']) {
        const startedAtMs = performance.now()
        await page.goto(path)
        await page
          .getByRole('row')
          .filter({ has: page.getByRole('link') })
          .first()
          .waitFor()
        record(`${path}: first row`, performance.now() - startedAtMs)
        record(`${path}: first contentful paint`, await firstPaint(page))
      }
    for (const _ of rounds) {
      await page.goto('/clusters?sort=name')
      await waitForPage(page)
      for (const frameMs of await scroll(page)) record('scrolling: frame', frameMs)
      const startedAtMs = performance.now()
      await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
      await page.getByRole('link', { name: 'cluster-009999' }).waitFor()
      record('jump to the end: row loaded', performance.now() - startedAtMs)
      await page.goto('/clusters')
      await waitForPage(page)
      for (const field of ['searchbox', 'combobox'] as const) {
        const name = field === 'searchbox' ? 'Name' : 'Label selector'
        await page.getByRole(field, { name, exact: true }).focus()
        for (const letterMs of await type(page, field === 'searchbox' ? 'cluster-0000' : 'env=prod'))
          record(`typing into ${name}: letter`, letterMs)
      }
      await page.getByRole('status').filter({ hasText: '100 clusters' }).first().waitFor()
    }
    yield {
      title: `Portal: list of ${count.toLocaleString()} clusters, one machine, 1280 × 800`,
      columns: ['step', 'median ms', 'max ms'],
      rows: [...timesMs].map(([name, times]) => [name, spread(times).median, spread(times).max]),
      goals: [],
    }
  } finally {
    await browser.close()
  }
}

const firstPaint = async (page: Page): Promise<number> =>
  Number(await page.evaluate(`performance.getEntriesByName('first-contentful-paint')[0]?.startTime`))

const scroll = (page: Page): Promise<number[]> =>
  page.evaluate(`(async () => {
    const frames = []
    let last = performance.now()
    for (let at = 0; at < 60; at++) {
      scrollBy(0, 300)
      await new Promise(requestAnimationFrame)
      frames.push(performance.now() - last)
      last = performance.now()
    }
    return frames
  })()`)

/** Types a text. Returns for each letter the time in milliseconds until the next frame is drawn. */
const type = (page: Page, text: string): Promise<number[]> =>
  page.evaluate(`(async () => {
    const times = []
    for (const letter of ${JSON.stringify(text)}) {
      const startedAtMs = performance.now()
      document.execCommand('insertText', false, letter)
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
      times.push(performance.now() - startedAtMs)
    }
    return times
  })()`)
