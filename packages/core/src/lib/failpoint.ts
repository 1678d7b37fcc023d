import { writeSync } from 'node:fs'
import { config } from '../config.ts'

/**
 * A test can kill the process, wait forever or throw an error at a failpoint. `PLAT_FAILPOINT` is `<name>=kill`,
 * `<name>=hang` or `<name>=throw`, and the suffix `@<n>` selects the n-th hit.
 */

const [, armedName, effect, hitNumber] = /^([\w.-]+)=(kill|hang|throw)(?:@(\d+))?$/.exec(config.PLAT_FAILPOINT) ?? []
let hitCount = 0

/** Place a failpoint between two effects that a crash may separate. */
export async function failpoint(name: string): Promise<void> {
  if (name !== armedName || ++hitCount !== Number(hitNumber ?? 1)) return
  if (effect === 'throw') throw new Error(`Failpoint ${name}`)
  // Synchronous, because a kill discards buffered output.
  writeSync(2, `failpoint ${name}\n`)
  if (effect === 'kill') process.kill(process.pid, 'SIGKILL')
  await new Promise(() => undefined)
}
