import { log } from '@platform/core/log'

/** Does something about one module: what goes wrong with it is logged, and no concern of the others. */
export async function logErrors(name: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (cause) {
    log('error', 'A module could not be looked at', { name, cause })
  }
}
