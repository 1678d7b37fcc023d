/** `npm run bench`: measures the platform against a floor in the same run; fails when a goal is missed. */
import { parseArgs } from 'node:util'
import { registry } from './modules/registry.ts'
import { startWorld } from './support/world.ts'

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } } })
await using world = await startWorld()
await using modules = registry
Object.assign(process.env, world.environment, modules.settings, { PLAT_LOG_LEVEL: 'error' })

// Settings are read when core is first imported: from here on.
const { runBench } = await import('./run.ts')
process.exitCode = await runBench(world, { isQuick: values.quick }, values.only)
