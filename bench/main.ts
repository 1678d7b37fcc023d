/** `npm run bench`: measures the platform against a floor in the same run; fails when a goal is missed. */
import { parseArgs } from 'node:util'
import { isPartName, type PartName, partNames } from './part-names.ts'
import { keepSome } from './support/report.ts'
import { startWorld } from './support/world.ts'

const help = `npm run bench                  every part, and bench/README.md anew
npm run bench -- --only NAME   this part; the report keeps the others
npm run bench -- --quick       the short version, which writes nothing
npm run bench -- --report      bench/README.md anew, of what was measured last

parts: ${partNames.join(', ')}
`

const options = {
  only: { type: 'string' },
  quick: { type: 'boolean', default: false },
  report: { type: 'boolean' },
  help: { type: 'boolean' },
} as const

/** The command line. Throws an Error whose message is for whoever typed it. */
function readOptions() {
  const { only, ...flags } = parseArgs({ options }).values
  if (only !== undefined && !isPartName(only)) throw new Error(`There is no part ${only}. See --help.`)
  return { ...flags, only }
}

async function measure(isQuick: boolean, only: PartName | undefined): Promise<number> {
  const { registry } = await import('./modules/registry.ts')
  await using world = await startWorld()
  await using modules = registry
  Object.assign(process.env, world.environment, modules.settings, { PLAT_LOG_LEVEL: 'error' })

  // Settings are read when core is first imported: from here on.
  const { runBench } = await import('./run.ts')
  // Awaited here: the world ends with this function.
  return await runBench(world, { isQuick }, only)
}

async function main(): Promise<number> {
  let wish: ReturnType<typeof readOptions>
  try {
    wish = readOptions()
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    return 2
  }
  if (wish.help) process.stdout.write(help)
  else if (wish.report) await keepSome([])
  else return measure(wish.quick, wish.only)
  return 0
}

process.exitCode = await main()
