import { writeSync } from 'node:fs'
import { config } from '../config.ts'

/**
 * Named places where a test can end, stall or break the process, to see that nothing is lost (CONTRIBUTING.md, House
 * rules). Nothing happens unless `PLAT_FAILPOINT` arms one: `<name>=kill`, `=hang` or `=throw`, and `@<n>` for its n-th hit.
 */

const [, armed, effect, nth] = /^([\w.-]+)=(kill|hang|throw)(?:@(\d+))?$/.exec(config.PLAT_FAILPOINT) ?? []
let hits = 0

/** Marks a place in the code between two steps that a failure may separate. */
export async function failpoint(name: string): Promise<void> {
  if (name !== armed || ++hits !== Number(nth ?? 1)) return
  // Past the streams of a thread, which a kill would empty.
  writeSync(2, `failpoint ${name}\n`)
  if (effect === 'kill') process.kill(process.pid, 'SIGKILL')
  if (effect === 'throw') throw new Error(`Failpoint ${name}`)
  await new Promise(() => undefined)
}
