import { startWorld } from '../bench/support/world.ts'
import { startAllowed, startCanary } from './outbound/servers.ts'
import type { Part } from './part.ts'

export const part: Part = {
  title: 'Calls to the outside',
  how:
    'Whatever somebody can name that the platform then calls is given every spelling of an address of this machine, of its networks ' +
    'and of clouds, by itself and as where an allowed server leads; names change their answers. A canary on every address of this ' +
    'machine sees whether anybody comes, and every connection that the platform begins is looked at.',
  run: async (effort) => {
    await using world = await startWorld()
    const [canary, allowed] = [await startCanary(), await startAllowed()]
    const allow = `${allowed.host},${allowed.issuer.server.host}`
    const settings = { PLAT_OUTBOUND_ALLOW: allow, PLAT_LOG_LEVEL: 'error' }
    Object.assign(process.env, world.environment, settings)
    await import('../support/without-rate-limits.ts')
    try {
      const { figuresOf } = await import('./outbound/run.ts')
      return await figuresOf(canary, allowed, effort)
    } finally {
      canary.close()
      await allowed.close()
    }
  },
}
