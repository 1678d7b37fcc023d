/** `npm run bench`: measures the platform against a floor in the same run; fails when a goal is missed. */
import { startWorld } from './support/world.ts'

const effort = { isQuick: process.argv.includes('--quick') }
await using world = await startWorld()
Object.assign(process.env, world.environment, { PLAT_LOG_LEVEL: 'error' })

// Settings are read when core is first imported: from here on.
const { runParts } = await import('./parts.ts')
process.exitCode = await runParts(world, effort)
