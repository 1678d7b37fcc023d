import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import type { Frame, Page } from 'playwright-core'

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const grave = new Set(['serious', 'critical'])

/** What WCAG 2.2 AA asks for, and what axe's makers hold to be good practice. */
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/**
 * What axe finds on a page, or in one frame, that is serious or critical: a text for each, with its rule, its elements and what to do.
 * The debugger brings axe in: Playwright's `bypassCSP` would hide faults of the page's own policy.
 */
export async function axeFindings(page: Page | Frame): Promise<string[]> {
  const findings = (await look(page)).filter(({ impact }) => grave.has(impact ?? ''))
  return findings.map(({ id, impact, help, helpUrl, nodes }) =>
    [
      `${impact} ${id}: ${help} (${helpUrl})`,
      ...nodes.map(
        ({ target, failureSummary = '' }) => `  ${target.join(' ')}: ${failureSummary.replaceAll(/\s+/g, ' ')}`,
      ),
    ].join('\n'),
  )
}

/** Throws for what axe finds, see `axeFindings`. */
export async function axe(page: Page | Frame): Promise<void> {
  const findings = await axeFindings(page)
  if (findings.length > 0) throw new Error(`axe found at ${page.url()}:\n${findings.join('\n')}`)
}

async function look(page: Page | Frame): Promise<AxeResults['violations']> {
  await page.evaluate(`globalThis.axe ?? (() => { ${source} })()`)
  // Frames are looked at by themselves: what a module shows is not the portal's.
  return page.evaluate(async (values) => {
    const { axe, document }: any = globalThis
    const { violations } = await axe.run(document, { runOnly: { type: 'tag', values }, iframes: false })
    return violations
  }, tags)
}
