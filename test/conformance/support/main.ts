import { test } from 'node:test'
import { areas } from './areas.ts'
import { connect, type Journeys, type Platform } from './platform.ts'
import { help, readOptions, UsageError } from './options.ts'

/** `npm run conformance`: black-box journeys against a running platform. */

const timeoutMs = 300_000

/** The areas that are asked for, in their order. Throws `UsageError` for one that there is not. */
function chosen(only: readonly string[] = Object.keys(areas)): [string, Journeys][] {
  const unknown = only.find((area) => !Object.hasOwn(areas, area))
  if (unknown === undefined) return Object.entries(areas).filter(([area]) => only.includes(area))
  throw new UsageError(`--only: there is no area "${unknown}" among ${Object.keys(areas).join(', ')}.`)
}

async function runAll(platform: Platform): Promise<void> {
  for (const [area, journeys] of chosen(platform.options.only)) {
    await test(area, async (suite) => {
      for (const [promise, journey] of Object.entries(journeys)) {
        await suite.test(promise, { timeout: timeoutMs }, (report) => journey(platform, report))
      }
    })
  }
  await test('Cleaning up', async (suite) => {
    await suite.test('what this run has made is removed', async (report) => {
      report.diagnostic(`${await platform.leftovers.remove()} were made`)
      const { operations, succeeded } = platform.contract
      const others = operations.map(({ operationId }) => operationId).filter((name) => !succeeded.has(name))
      report.diagnostic(`operations without a success in this run: ${others.join(', ') || 'none'}`)
    })
  })
}

function fail(error: unknown): never {
  console.error(error instanceof UsageError ? `${error.message}\nSee npm run conformance -- --help` : error)
  process.exit(error instanceof UsageError ? 2 : 1)
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2), process.env)
  if (options === undefined) process.stdout.write(help)
  else await runAll(await connect(options))
}

await main().catch(fail)
