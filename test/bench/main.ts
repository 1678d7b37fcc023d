/** `npm run bench`: measures the platform against bare handlers in the same run; fails when a goal is missed. */
import { parseArgs } from 'node:util'
import { peerNames } from './support/peers.ts'
import { startWorld } from './support/world.ts'

const { values } = parseArgs({ options: { only: { type: 'string' }, quick: { type: 'boolean', default: false } } })

async function main(): Promise<number> {
  const { registry } = await import('./modules/registry.ts')
  await using world = await startWorld()
  await using modules = registry
  Object.assign(process.env, world.environment, modules.settings, { PLAT_LOG_LEVEL: 'error' })

  // Core reads its settings when it is first imported.
  const { newContext, parts } = await import('./parts.ts')
  const { setUp } = await import('./support/tenant.ts')
  const { describeMiss, printSection } = await import('./support/report.ts')
  const names = Object.keys(parts)
  if (values.only !== undefined && !names.includes(values.only)) {
    console.error(`There is no part ${values.only}. Parts: ${names.join(', ')}`)
    return 2
  }
  if (peerNames.length === 0)
    console.log('Without peers and HTTP load. To include them: npm ci --prefix test/bench/peers')
  const context = newContext(world, await setUp(), { isQuick: values.quick })
  const goals = []
  for (const [name, measure] of Object.entries(parts)) {
    if (values.only !== undefined && name !== values.only) continue
    for await (const section of measure(context)) {
      printSection(section)
      goals.push(...section.goals)
    }
  }
  const missed = goals.filter((goal) => !goal.isMet && !('isHope' in goal))
  console.log(`\n${goals.filter(({ isMet }) => isMet).length} of ${goals.length} goals met, ${missed.length} missed.`)
  for (const goal of missed) console.log(describeMiss(goal))
  return missed.length > 0 ? 1 : 0
}

process.exitCode = await main()
