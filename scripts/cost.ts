import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { readInputs } from './cost/inputs.ts'
import { pageOf } from './cost/page.ts'
import { root } from './source.ts'

/**
 * `npm run cost`: computes docs/cost-and-scale.md from measured units, prices and quotas. `--measure` measures the units again
 * before, which takes a minute; `--prices FILE` prints the page with other prices instead.
 */
const { values } = parseArgs({ options: { measure: { type: 'boolean' }, prices: { type: 'string' } } })

if (values.measure) {
  const { measureUnits } = await import('../bench/units/measure.ts')
  await measureUnits()
}
await (values.prices === undefined ? writePage() : printPage(values.prices))
// Clients of the stand-ins keep their connections.
if (values.measure) process.exit()

async function writePage(): Promise<void> {
  const file = join(root, 'docs/cost-and-scale.md')
  const before = await readFile(file, 'utf8').catch(() => '')
  const page = pageOf(await readInputs())
  await writeFile(file, page)
  console.log(`docs/cost-and-scale.md is ${page === before ? 'as it was' : 'written'}.`)
}

/** A list of prices that cannot be read, or that lacks one, is said in a line. */
async function printPage(prices: string): Promise<void> {
  try {
    process.stdout.write(pageOf(await readInputs(prices)))
  } catch (error) {
    console.error(`${prices} is no list of prices: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  }
}
