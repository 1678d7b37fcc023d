import { startWorld, type World } from '../../bench/support/world.ts'

/**
 * An empty platform whose functions this process may run, and those that it starts: stand-ins in a process of their own, and
 * in the environment where they are. Settings are read when core is first imported: import it afterwards.
 */
export async function enterWorld(settings: Readonly<Record<string, string>> = {}): Promise<World> {
  const world = await startWorld()
  Object.assign(process.env, world.environment, { PLAT_LOG_LEVEL: 'error', ...settings })
  return world
}
