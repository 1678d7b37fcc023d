import { startWorld } from '../bench/support/world.ts'
import { builtAssets } from './assets.ts'
import type { Part } from './part.ts'

export const part: Part = {
  title: 'Request lines that readers read differently',
  how:
    'Traversals, encodings, disguises and broken framing, written to a socket of the gateway as they stand, and handed to every ' +
    'function as events as API Gateway makes them, each with the credentials of somebody who may. A module notes what it is asked.',
  run: async (effort) => {
    await using world = await startWorld()
    const settings = { PLAT_LOG_LEVEL: 'error', PLAT_ASSETS_DIR: await builtAssets() }
    Object.assign(process.env, world.environment, settings)
    await import('../support/without-rate-limits.ts')
    const { figuresOf } = await import('./request-lines/run.ts')
    return await figuresOf(effort)
  },
}
