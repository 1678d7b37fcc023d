import { Session } from 'node:inspector/promises'
import { startWorld } from '../../bench/support/world.ts'
import type { Order, Outcome } from './order.ts'

/** One process of the fuzz: a platform with stand-ins of its own, and a share of the operations. */

const order: Order = JSON.parse(process.argv[2] ?? '')
await using world = await startWorld()
Object.assign(process.env, world.environment, { PLAT_ASSETS_DIR: order.assetsDir, PLAT_LOG_LEVEL: 'error' })
await import('../../support/without-rate-limits.ts')
const { moduleWorld } = await import('../../functions/module-world.ts')
const { fuzz, newTally } = await import('./run.ts')
const { plantedIn } = await import('./table-scan.ts')

const inspector = new Session()
inspector.connect()

/** What is resident once garbage is collected, and what that has left empty is given back. */
const memoryMb = async (): Promise<number> => {
  await inspector.post('HeapProfiler.collectGarbage')
  return process.memoryUsage.rss() / 1_000_000
}

const tally = newTally()
const counts: Outcome['counts'] = {}
// The first requests to every operation load and compile what the others use.
for (const name of order.names) await fuzz(name, order.warmUp, order.seed + 1, tally)
Object.assign(tally, { requests: 0, malformed: 0 })
const startedMb = await memoryMb()
for (const name of order.names) {
  const startedAtMs = performance.now()
  counts[name] = await fuzz(name, order.count, order.seed, tally)
  process.send?.({ name, seconds: (performance.now() - startedAtMs) / 1000, memoryMb: await memoryMb() })
}
const outcome: Outcome = { tally, counts, grownMb: (await memoryMb()) - startedMb, planted: await plantedIn() }
process.send?.({ outcome })
await moduleWorld[Symbol.asyncDispose]()
process.disconnect()
